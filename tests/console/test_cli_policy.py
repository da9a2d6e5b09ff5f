"""`specdeck policy` on a running station over a scripted engine: what is asked for is executed, and taken back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from console.cli.outcomes import BAD_INPUT, OK, UNREACHABLE
from console.cli.root import root
from engine.records import PolicyMode
from tests.console.station_harness import StationUnderTest, engine, until


def specdeck(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["policy", *arguments])


def told(*arguments: str) -> Any:
    result = specdeck(*arguments, "--json")
    assert result.exit_code == OK, result.output
    return json.loads(result.stdout)


@pytest.fixture
def station(place: Path) -> Iterator[StationUnderTest]:
    station = StationUnderTest(place, policy=PolicyMode(mode="static", k=4), calibrate=0.0)
    station.start()
    station.wait_serving()
    yield station
    station.close()


def executed(station: StationUnderTest) -> int | None:
    seen = station.snapshot()
    return None if seen is None else engine(seen).executed_k


def test_a_policy_is_set_executed_confirmed_and_undone_from_a_shell(station: StationUnderTest) -> None:
    result = specdeck("set", "static:2", "--cap", "3", "--why", "busy hour", "--json")
    made = json.loads(result.stdout)
    assert (made["policy"], made["cap"], made["confirm_by"]) == ({"mode": "static", "k": 2}, 3, None)
    assert "applied by e0 " in result.stderr
    until(lambda: executed(station) == 2, "the K that was asked for")

    waiting = told("set", "static:3", "--confirm", "1h", "--expect", str(made["version"]))
    shown = told("get")
    assert (shown["mode"], shown["cap"], shown["engines"][0]["policy_applied"]) == ("static:3", 3, waiting["version"])
    assert shown["unconfirmed"] == {
        "confirm_by": waiting["confirm_by"], "reverts_to": {"mode": "static", "k": 2}, "cap": 3, "fallback": False,
    }  # fmt: skip
    assert "else back to static:2, cap 3, fallback off" in specdeck("get").stdout
    assert told("confirm")["confirm_by"] is None
    assert specdeck("confirm").exit_code == BAD_INPUT

    assert told("undo")["policy"] == {"mode": "static", "k": 2}
    assert told("undo", str(made["version"]))["policy"] == {"mode": "static", "k": 4}
    refused = specdeck("undo", str(made["version"]))
    assert (refused.exit_code, "undone already" in refused.stderr) == (BAD_INPUT, True)
    texts = [entry["text"] for entry in told("history")["entries"]]
    assert texts[-1][5:] == " station: began with static:4"
    assert texts[-3][5:] == " operator: cap none → 3 (busy hour)"
    assert f"{made['version']}  " in specdeck("history").stdout


def test_what_waits_unconfirmed_is_taken_back_while_serving(station: StationUnderTest) -> None:
    assert specdeck("set", "off", "--confirm", "1s").exit_code == OK
    until(lambda: told("get")["mode"] == "static:4", "the policy before")
    until(lambda: executed(station) == 4, "the K before")
    assert "not confirmed within 1 s" in specdeck("history", "--limit", "1").stdout


def test_a_lane_holds_after_a_restart_of_station_and_engine(station: StationUnderTest) -> None:
    told("set", "--lane", "code=vanilla", "--lane", "a=b=vanilla")
    told("set", "--lane", "a=b=speculative")
    assert told("get")["lanes"] == {"code": "vanilla"}
    assert station.terminate() == 0
    (station.run_dir / "policy.json").unlink()
    station.start()
    until(lambda: told("get")["lanes"] == {"code": "vanilla"}, "the lane as it was")


WRONG = {
    "nothing": ((), "nothing to set"),
    "mode": (("static",), "whole number"),
    "word": (("fast",), "is no policy"),
    "cap": (("--cap", "-1"), "--cap -1"),
    "lane": (("--lane", "code=fast"), "WORKLOAD=vanilla"),
    "workload": (("--lane", "=vanilla"), "WORKLOAD=vanilla"),
    "span": (("off", "--confirm", "soon"), "no span of time"),
    "schedule": (("schedule:[[2,4,1]]",), "entry 1"),
}


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_meant_is_bad_input(name: str) -> None:
    arguments, words = WRONG[name]
    result = specdeck("set", *arguments)
    assert result.exit_code == BAD_INPUT
    assert words in result.stderr
    assert result.stdout == ""


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("command", ["get", "undo", "confirm", "history"])
def test_without_a_station_there_is_no_policy(command: str) -> None:
    result = specdeck(command)
    assert result.exit_code == UNREACHABLE
    assert result.stdout == ""


@pytest.mark.parametrize("command", ["get", "set", "undo", "confirm", "history"])
def test_each_command_has_an_example(command: str) -> None:
    assert "Example: specdeck policy" in specdeck(command, "--help").output
