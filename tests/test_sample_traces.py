"""Every sample trace plays from its start to its end: report, replay and a recount of its lines agree. And its story,
as `sample_traces/README.md` tells it, is in the figures."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from functools import cache
from itertools import groupby
from pathlib import Path
from statistics import mean, median
from typing import Any

import pytest
from click.testing import CliRunner

from console.cli.root import root
from engine.records import ControlRecord, EngineRecord, Record, Row, SequenceRecord, StepRecord
from engine.schedule import lookup, parse_schedule
from store.trace import read_records
from tests.path.test_request_to_screen import recount
from tests.samples.__main__ import STORIES

FOLDER = Path(__file__).parent.parent / "sample_traces"
TRACES = sorted(FOLDER.glob("*.jsonl.zst"))
README = (FOLDER / "README.md").read_text()
CALIBRATION = "specdeck-calibration"


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.name.partition(".")[0])
def test_report_replay_and_recount_agree(trace: Path) -> None:
    counted = recount(trace)
    reported = _reported(trace, "workload")
    assert {bucket["workload"] for bucket in reported} == set(counted)
    replayed: dict[str, Counter[str]] = {workload: Counter() for workload in counted}
    for bucket in _replayed(trace)["report"]["buckets"]:
        replayed[bucket["workload"]].update({name: bucket[name] for name in counted[bucket["workload"]]})
    for bucket in reported:
        own = counted[bucket["workload"]]
        assert {name: bucket[name] for name in own} == dict(own) == dict(replayed[bucket["workload"]])


def test_each_is_small_is_told_of_and_can_be_recorded_again() -> None:
    assert {trace.name.partition(".")[0] for trace in TRACES} == {"demo", *STORIES}
    for trace in TRACES:
        assert trace.stat().st_size < 3_000_000, trace
        assert f"`{trace.name}`" in README, trace


def test_schedule_k_follows_the_load_down_to_0_and_back() -> None:
    records = _records("schedule")
    (begun,) = [record.after for record in records if isinstance(record, ControlRecord) and record.action == "begin"]
    schedule = parse_schedule((begun or {})["schedule"])
    steps = [step for step in _steps(records) if step.limit_draft == "schedule"]
    assert [step for step in steps if step.k_draft != lookup(schedule, step.running)] == []
    stretches = [(k, len(list(those))) for k, those in groupby(steps, key=lambda step: step.k_draft)]
    lasting = [k for k, _ in groupby(k for k, steps in stretches if steps >= 100)]
    assert lasting == [4, 1, 0, 1, 4]
    busiest = max(steps, key=lambda step: step.running)
    assert (busiest.running, busiest.k_draft) == (12, 0)


def test_hostile_falls_back_is_probed_and_recovers() -> None:
    records = _records("hostile")
    own = [record for record in records if isinstance(record, ControlRecord) and record.workload == "hostile"]
    fallen = next(record.ts for record in own if record.action == "fallback")
    back = next(record.ts for record in own if record.action == "recover" and record.ts > fallen)
    probes = {step.probe for step in _steps(records) if fallen < step.ts < back}
    assert "recover" in probes
    rows = _rows(records, "hostile")
    off = [row for ts, probe, row in rows if fallen + 1 < ts < back and probe is None]
    assert len(off) > 100
    assert sum(row.drafted for row in off) == 0
    before, after = ([row for ts, _, row in rows if ts < fallen], [row for ts, _, row in rows if ts > back + 5])
    assert _pooled(before) < 0.2
    assert _pooled(after) > 0.8
    friendly = [row for ts, probe, row in _rows(records, "friendly") if fallen < ts < back and probe is None]
    assert mean(row.k_asked for row in friendly) >= 3


def test_version_push_lowers_acceptance_and_a_shift_names_it() -> None:
    good, worse = [record for record in _records("version_push") if isinstance(record, EngineRecord)]
    assert good.target.split("@")[1] == good.drafter.split("@")[1] != worse.drafter.split("@")[1]
    alpha = {
        bucket["model_version"].split(" | ")[1]: bucket["alpha"]
        for bucket in _reported(FOLDER / "version_push.jsonl.zst", "model_version")
    }
    assert alpha[good.drafter] > 0.95
    assert alpha[worse.drafter] < alpha[good.drafter] - 0.15
    alerts = _replayed(FOLDER / "version_push.jsonl.zst")["alerts"]
    firing = [alert for alert in alerts if alert["state"] == "firing"]
    assert {(alert["kind"], alert["bucket"]["workload"]) for alert in firing} == {
        ("shift", "code"),
        ("shift", "repeat"),
    }
    for alert in firing:
        assert alert["started"] > worse.ts
        assert worse.drafter in next(cause["text"] for cause in alert["causes"] if cause["kind"] == "version")


def test_long_contexts_have_three_buckets_whose_steps_cost_more_and_more() -> None:
    found = {bucket["context"]: bucket for bucket in _reported(FOLDER / "long_contexts.jsonl.zst", "context")}
    assert list(found) == ["0-512", "512-2048", "2048-8192"]
    assert all(bucket["alpha"] is not None for bucket in found.values())
    assert found["0-512"]["speedup_low"] > 1 > found["2048-8192"]["speedup_high"]
    for k in (0, 4):
        times: tuple[list[float], ...] = ([], [], [])
        for step in _steps(_records("long_contexts")):
            places = {bisect_right((512, 2048), row.context) for row in step.rows}
            if (step.k_verify, step.k_draft, step.prefill_tokens, len(step.rows), len(places)) == (k, k, 0, 3, 1):
                times[places.pop()].append(step.duration_ms)
        short, medium, long = (median(those) for those in times)
        assert max(short, medium) < long
        assert k == 0 or short < medium


@cache
def _records(name: str) -> list[Record]:
    return list(read_records(FOLDER / f"{name}.jsonl.zst"))


@cache
def _replayed(trace: Path) -> dict[str, Any]:
    return dict(_json("replay", str(trace), "--headless", "--speed", "max", "--json"))


@cache
def _reported(trace: Path, by: str) -> list[dict[str, Any]]:
    return list(_json("report", str(trace), "--by", by, "--json")["buckets"])


def _json(*arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(root, arguments)
    assert done.exit_code == 0, done.output
    return dict(json.loads(done.stdout))


def _steps(records: list[Record]) -> list[StepRecord]:
    """Those of the story's own traffic, probes included."""
    own = {record.seq for record in records if isinstance(record, SequenceRecord) and record.workload != CALIBRATION}
    return [
        record for record in records if isinstance(record, StepRecord) and any(row.seq in own for row in record.rows)
    ]


def _rows(records: list[Record], workload: str) -> list[tuple[float, str | None, Row]]:
    """Its decode rows, with the time and the probe of their step."""
    own = {record.seq for record in records if isinstance(record, SequenceRecord) and record.workload == workload}
    return [
        (step.ts, step.probe, row)
        for step in _steps(records)
        for row in step.rows
        if row.seq in own and row.cause != "prefill"
    ]


def _pooled(rows: list[Row]) -> float:
    return sum(row.accepted for row in rows) / sum(row.drafted for row in rows)
