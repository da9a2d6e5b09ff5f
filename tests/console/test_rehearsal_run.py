"""Whole rehearsals over a stand-in engine: on a running station, on one of its own, killed in the middle, resumed."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from console.cli import rehearse_choice
from console.cli.leftovers import living
from console.cli.options import station_options
from console.cli.station import ask
from console.feed.messages import DemoTrafficView, RehearsalView
from console.feed.protocol import DemoStart, RehearsalStart
from console.station.options import StationOptions
from engine.records import PolicyMode, SequenceRecord, StepRecord
from store.database import Store
from store.operating_map.keeping import last_map
from store.operating_map.records import OperatingMap
from store.rehearsal.records import DrawnRequest, Outcome, Pass, Rehearsal
from store.trace import read_records
from tests.console.rehearsal_plan import write_plan
from tests.console.rehearsing_station import ENGINE, RehearsingStation, invoked, rehearsing_station
from tests.console.station_harness import until

STATIC = PolicyMode(mode="static", k=4)


@pytest.fixture(scope="module")
def station() -> Iterator[RehearsingStation]:
    with rehearsing_station() as running:
        yield running


def rehearsals(data: Path) -> list[Path]:
    return sorted((data / "rehearsals").glob("*"))


def passes(folder: Path) -> dict[str, Pass]:
    found = (
        (path.parent.name, msgspec.json.decode(path.read_bytes(), type=Pass))
        for path in folder.glob("passes/*/pass.json")
    )
    return dict(sorted(found))


def lines(path: Path, kind: type[Any]) -> list[Any]:
    return [msgspec.json.decode(line, type=kind) for line in path.read_bytes().splitlines()]


def read(folder: Path) -> Rehearsal:
    return msgspec.json.decode((folder / "rehearsal.json").read_bytes(), type=Rehearsal)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def figures(report: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Of a report what does not depend on the clock."""
    return [
        (part["arm"], part["phase"], part["workload"], part["requests"], part["output_tokens"], part["errors"])
        for part in report["result"]["parts"]
    ]


def test_killed_in_the_middle_and_resumed_it_reports_the_same(station: RehearsingStation) -> None:
    plan = str(write_plan(station.folder, "k0", "k2"))
    data = station.station.data_dir
    whole = station.run("rehearse", plan, "--json")
    assert whole.code == 0, whole
    (first,) = rehearsals(data)

    process = station.spawn("rehearse", plan, "--json")
    until(lambda: len(rehearsals(data)) == 2, "the second rehearsal")
    second = rehearsals(data)[-1]
    until(lambda: (second / "passes" / "02-k2-r1" / "outcomes.jsonl").exists(), "its second pass")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = {name: content(second / "passes" / name) for name in passes(second)}
    assert list(kept) == ["01-k0-r1"]
    assert station.run("rehearse", "--list").stdout.splitlines()[-1].split()[1] == "stopped"

    resumed = station.run("rehearse", "--resume", "--json")
    assert resumed.code == 0, resumed
    assert "that a killed rehearsal had borrowed was given back" in resumed.stderr
    assert {name: content(second / "passes" / name) for name in kept} == kept
    assert list(passes(second)) == list(passes(first)) == ["01-k0-r1", "02-k2-r1"]
    for name in passes(first):
        requests = [(one / "passes" / name / "requests.jsonl").read_bytes() for one in (first, second)]
        assert requests[0] == requests[1]
    assert figures(resumed.json) == figures(whole.json)
    seen = station.snapshot()
    assert (seen.policy, seen.unconfirmed) == (STATIC, None)
    assert seen.map is not None
    assert seen.map.id == second.name
    again = station.run("rehearse", "--report", "--json")
    assert again.json["result"] == resumed.json["result"]


def test_a_pass_is_what_its_arm_says_and_its_trace_is_its_own(station: RehearsingStation) -> None:
    """Of the rehearsal before: traffic, policy and records of one pass fit together."""
    folder = rehearsals(station.station.data_dir)[0]
    for name, made in passes(folder).items():
        place = folder / "passes" / name
        outcomes = lines(place / "outcomes.jsonl", Outcome)
        assert [one.id for one in lines(place / "requests.jsonl", DrawnRequest)] == sorted(one.id for one in outcomes)
        assert all(one.error is None for one in outcomes)
        assert (made.policy, made.others) == (PolicyMode(mode="static", k=int(made.arm[1:])), 0)
        records = list(read_records(place / "trace.jsonl.zst"))
        sequences = [one for one in records if isinstance(one, SequenceRecord) and one.ts >= made.start]
        assert len(sequences) == len(outcomes)
        assert {one.workload for one in sequences} == {"rehearsal/code", "rehearsal/chat"}
        steps = [one for one in records if isinstance(one, StepRecord)]
        assert {one.k_draft for one in steps} == {int(made.arm[1:])}
        assert made.start <= min(one.ts for one in steps)
        assert sum(row.emitted for one in steps for row in one.rows) == sum(one.output_tokens for one in outcomes)


