"""A workload whose drafts are worthless beside one whose drafts are good, on an engine whose drafter plants errors: the
first loses its drafts by itself, the second keeps its own, and when the errors end the first has its drafts again.

With windows and pauses of seconds; with the product's own in `tests.acceptance.hostile_engine`.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from engine.records import ControlRecord, Record, Row, SequenceRecord, StepRecord
from tests.path.planted_traffic import FRIENDLY, HOSTILE, PROPOSER, Traffic, environment, turned_off, view_of
from tests.path.served import Served, until

pytestmark = [pytest.mark.engine, pytest.mark.alone]

LONGEST_PAUSE = 20.0
BRISK = {
    "window_s": 15.0, "recent_s": 10.0, "load_s": 10.0, "shortest_pause_s": 4.0, "longest_pause_s": LONGEST_PAUSE,
    "dwell_steps": 30, "probe_share": 0.05, "probe_wait_steps": 4, "score_steps": 60, "enough_rows": 20,
}  # fmt: skip


class Course(NamedTuple):
    """Moments (Unix seconds) and what was recorded: of each row its step's time, its probe and the row."""

    off: float
    """The hostile workload was seen without drafts."""
    turned: float
    """Its drafts became good."""
    back: float
    rows: dict[str, list[tuple[float, str | None, Row]]]
    controls: list[ControlRecord]


@pytest.fixture(scope="module")
def course(bundled_model: Path) -> Iterator[Course]:
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name, pytest.MonkeyPatch.context() as patch:
        directory = Path(name)
        plan = directory / "plan.json"
        for variable, value in environment(plan).items():
            patch.setenv(variable, value)
        patch.setenv("SPECDECK_DECIDING", json.dumps(BRISK))
        served = Served(directory, "--drafter", PROPOSER, policy="adaptive")
        try:
            served.wait_serving()
            yield _run(served, Traffic(served, plan, bundled_model))
        except AssertionError as error:
            raise AssertionError(f"{error}\n{served.logs()}") from None
        finally:
            served.stop()


def _run(served: Served, traffic: Traffic) -> Course:
    with traffic.running():
        until("the hostile workload without drafts", lambda: turned_off(view_of(served, HOSTILE.workload)), 60.0)
        off = time.time()
        time.sleep(5.0)
        traffic.plant(0.0)
        turned = time.time()
        until("the hostile workload drafts again", lambda: _drafts(served, HOSTILE.workload), 2 * LONGEST_PAUSE)
        back = time.time()
        time.sleep(5.0)
    assert set(traffic.statuses) == {200}
    return Course(off, turned, back, *_recorded(served.records()))


def _drafts(served: Served, workload: str) -> bool:
    """More than the one token that is asked for to see whether it is worth it."""
    view = view_of(served, workload)
    return view is not None and not view.fallback and (view.k is None or view.k > 1)


def _recorded(records: list[Record]) -> tuple[dict[str, list[tuple[float, str | None, Row]]], list[ControlRecord]]:
    names = {record.seq: record.workload or "" for record in records if isinstance(record, SequenceRecord)}
    rows: dict[str, list[tuple[float, str | None, Row]]] = {HOSTILE.workload: [], FRIENDLY.workload: []}
    for record in records:
        if isinstance(record, StepRecord):
            for row in record.rows:
                if names.get(row.seq) in rows and row.cause != "prefill":
                    rows[names[row.seq]].append((record.ts, record.probe, row))
    return rows, [record for record in records if isinstance(record, ControlRecord)]


def test_the_hostile_workload_loses_its_drafts_by_itself(course: Course) -> None:
    rows = course.rows[HOSTILE.workload]
    before = [row for ts, _, row in rows if ts < course.off - 5]
    assert sum(row.drafted for row in before) > 50
    assert sum(row.accepted for row in before) < 0.2 * sum(row.drafted for row in before)
    meanwhile = [(probe, row) for ts, probe, row in rows if course.off + 1 < ts < course.turned]
    assert len(meanwhile) > 20
    # Before tier 2 has turned it off, tier 1 may try a single token again.
    ordinary = [row for probe, row in meanwhile if probe is None]
    assert sum(row.drafted == 0 for row in ordinary) > 0.7 * len(ordinary)
    assert max(row.drafted for row in ordinary) <= 1
    assert {row.limit for row in ordinary} <= {"fallback", "adaptive"}


def test_its_friendly_neighbour_keeps_its_drafts(course: Course) -> None:
    meanwhile = [
        row for ts, probe, row in course.rows[FRIENDLY.workload] if course.off < ts < course.turned and not probe
    ]
    assert len(meanwhile) > 20
    assert sum(row.k_asked for row in meanwhile) >= 3 * len(meanwhile)
    assert sum(row.accepted for row in meanwhile) > 0.6 * sum(row.drafted for row in meanwhile)


def test_once_its_drafts_are_good_it_has_them_again_within_the_longest_pause(course: Course) -> None:
    assert course.back - course.turned < LONGEST_PAUSE + 10  # …and the steps of a dwell and of the tries
    later = [row for ts, probe, row in course.rows[HOSTILE.workload] if ts > course.back + 1 and not probe]
    assert max(row.drafted for row in later) >= 1
    assert sum(row.accepted for row in later) > 0.5 * sum(row.drafted for row in later)


def test_every_decision_is_recorded_with_who_what_and_by_which_numbers(course: Course) -> None:
    own = [record for record in course.controls if record.workload == HOSTILE.workload and record.actor == "adaptive"]
    made = [record for record in own if record.action in ("k", "fallback", "recover")]
    assert len(made) >= 2
    for record in made:
        assert record.numbers is not None
        assert record.policy is not None
        assert record.why
