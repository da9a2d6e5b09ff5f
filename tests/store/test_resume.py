"""Draft steps soon after a long stretch of K = 0 are told apart, however the rows come in batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from store import resume
from store.resume import QUIET_ROWS, RESUMED_STEPS, ResumeTracker
from store.rowbatch import columns_of
from tests.store.builders import only_bucket, row, trace_of

QUIET, DRAFT, EMPTY, PREFILL = "qdep"


def rows_of(kinds: Sequence[tuple[int, str]]) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    made = {
        QUIET: row(d=0, a=0, k=0), DRAFT: row(d=2, a=1), EMPTY: row(d=0, a=0, k=2),
        PREFILL: row(d=0, a=0, k=0, cause="prefill"),
    }  # fmt: skip
    matrix = columns_of([made[kind] for _, kind in kinds], [0] * len(kinds))
    return np.array([sequence for sequence, _ in kinds], dtype=np.int64), matrix


def reference(kinds: Sequence[tuple[int, str]]) -> list[int]:
    quiet: dict[int, int] = {}
    left: dict[int, int] = {}
    marks = []
    for sequence, kind in kinds:
        mark = 0
        if kind == QUIET:
            quiet[sequence] = quiet.get(sequence, 0) + 1
        elif kind != PREFILL:
            if quiet.pop(sequence, 0) >= resume.QUIET_ROWS:
                left[sequence] = resume.RESUMED_STEPS
            if kind == DRAFT and left.get(sequence, 0):
                mark = 1
                left[sequence] -= 1
        marks.append(mark)
    return marks


runs = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("qqqdep"), st.integers(1, 6)), max_size=60)


@settings(deadline=None)
@given(runs, st.lists(st.integers(1, 40), min_size=1, max_size=20))
def test_marks_are_those_of_a_row_by_row_walk(runs: list[tuple[int, str, int]], cuts: list[int]) -> None:
    kinds = [(sequence, kind) for sequence, kind, times in runs for _ in range(times)]
    before = resume.QUIET_ROWS, resume.RESUMED_STEPS
    resume.QUIET_ROWS, resume.RESUMED_STEPS = 4, 3  # type: ignore[misc]
    try:
        tracker, marks, start = ResumeTracker(), [], 0
        for cut in [*cuts, len(kinds)]:
            sequence, matrix = rows_of(kinds[start : start + cut])
            marks += tracker.mark(sequence, matrix).tolist() if len(sequence) else []
            start += cut
        assert marks == reference(kinds)
    finally:
        resume.QUIET_ROWS, resume.RESUMED_STEPS = before  # type: ignore[misc]


def test_a_sequence_that_left_is_forgotten() -> None:
    tracker = ResumeTracker()
    tracker.mark(*rows_of([(1, QUIET)] * QUIET_ROWS))
    tracker.forget(1)
    assert tracker.mark(*rows_of([(1, DRAFT)])).tolist() == [0]


def test_the_report_counts_them_apart_and_in_the_whole() -> None:
    quiet = [row(d=0, a=0, k=0)] * 100
    figures = only_bucket(trace_of([*quiet, *[row(d=2, a=0)] * 80, *[row("b", d=2, a=2)] * 20]))
    assert figures.steps == 100
    assert figures.post_resume is not None
    assert (figures.post_resume.steps, figures.post_resume.accepted) == (RESUMED_STEPS, 0)
    assert figures.post_resume.alpha == 0.0
    assert only_bucket(trace_of([row()] * 5)).post_resume.steps == 0  # type: ignore[union-attr]