def test_an_interrupt_gives_the_policy_back_and_says_how_to_go_on(station: RehearsingStation) -> None:
    process = station.spawn("rehearse", str(write_plan(station.folder, "k0", "k2", seconds=5.0)))
    until(lambda: station.snapshot().policy == PolicyMode(mode="static", k=0), "the policy of the first pass")
    until(lambda: (view := station.snapshot().rehearsal) is not None and view.sent > 0, "its traffic")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130, said
    assert f"--resume {rehearsals(station.station.data_dir)[-1].name}" in said
    seen = station.snapshot()
    assert (seen.policy, seen.unconfirmed) == (STATIC, None)
    assert seen.rehearsal is not None
    assert seen.rehearsal.state == "stopped"


@pytest.mark.parametrize(
    ("set_to", "named"), [(PolicyMode(mode="off"), "off"), (PolicyMode(mode="static", k=1), "static:1")]
)
def test_what_the_operator_sets_meanwhile_stands_and_the_rehearsal_stops(
    station: RehearsingStation, set_to: PolicyMode, named: str
) -> None:
    process = station.spawn("rehearse", str(write_plan(station.folder, "k0", "k2")))
    until(lambda: station.snapshot().policy == PolicyMode(mode="static", k=0), "the policy of the first pass")
    station.policy(policy=set_to)
    _, said = process.communicate(timeout=60)
    try:
        assert process.returncode == 3, said
        assert f"was changed to {named} by somebody else meanwhile" in said
        assert station.snapshot().policy == set_to
    finally:
        station.policy(policy=STATIC)


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (("nonsense",), 2, "there is no plan"),
        (("smoke", "--model", "x"), 2, "leave out --model"),
        (("WITHOUT",), 2, "--no-without"),
        (("BEYOND",), 2, "k9"),
        (("--resume", "yesterday"), 2, "no rehearsal yesterday"),
        (("smoke", "--list"), 2, "takes no plan"),
        (("--list", "--dry-run"), 2, "different things"),
        (("--schedule", "[[1,2,0]]"), 2, "--fallback-test"),
    ],
)
def test_what_can_not_be_meant_is_refused_before_anything_begins(
    station: RehearsingStation, arguments: tuple[str, ...], code: int, why: str
) -> None:
    arms = {"WITHOUT": ("without", "k0"), "BEYOND": ("k0", "k9")}
    typed = [str(write_plan(station.folder, *arms[one])) if one in arms else one for one in arguments]
    before = (rehearsals(station.station.data_dir), station.snapshot().policy_version)
    done = station.run("rehearse", *typed)
    assert (done.code, done.stdout) == (code, ""), done
    assert why in done.stderr
    assert (rehearsals(station.station.data_dir), station.snapshot().policy_version) == before


def test_a_cap_in_the_way_is_told_and_nothing_begins(station: RehearsingStation) -> None:
    station.policy(cap=1)
    try:
        done = station.run("rehearse", str(write_plan(station.folder, "k0", "k2")))
        assert done.code == 3
        assert "the operator's cap is 1: K 2" in done.stderr
    finally:
        station.policy(cap=None)


def test_a_dry_run_starts_nothing(place: Path) -> None:
    plan = str(write_plan(place, "without", "k0", "k2", "proposed", repeats=2, fallback_test=True))
    done = invoked("rehearse", plan, "--dry-run", "--json")
    assert done.code == 0, done
    assert done.json["passes"] == [
        ["k0", 1], ["k2", 1], ["without", 1], ["without", 2], ["proposed", 2], ["k2", 2], ["k0", 2],
    ]  # fmt: skip
    assert (done.json["engine_starts"], done.json["fallback_test"]) == (3, True)
    assert all(count > 5 for count in done.json["requests"])
    assert "about" in invoked("rehearse", plan, "--dry-run").stdout
    shown = invoked("rehearse", "--show-plan", plan)
    (place / "again.toml").write_text(shown.stdout)
    assert invoked("rehearse", "--show-plan", str(place / "again.toml")).stdout == shown.stdout
    assert invoked("rehearse", "--list").stdout == "no rehearsal was made yet\n"
    assert rehearsals(place / "data") == []


