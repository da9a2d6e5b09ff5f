"""The small inputs with right answers of the case list, as far as alerts go: hand-written traces of days, read from a
file by the command that an operator types."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from console.cli.root import root
from engine.records import StepRecord
from store.alerts import history
from store.judging import Judging
from store.report import report
from store.source import open_source
from tests.store.alert_traces import DAY, HOUR, Stream, Tape
from tests.store.builders import row

KEYS = {"kind", "severity", "bucket", "state", "started", "ended", "evidence", "causes"}


def alerts_of(path: Path, *options: str) -> list[dict[str, Any]]:
    """What `specdeck alerts` prints; it exits with 1 exactly when one fires at the end."""
    result = CliRunner().invoke(root, ["alerts", str(path), "--json", *options])
    assert result.exit_code in (0, 1), result.output
    printed = json.loads(result.stdout)
    assert list(printed) == ["alerts"]
    found: list[dict[str, Any]] = printed["alerts"]
    assert all(set(alert) >= KEYS for alert in found)
    assert result.exit_code == int(any(alert["state"] == "firing" for alert in found))
    return found


def replayed(path: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Alerts and report, as `specdeck replay` prints them: the same as `alerts` and `report`, at one go."""
    result = CliRunner().invoke(root, ["replay", str(path), "--headless", "--json"])
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    return printed["alerts"], printed["report"]


