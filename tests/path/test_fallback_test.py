"""The way out on the real engine: K follows a schedule down to 0 and back, and every other way out holds too."""

from __future__ import annotations

import json

import pytest

from engine.records import ControlRecord, PolicyMode, StepRecord
from engine.schedule import lookup, parse_schedule
from tests.path.served import Served

pytestmark = [pytest.mark.engine, pytest.mark.alone]

SCHEDULE = [[1, 2, 4], [3, 8, 1], [9, 32, 0]]
STATIC = PolicyMode(mode="static", k=4)


def test_k_follows_the_load_to_0_and_back_within_a_step(served: Served) -> None:
    served.policy(STATIC)
    done = served.specdeck("rehearse", "--fallback-test", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["schedule"] == SCHEDULE
    assert [level["k"] for level in result["levels"]] == [4, 1, 0, 0, 1, 4]
    assert [level["concurrent"] for level in result["levels"]] == [1, 5, 12, 12, 5, 1]
    assert served.snapshot().policy == STATIC
    assert result["acceptance_before"] is not None
    assert result["acceptance_after"] == pytest.approx(result["acceptance_before"], abs=0.1)
    assert (result["prompts"], min(result["draft_steps_before"], result["draft_steps_after"]) >= 30) == (8, True)

    # The same from what was recorded, told apart by the version that the engine stamped on its steps.
    records = served.records()
    (policy,) = [
        record.policy
        for record in records
        if isinstance(record, ControlRecord) and record.actor == "rehearsal" and (record.after or {}).get("schedule")
    ]
    steps = [
        record
        for record in records
        if isinstance(record, StepRecord) and record.policy == policy and record.limit_draft == "schedule"
    ]
    schedule = parse_schedule(SCHEDULE)
    assert len(steps) >= 6 * 60
    assert [step for step in steps if step.k_draft != lookup(schedule, step.running)] == []
    turns = [
        one.k_draft
        for one, after in zip(steps, [*steps[1:], None], strict=True)
        if after is None or after.k_draft != one.k_draft
    ]
    assert turns == [4, 1, 0, 1, 4]


def test_every_way_out_holds_and_is_certified(served: Served) -> None:
    served.policy(STATIC)
    done = served.specdeck("drill", "--all", "--yes", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    certificate = json.loads(done.stdout)
    assert certificate["passed"] is True
    assert [way["way"] for way in certificate["ways"]][-1] == "back"
    assert all(way["drafted"] == 0 and way["rows"] > 5 for way in certificate["ways"][:-1])
    shown = served.snapshot()
    assert shown.certificate is not None
    assert (shown.certificate.passed, shown.certificate.stale) == (True, None)
    assert shown.policy == STATIC
    (file,) = (served.directory / "data" / "certificates").glob("drill-*.json")
    assert json.loads(file.read_bytes()) == certificate