def stand_ins(**given: Any) -> StationOptions:
    made = station_options(**given)
    return msgspec.structs.replace(made, engine_command=ENGINE, vanilla_command=[*ENGINE, "--vanilla"])


ON_STAND_INS = """
import sys
from console.cli import rehearse_choice
from tests.console.test_rehearsal_run import stand_ins
rehearse_choice.station_options = stand_ins
from console.cli import main
main()
"""


def test_without_a_station_it_has_engines_of_its_own_and_leaves_none(place: Path) -> None:
    """Killed in its first pass, too: what it left running is ended by the resumed one."""
    plan = str(write_plan(place, "without", "k2", fallback_test=True))
    root = str(Path(__file__).parents[2])
    argv = [ENGINE[0], "-c", ON_STAND_INS, "rehearse", plan, "--max-num-seqs", "16"]
    process = subprocess.Popen(argv, cwd=root, stderr=subprocess.DEVNULL)
    until(lambda: list(rehearsals(place / "data")) != [], "the rehearsal")
    (folder,) = rehearsals(place / "data")
    until(lambda: (folder / "passes" / "01-k2-r1" / "outcomes.jsonl").exists(), "its first pass")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert set(living()) == {"station", "gateway", "engine-e0"}
    assert invoked("rehearse", "--resume", "--max-k", "2").code == 2

    out = place / "out.md"
    done = invoked("rehearse", "--resume", "--out", str(out), "--json")
    assert done.code == 0, done
    assert "a rehearsal that was killed has left its station running" in done.stderr
    assert living() == {}
    assert rehearsals(place / "data") == [folder]
    assert list(passes(folder)) == ["01-k2-r1", "02-without-r1"]
    rehearsal = read(folder)
    assert (rehearsal.host, rehearsal.prefix, rehearsal.ended is not None) == ("own", "", True)
    assert rehearsal.fallback is not None
    assert rehearsal.fallback.passed
    assert rehearsal.fallback.acceptance_after == rehearsal.fallback.acceptance_before is not None
    assert min(rehearsal.fallback.draft_steps) > 30
    assert passes(folder)["02-without-r1"].policy is None
    steps = [
        one for one in read_records(folder / "passes/02-without-r1/trace.jsonl.zst") if isinstance(one, StepRecord)
    ]
    assert {row.drafted for step in steps for row in step.rows} == {0}
    assert done.json["map"]["id"] == folder.name
    assert json.loads((folder / "report.json").read_bytes()) == done.json
    assert (folder / "report.md").read_text() == out.read_text() != ""
    kept = msgspec.json.decode((folder / "map.json").read_bytes(), type=OperatingMap)
    with Store.open(place / "data" / "specdeck.duckdb", read_only=True) as store:
        assert last_map(store.connection) == kept
        assert store.connection.execute("SELECT count(*) FROM steps").fetchone() == (0,)


def test_an_engine_that_does_not_start_is_told_with_its_log_and_nothing_is_left(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(**given: Any) -> StationOptions:
        said = "import sys; sys.exit('RuntimeError: no such kernel')"
        return msgspec.structs.replace(stand_ins(**given), engine_command=[ENGINE[0], "-c", said])

    monkeypatch.setattr(rehearse_choice, "station_options", broken)
    done = invoked("rehearse", str(write_plan(place, "k0", "k2")))
    assert done.code == 3
    assert "engine e0 does not start" in done.stderr
    assert "engine-e0.log" in done.stderr
    assert (living(), rehearsals(place / "data")) == ({}, [])


def test_the_demos_traffic_is_answered_and_counted_under_its_own_workloads(station: RehearsingStation) -> None:
    asked = ask("demo_start", DemoTrafficView, DemoStart(seconds=2.0))
    assert asked.state == "waiting"
    with pytest.raises(click.ClickException, match="would spoil it"):
        ask("rehearsal_start", RehearsalView, RehearsalStart(plan="smoke"))
    over = station.station.wait(lambda seen: seen.demo is not None and seen.demo.state == "over", "its end")
    assert over.demo is not None
    assert over.demo.done == over.demo.sent > 3
    assert {"demo-code", "demo-repeat", "demo-chat", "demo-creative"} <= {one.key.workload for one in over.buckets}