def acceptance(alerts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [alert for alert in alerts if alert["kind"] in ("drift", "shift")]


def first_low_window(tape: Tape, since: float, seconds: float, level: float) -> float:
    """End of the first window that stands more than five points below the level, from the rows alone."""
    sums: dict[float, list[float]] = {}
    for record in tape.records:
        if isinstance(record, StepRecord) and record.ts >= since:
            end = (record.ts // seconds + 1) * seconds
            for one in record.rows:
                total = sums.setdefault(end, [0.0, 0.0])
                total[0] += one.accepted / one.drafted
                total[1] += 1
    return next(end for end, (rates, rows) in sorted(sums.items()) if rates / rows < level - 0.05)


@pytest.mark.parametrize("lengths", [(2, 4, 8), (8, 3, 5)], ids=["up", "down"])
def test_a_changed_draft_length_raises_nothing(tmp_path: Path, lengths: tuple[int, ...]) -> None:
    tape = Tape()
    for k in lengths:
        tape.serve(1.5 * DAY, [Stream(k=k, accepted=2, sequences=16, steps=6)], every=HOUR)
    alerts, figures = replayed(tape.write(tmp_path / "k.jsonl"))
    assert alerts == []
    (bucket,) = figures["buckets"]
    assert bucket["mean_acceptance_length"] == pytest.approx(3.0)
    assert bucket["position_marginal"][:2] == [1.0, 1.0], "at depth 2 everything is accepted throughout"


@pytest.mark.parametrize("days", [0, 2], ids=["new", "known"])
def test_where_nothing_is_drafted_acceptance_is_absent_and_no_alert(tmp_path: Path, days: int) -> None:
    tape = Tape()
    tape.serve(days * DAY, [Stream(sequences=20)], every=HOUR)
    name = tape.arrive("chat")
    for _ in range(400):
        tape.step([row(name, d=0, a=0)], 0.15)
    with open_source(tape.write(tmp_path / "off.jsonl")) as store:
        assert history(store.connection).alerts == []
        (bucket,) = report(store.connection, source="off", window=60.0).buckets
        assert (bucket.alpha, bucket.waste_ratio, bucket.state) == (None, None, "blind")
        assert bucket.tokens_per_second == pytest.approx(400 / 60, rel=0.01)
        (view,) = Judging(store.connection).judge.views()
        assert view.state == ("blind" if days else "learning")
        assert view.baseline == (pytest.approx(0.78, abs=0.01) if days else None)


def under_load(crowd: int) -> Tape:
    """The same acceptance alone and in a crowd: 108 against 52 tokens/s, then 39.6 against 51.4."""
    tape = Tape()
    vanilla, drafting = {1: 1 / 52, crowd: 1 / 51.4}, {1: 2.2 / 108, crowd: 2.2 / 39.6}
    for _ in range(4):
        for batch, seconds in vanilla.items():
            tape.cells(10, batch, 0, seconds)
    for batch, seconds in drafting.items():
        tape.cells(100, batch, 4, seconds)
    return tape


@pytest.mark.parametrize("crowd", [8, 16])
def test_load_makes_a_speedup_alert_and_no_acceptance_alert(tmp_path: Path, crowd: int) -> None:
    found, figures = replayed(under_load(crowd).write(tmp_path / "load.jsonl"))
    assert acceptance(found) == []
    (alert,) = [one for one in found if one["kind"] == "speedup_floor"]
    assert (alert["severity"], alert["state"], alert["bucket"]) == ("critical", "firing", None)
    assert alert["evidence"]["speedup"] == pytest.approx(0.77, abs=0.02)
    assert "load" in [cause["kind"] for cause in alert["causes"]]
    assert figures["total"]["mean_acceptance_length"] == pytest.approx(2.2, abs=0.01)


@pytest.mark.parametrize(
    ("workloads", "before", "after"),
    [(("code", "writing"), (36, 36), (14, 58)), (("sql", "zh"), (80, 20), (30, 70))],
    ids=["half", "most"],
)
def test_the_traffic_mix_alone_raises_nothing_and_is_named(
    tmp_path: Path, workloads: tuple[str, str], before: tuple[int, int], after: tuple[int, int]
) -> None:
    tape = Tape()
    streams = [Stream(workloads[0], 0.447), Stream(workloads[1], 0.205)]
    tape.serve(DAY, [s._replace(sequences=n) for s, n in zip(streams, before, strict=True)], every=HOUR)
    tape.serve(HOUR, [s._replace(sequences=n) for s, n in zip(streams, after, strict=True)])
    alerts, figures = replayed(tape.write(tmp_path / "mix.jsonl"))
    assert alerts == []
    (note,) = figures["notes"]
    assert note.startswith("mix: ")
    assert workloads[1] in note


DECLINES = {
    "dense": (Stream(), 300.0, 2 * HOUR, 0.0, (0.78, 0.69, 0.61, 0.48, 0.30)),
    "sparse": (Stream(sequences=4), 360.0, 1.6 * HOUR, 0.0, (0.78, 0.69, 0.61, 0.48, 0.30)),
    "late": (Stream(sequences=4), 360.0, 1.6 * HOUR, 0.5 * HOUR, (0.78, 0.69, 0.61, 0.48, 0.30)),
    "shallow": (Stream("zh", k=2, sequences=6), 360.0, HOUR, 0.0, (0.65, 0.57, 0.49, 0.36, 0.17)),
}


@pytest.mark.parametrize("decline", DECLINES)
def test_a_slow_drift_is_one_alert_and_its_steep_steps_are_causes(tmp_path: Path, decline: str) -> None:
    stream, every, length, late, rates = DECLINES[decline]
    tape = Tape()
    tape.serve(3 * DAY, [stream._replace(rate=rates[0], sequences=12, steps=6)], every=HOUR)
    fell = tape.now
    tape.serve(late, [stream._replace(rate=rates[0])], every)
    for rate in rates:
        tape.serve(length, [stream._replace(rate=rate)], every)
    (alert,) = alerts_of(tape.write(tmp_path / "drift.jsonl"))
    assert (alert["kind"], alert["state"], alert["bucket"]["workload"]) == ("drift", "firing", stream.workload)
    window = 300.0 if decline == "dense" else HOUR
    assert alert["started"] == first_low_window(tape, fell, window, rates[0])
    assert "shift" in [cause["kind"] for cause in alert["causes"]]


@pytest.mark.parametrize("late", [0.0, 0.3, 0.7], ids=["edge", "early", "amid"])
def test_a_step_inside_an_hour_is_a_shift_and_no_drift(tmp_path: Path, late: float) -> None:
    tape = Tape()
    stream = Stream(sequences=4)
    tape.serve(2 * DAY, [stream._replace(sequences=12)], every=HOUR)
    tape.serve((2 + late) * HOUR, [stream], every=360)
    tape.serve(3 * HOUR, [stream._replace(rate=0.55)], every=360)
    (alert,) = alerts_of(tape.write(tmp_path / "step.jsonl"))
    assert (alert["kind"], alert["severity"]) == ("shift", "critical")


@pytest.mark.parametrize(
    ("changed", "k", "rates"),
    [({"drafter": "head@2"}, 7, (0.313, 0.237)), ({"target": "tuned", "vllm": "0.32.1"}, 3, (0.62, 0.55))],
    ids=["head", "target"],
)
def test_a_version_that_accepts_less_is_one_shift_that_names_it(
    tmp_path: Path, changed: dict[str, str], k: int, rates: tuple[float, float]
) -> None:
    tape = Tape(drafter="head@1")
    tape.serve(3 * DAY, [Stream(k=k, rate=rates[0], sequences=12, steps=6)], every=HOUR)
    tape.now += 40
    tape.start(**changed)
    tape.serve(HOUR, [Stream(k=k, rate=rates[1])])
    (alert,) = alerts_of(tape.write(tmp_path / "push.jsonl"))
    assert (alert["kind"], alert["severity"], alert["state"]) == ("shift", "critical", "firing")
    (cause,) = [one for one in alert["causes"] if one["kind"] == "version"]
    assert all(value in cause["text"] for value in changed.values())
    assert all(value in alert["bucket"]["model_version"] for value in changed.values())


def test_the_command_itself_prints_alerts_and_exits_with_1(tmp_path: Path) -> None:
    tape = Tape()
    tape.serve(DAY, [Stream(rate=0.6)], every=HOUR)
    tape.start(drafter="other")
    tape.serve(HOUR, [Stream(rate=0.5)])
    path = tape.write(tmp_path / "push.jsonl.zst")
    ran = subprocess.run(
        [sys.executable, "-m", "console.cli", "alerts", str(path), "--json"], capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 1
    (alert,) = json.loads(ran.stdout)["alerts"]
    assert set(alert["bucket"]) == {"workload", "context", "temperature", "model_version"}


@pytest.mark.parametrize(("to", "rate"), [(1.0, 0.45), (0.3, 0.10)], ids=["hot", "warm"])
def test_another_temperature_is_another_bucket_and_no_alert(tmp_path: Path, to: float, rate: float) -> None:
    tape = Tape()
    tape.serve(1.5 * DAY, [Stream(sequences=16)], every=HOUR)
    tape.serve(8 * HOUR, [Stream(temperature=to, rate=rate)], every=900)
    alerts, figures = replayed(tape.write(tmp_path / "temperature.jsonl"))
    assert alerts == []
    assert len(figures["buckets"]) == 2


def test_what_comes_back_from_k_0_is_told_apart_and_is_no_drift(tmp_path: Path) -> None:
    tape = Tape()
    tape.serve(2 * DAY, [Stream(sequences=20)], every=HOUR)
    for _ in range(5):
        tape.burst([Stream(steps=6), Stream(sequences=12, quiet=100, resumed=50, steps=0)])
        tape.now += 300
    alerts, figures = replayed(tape.write(tmp_path / "resumed.jsonl"))
    assert alerts == []
    assert figures["buckets"][0]["post_resume"]["steps"] == 5 * 12 * 50
    assert any(note.startswith("post-resume") for note in figures["notes"])


@pytest.mark.parametrize("days", [0, 2], ids=["new", "known"])
@pytest.mark.parametrize("rate", [0.0, 1.0], ids=["none", "all"])
def test_one_request_alone_raises_nothing(tmp_path: Path, rate: float, days: int) -> None:
    tape = Tape()
    tape.serve(days * DAY, [Stream(rate=0.5, sequences=20)], every=HOUR)
    tape.serve(300.0, [Stream(rate=rate, sequences=1, steps=600, spread=0.0)])
    with open_source(tape.write(tmp_path / "one.jsonl")) as store:
        assert history(store.connection).alerts == []
        assert report(store.connection, source="one", window=25.0).buckets[0].state == "few"


def test_steady_traffic_is_silent(tmp_path: Path) -> None:
    """Sequences differ by chance here; the simulation of the acceptance measurements does it at full size."""
    chance = random.Random(7)
    tape = Tape()
    workloads = [(f"w{number}", chance.uniform(0.2, 0.8), chance.choice((1, 3, 5))) for number in range(16)]
    for _ in range(44):
        burst = []
        for name, rate, k in workloads:
            many = [min(1.0, max(0.0, chance.gauss(rate, 0.15))) for _ in range(chance.randrange(9))]
            burst += [Stream(name, one, k, sequences=1, steps=4, spread=0.0) for one in many]
        tape.burst(burst)
        tape.now += HOUR
    assert alerts_of(tape.write(tmp_path / "steady.jsonl")) == []
