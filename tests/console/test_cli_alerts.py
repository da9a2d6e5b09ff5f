"""What an operator says to alerts from a shell, and the floor of the speedup that he judges by."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from console.cli.outcomes import BAD_INPUT, CHECK_FAILED, OK, UNREACHABLE, BadInput
from console.cli.root import root
from console.cli.station import ask
from console.feed.protocol import AlertAct
from console.station.options import StationOptions
from store.database import Store
from store.ingest import Ingest
from store.judge.reports import AlertReport
from store.judging import judge_all
from tests.console.station_harness import StationUnderTest, free_port
from tests.store.alert_traces import DAY, HOUR, Stream, Tape

TRACE = Path(__file__).parents[2] / "sample_traces" / "demo.jsonl.zst"


def specdeck(*arguments: str) -> Result:
    return CliRunner().invoke(root, list(arguments))


@pytest.fixture
def station(place: Path) -> Iterator[StationUnderTest]:
    """One without an engine, on a store in which two alerts fire: of acceptance, and of K."""
    station = StationUnderTest(place, engine=False)
    tape = Tape()
    tape.serve(2 * DAY, [Stream("chat", k=4)], every=HOUR)
    tape.serve(HOUR, [Stream("chat", k=4, rate=0.5)])
    for _ in range(60):
        tape.step([], k_draft=2, k_verify=2, limit_draft="schedule")
    with Store.open(station.store) as store:
        ingest = Ingest(store)
        for record in tape.records:
            ingest.record(record)
        ingest.close()
        judge_all(store.connection)
    yield station.start()
    station.close()


def shown() -> dict[str, dict[str, Any]]:
    """Alerts of the station by their kind."""
    result = specdeck("alerts", "--json")
    found = json.loads(result.stdout)["alerts"]
    assert result.exit_code == (CHECK_FAILED if any(alert["state"] == "firing" for alert in found) else OK)
    return {alert["kind"]: alert for alert in found}


def test_alerts_of_a_station_are_acknowledged_snoozed_and_accepted_by_their_number(station: StationUnderTest) -> None:
    shift, mismatch = shown()["shift"], shown()["policy_mismatch"]
    assert f" {shift['id']} firing" in specdeck("alerts").stdout

    seen = specdeck("alerts", "--acknowledge", str(mismatch["id"]))
    assert seen.exit_code == OK
    assert "acknowledged by" in seen.stdout
    quiet = json.loads(specdeck("alerts", "--snooze", str(mismatch["id"]), "--for", "2h", "--json").stdout)
    assert quiet["snoozed_until"] == pytest.approx(time.time() + 2 * HOUR, abs=60)
    assert quiet["state"] == "firing", "it goes on"
    refused = specdeck("alerts", "--accept", str(mismatch["id"]))
    assert (refused.exit_code, refused.stdout) == (BAD_INPUT, "")
    assert "only the level of an acceptance alert" in refused.stderr
    accepted = json.loads(specdeck("alerts", "--accept", str(shift["id"]), "--json").stdout)
    assert (accepted["state"], accepted["causes"][-1]["kind"]) == ("resolved", "accepted")

    station.kill()
    station.start()
    after = shown()
    assert after["policy_mismatch"]["acknowledged"] is not None, "kept at once"
    assert after["policy_mismatch"]["snoozed_until"] == quiet["snoozed_until"]
    assert after["shift"]["state"] == "resolved"


def test_what_cannot_be_done_on_a_station_or_in_its_store_is_refused(station: StationUnderTest) -> None:
    for act in ("acknowledge", "snooze", "accept"):
        refused = specdeck("alerts", f"--{act}", "4711")
        assert refused.exit_code == BAD_INPUT
        assert "no alert 4711" in refused.stderr
    for seconds in (0.0, -1.0, 1e12, float("nan"), float("inf")):  # whoever asks, a snooze has an end
        with pytest.raises(BadInput, match="can be snoozed"):
            ask("alert_act", AlertReport, AlertAct(id=1, act="snooze", seconds=seconds))
    station.terminate()
    refused = specdeck("alerts", str(station.store), "--speedup-floor", "2")
    assert refused.exit_code == BAD_INPUT
    assert "while it was recorded" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "what"),
    [
        (["--snooze", "1"], UNREACHABLE, "no station is running"),
        (["--snooze", "1", "--for", "never"], BAD_INPUT, "span of time"),
        (["--snooze", "1", "--for", "31d"], BAD_INPUT, "at most 30d"),
        (["--acknowledge", "1", "--accept", "1"], BAD_INPUT, "one thing at a time"),
        (["--acknowledge", "1", "--window", "1h"], BAD_INPUT, "neither"),
        (["--for", "1h"], BAD_INPUT, "--snooze ID"),
        ([str(TRACE), "--accept", "1"], BAD_INPUT, "running station"),
        (["--speedup-floor", "2"], BAD_INPUT, "for traces"),
    ],
    ids=["station", "span", "long", "two", "window", "for", "record", "floor"],
)
def test_what_makes_no_sense_is_refused_with_the_remedy(
    place: Path, arguments: list[str], code: int, what: str
) -> None:
    refused = specdeck("alerts", *arguments)
    assert (refused.exit_code, refused.stdout) == (code, "")
    assert what in refused.stderr


def slow_trace(folder: Path) -> Path:
    """A speedup of about 1.2 for a quarter of an hour, with what it takes to measure it."""
    tape = Tape()
    tape.cells(20, 2, 0, 0.020)
    tape.cells(100, 2, 4, 2.2 * 0.020 / 1.2)
    return tape.write(folder / "slow.jsonl")


@pytest.mark.parametrize(("floor", "fires"), [(None, True), ("1.1", False), ("1.4", True)], ids=str)
def test_a_trace_is_judged_by_the_floor_that_is_asked_for(tmp_path: Path, floor: str | None, fires: bool) -> None:
    options = [] if floor is None else ["--speedup-floor", floor]
    path = str(slow_trace(tmp_path))
    kinds = [alert["kind"] for alert in json.loads(specdeck("alerts", path, "--json", *options).stdout)["alerts"]]
    assert ("speedup_floor" in kinds) is fires
    replayed = json.loads(specdeck("replay", path, "--headless", "--json", *options).stdout)["alerts"]
    assert [alert["kind"] for alert in replayed] == kinds


@pytest.mark.parametrize("floor", ["0", "-1", "nan", "inf", "much"])
@pytest.mark.parametrize(
    "command", [["serve"], ["demo"], [], ["alerts", str(TRACE)]], ids=["serve", "demo", "bare", "alerts"]
)
def test_a_floor_is_a_number_above_0(place: Path, command: list[str], floor: str) -> None:
    refused = specdeck(*command, f"--speedup-floor={floor}")
    assert refused.exit_code == BAD_INPUT
    assert "--speedup-floor" in refused.stderr


@pytest.mark.parametrize(
    ("command", "floor"),
    [(["serve"], 1.5), (["demo"], 1.0), (["serve", "--speedup-floor=1.2"], 1.2), (["demo", "--speedup-floor=2"], 2.0)],
    ids=["serve", "demo", "serve-1.2", "demo-2"],
)
def test_a_station_is_started_with_the_floor_and_the_demo_with_its_own(
    place: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], floor: float
) -> None:
    started: list[StationOptions] = []

    def start(options: StationOptions) -> int:
        started.append(options)
        return OK

    def show_off(given: dict[str, Any], seconds: float | None, seed: int) -> int:
        from console.cli.options import station_options

        return start(station_options(**given, free_port=True))

    monkeypatch.setattr("console.station.run.run", start)
    monkeypatch.setattr("console.cli.demo_run.run_headless", show_off)
    result = specdeck(*command, "--no-engine", "--port", str(free_port()), "--store", str(place / "store.duckdb"))
    assert result.exit_code == OK, result.output
    assert [options.speedup_floor for options in started] == [floor]
