"""Random rows: the store's figures equal a slow reference, whichever way the rows came in."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.records import CAUSES, LIMITS, GapRecord, Record, Row, SequenceRecord
from store.database import Store
from store.figures import Figures
from store.ingest import Ingest
from store.report import report
from store.source import open_source
from store.trace import TraceWriter
from store.windows import LiveWindows
from tests.store.builders import T0, announcement, arrived, engine, frame, only_bucket, reported, step, trace_of
from tests.store.reference import possible, reference
from tests.store.reference_report import KEYS, reference_report


@st.composite
def rows(draw: st.DrawFn) -> Row:
    """Mostly possible rows, now and then an impossible one."""
    k = draw(st.integers(0, 6))
    d = draw(st.integers(0, k))
    a = draw(st.integers(0, d))
    odd = draw(st.integers(0, 20)) == 0
    return Row(
        seq=str(draw(st.integers(1, 12))),
        k_asked=k,
        limit=draw(st.sampled_from(LIMITS)),
        proposed=draw(st.none() | st.integers(d, 8)),
        drafted=d,
        invalid=draw(st.integers(0, 2)),
        accepted=a + draw(st.integers(-2, 3)) if odd else a,
        emitted=draw(st.integers(0, a + 1)) + (2 if odd else 0),
        context=draw(st.integers(0, 511)),
        cause=draw(st.sampled_from(CAUSES)),
    )


def agree(figures: Figures, expected: dict[str, Any]) -> None:
    shown = msgspec.to_builtins(figures)
    for name, value in expected.items():
        assert shown[name] == (value if isinstance(value, str) else pytest.approx(value, abs=1e-6)), name


@settings(max_examples=30, deadline=None)
@given(st.lists(rows(), min_size=1, max_size=60))
def test_figures_of_any_rows_equal_the_reference(many: list[Row]) -> None:
    if any(possible(row) for row in many):
        agree(only_bucket(trace_of(many)), reference(many))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(rows(), min_size=1, max_size=60))
def test_frames_a_trace_and_live_windows_count_the_same(tmp_path: Path, many: list[Row]) -> None:
    expected = reference(many)
    if not expected["sequences"]:
        return
    handles = sorted({int(row.seq) for row in many})
    windows = LiveWindows()
    with Store.memory() as store:
        ingest = Ingest(store, windows)
        ingest.announcement(announcement([arrived(handle) for handle in handles]), 0.0)
        for number, row in enumerate(many, 1):
            ingest.frame(frame(number, [row]), 0.0)
        ingest.close()
        over_the_wire = report(store.connection, source="test")
        assert ingest.counts.rows + ingest.counts.quarantined == len(many)
        assert ingest.counts.quarantined == sum(not possible(row) for row in many)
        last = store.connection.execute("SELECT max(ts) FROM steps").fetchall()[0][0]
    path = tmp_path / "trace.jsonl"
    with TraceWriter(path) as writer:
        for record in trace_of(many):
            writer.write(record)
    with open_source(path) as store:
        from_trace = report(store.connection, source="test")
    for counted in (over_the_wire, from_trace):
        agree(counted.buckets[0], expected)
        assert counted.total is not None
        agree(counted.total, expected)
        assert counted.quarantined == sum(not possible(row) for row in many)
    (bucket,) = windows.buckets(last + 1, 3600.0)
    agree(bucket.figures, expected)
    live_total = windows.total(last + 1, 3600.0)
    assert live_total is not None
    agree(live_total, expected)


def run(random: Random) -> list[Record]:
    """Two engines with a few sequences each; stretches at K = 0, prefills, probes, holes, steps that come late, and
    rows that can't be."""
    records: list[Record] = [engine(engine=f"e{number}", target=f"target-{number}") for number in range(2)]
    names = [(f"e{number}", seq) for number in range(2) for seq in "abcdefgh"[: random.randint(1, 8)]]
    for name, seq in names:
        records.append(SequenceRecord(
            name, seq, T0, random.choice(["code", "chat", None]), random.choice([0.0, 0.3, 1.0, 1.5, None])
        ))  # fmt: skip
    clock = dict.fromkeys(("e0", "e1"), T0)
    quiet = {name: random.choice([0, 30, 63, 64, 90]) for name in names}
    for number in range(1, random.choice([2, 40, 300])):
        name = random.choice(("e0", "e1"))
        clock[name] = round(clock[name] + random.choice([0.04, 0.11, 25.0]), 6)
        if random.random() < 0.05:
            until = round(clock[name] + random.choice([3.0, 90.0]), 6)
            records.append(GapRecord(name, until, random.randint(0, 9), since=clock[name]))
            clock[name] = until
        late = random.choice([0.0] * 9 + [40.0])
        rows = [
            drawn(random, seq, quiet, (name, seq))
            for of, seq in names if of == name and random.random() < 0.8
        ]  # fmt: skip
        records.append(step(number, rows, ts=max(T0 + 1, clock[name] - late), engine=name, duration_ms=30.0))
    return records


def drawn(random: Random, seq: str, quiet: dict[tuple[str, str], int], of: tuple[str, str]) -> Row:
    limit, context = random.choice(LIMITS), random.choice([0, 511, 512, 9000, 40_000])
    if quiet[of] > 0 and random.random() < 0.995:
        quiet[of] -= 1
        return Row(seq, 0, limit, 0, 0, 0, 0, random.randint(0, 1), context, random.choice(["none"] * 9 + ["prefill"]))  # type: ignore[arg-type]
    k = random.randint(0, 8)
    d = random.randint(0, k)
    a = random.randint(0, d) + (random.randint(1, 3) if random.random() < 0.03 else 0)
    emitted = random.randint(0, a + 1) + (2 if random.random() < 0.02 else 0)
    invalid = -1 if random.random() < 0.01 else random.randint(0, 2)
    proposed = random.choice([None, d, d + 1])
    return Row(seq, k, limit, proposed, d, invalid, a, emitted, context, random.choice(CAUSES))


@settings(max_examples=14, deadline=None)
@given(st.randoms(use_true_random=False), st.sets(st.sampled_from(KEYS)))
def test_a_whole_report_equals_the_reference_whatever_is_pooled(random: Random, pooled: set[str]) -> None:
    records, by = run(random), [key for key in KEYS if key not in pooled]
    shown = reported(records, by=by)
    expected = reference_report(records, by)
    found = {tuple(getattr(one, key) for key in by): one for one in shown.buckets}
    assert found.keys() == expected["buckets"].keys()
    for name, one in found.items():
        agree(one, expected["buckets"][name])
    if shown.total is not None:
        agree(shown.total, expected["total"])
    assert (shown.quarantined, shown.gaps, shown.frames_lost) == tuple(
        expected[name] for name in ("quarantined", "gaps", "frames_lost")
    )
    assert shown.window is not None
    assert (shown.window.start, shown.window.end) == pytest.approx(expected["window"], abs=1e-5)
