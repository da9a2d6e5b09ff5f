"""The operating map as a station holds it, and a rehearsal that it starts: from a shell, over a scripted engine."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner, Result

from console.cli.outcomes import BAD_INPUT, OK, UNREACHABLE
from console.cli.root import root
from console.cli.station import ask
from console.feed.messages import RehearsalView, Snapshot
from console.feed.protocol import (
    FingerprintParams,
    History,
    HistoryParams,
    MapAnswer,
    MapPut,
    RehearsalStart,
    RehearsalStop,
    ReplayAct,
)
from console.picturing.alert_views import judged
from console.replaying.acts import replay_act
from console.replaying.opened import opened
from console.replaying.player import Player
from console.replaying.queries import map_get as map_then
from console.station.hardware_words import HardwareWords
from console.station.maps import Maps
from console.station.recorder import open_recorder
from engine.hardware import processor
from engine.records import EngineRecord, PolicyMode, Record
from store.judge.alerts import Alert
from store.operating_map.fingerprint import Fingerprint
from store.operating_map.keeping import control
from store.operating_map.records import OperatingMap
from store.trace import TraceWriter
from tests.console.station_harness import StationUnderTest, until
from tests.store.builders import T0, engine, row, sequence, step
from tests.store.operating_maps import HARDWARE, operating_map

REHEARSAL = [sys.executable, str(Path(__file__).with_name("scripted_rehearsal.py"))]


def specdeck(*arguments: str) -> Result:
    return CliRunner().invoke(root, arguments)


def held(folder: Path, *, kept: bool = True) -> Maps:
    """Of a station that starts on a store in which a map is recorded."""
    recorder = open_recorder(folder / "store.duckdb", lambda kind, text: None)
    recorder.start()
    if kept:
        recorder.put(control(operating_map(), T0, "rehearsal"))
    assert recorder.flush_and_wait()
    try:
        return Maps(recorder, HardwareWords(lambda engine: 2))
    finally:
        recorder.stop()


def test_the_map_that_an_earlier_station_kept_is_held_against_what_serves(tmp_path: Path) -> None:
    maps = held(tmp_path)
    assert maps.held == operating_map()

    def stale(record: EngineRecord | None) -> list[str]:
        view = maps.view(record)
        assert view is not None
        assert (view.id, view.plan, view.schedule) == (operating_map().id, "quick", operating_map().schedule)
        return view.stale

    runs = engine(hardware=HARDWARE)
    assert (stale(runs), stale(None)) == ([], [])
    assert stale(engine()) == [], "what it runs on is not known yet"
    changes: dict[str, Any] = {
        "target": "other", "drafter": "other", "hardware": "Other CPU", "tensor_parallel_size": 2, "max_k": 3,
        "max_num_seqs": 8, "max_model_len": 512, "max_num_batched_tokens": 9, "runner": "v2", "graph_mode": "NONE",
        "async_scheduling": True,
    }  # fmt: skip
    for field, value in changes.items():
        (difference,) = stale(msgspec.structs.replace(runs, **{field: value}))
        assert " now" in difference
    assert len(stale(msgspec.structs.replace(runs, vllm="0.33.0"))) == 2, "it is a part of the model version, too"
    assert stale(runs) == []


def test_a_picture_compares_only_what_is_another_by_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maps, asked = held(tmp_path), []
    monkeypatch.setattr("console.station.maps.stale", lambda *what: asked.append(what) or ["x"])
    runs = engine(hardware=HARDWARE)
    for record in (runs, runs, runs, None, None, runs):
        maps.view(record)
    assert len(asked) == 3


def test_where_no_map_was_made_none_is_shown(tmp_path: Path) -> None:
    assert held(tmp_path, kept=False).view(engine()) is None


def test_its_alert_is_shown_from_the_judge_so_that_it_can_be_acknowledged() -> None:
    fields: Any = {"engine": "e0", "bucket": None, "state": "firing", "pending_since": T0, "started": T0}
    stale = Alert(id=3, kind="map_stale", severity="info", evidence={"map": "m", "differs": "runner: a"}, **fields)
    (shown,) = judged([stale, Alert(id=4, kind="engine_down", severity="critical", **fields)])
    assert (shown.id, shown.severity) == (3, "info")
    assert "engine e0: the operating map m is of something else than what runs (runner: a) since" in shown.text


async def test_the_machine_is_asked_once_and_only_where_the_engine_does_not_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []

    def answer(*what: Any) -> str:
        asked.append(what)
        return "a CPU"

    monkeypatch.setattr("console.station.hardware_words.processor", answer)
    words = HardwareWords(lambda engine: 2)
    assert await words.ask(engine(hardware=HARDWARE)) == HARDWARE
    assert words.of(engine()) is None
    assert [await words.ask(engine()) for _ in range(3)] == ["a CPU"] * 3
    assert words.of(engine()) == "a CPU"
    assert asked == [("cpu", 2)]


@pytest.fixture(scope="module")
def station() -> Iterator[StationUnderTest]:
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name, pytest.MonkeyPatch.context() as patch:
        for variable, part in (("RUNTIME", "run"), ("DATA", "data"), ("CACHE", "cache")):
            patch.setenv(f"SPECDECK_{variable}_DIR", str(Path(name) / part))
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]))
        station = StationUnderTest(Path(name), rehearse_command=REHEARSAL)
        station.start()
        station.wait_serving()
        yield station
        station.close()


@pytest.fixture(scope="module")
def made(station: StationUnderTest) -> OperatingMap:
    """A map of what runs, not put yet."""
    now = ask("fingerprint", Fingerprint, FingerprintParams())
    return operating_map(fingerprint=now, schedule=[(1, 1, 3), (2, 32, 1)])


def refused(*arguments: str, words: str) -> None:
    result = specdeck("policy", "set", "map", *arguments)
    assert (result.exit_code, result.stdout) == (BAD_INPUT, "")
    assert words in result.stderr


def put(made: OperatingMap) -> MapAnswer:
    return ask("map_put", MapAnswer, MapPut(map=made))


def rehearsal(state: str) -> Callable[[Snapshot], bool]:
    return lambda seen: seen.rehearsal is not None and seen.rehearsal.state == state


def test_the_fingerprint_is_of_the_engine_as_it_runs(station: StationUnderTest, made: OperatingMap) -> None:
    assert made.fingerprint.hardware == processor("cpu")
    assert (made.fingerprint.topology, made.fingerprint.max_k, made.fingerprint.vllm) == ("1/1/1", 4, "0.32.0")
    with pytest.raises(click.ClickException, match="no engine 'e7'"):
        ask("fingerprint", Fingerprint, FingerprintParams(engine="e7"))


def test_a_map_is_put_shown_refused_forced_and_put_in_force(station: StationUnderTest, made: OperatingMap) -> None:
    assert ask("map_get", MapAnswer) == MapAnswer(map=None, engine="e0")
    refused(words="there is no operating map yet")

    with pytest.raises(click.ClickException, match="is none of the map's workloads"):
        put(msgspec.structs.replace(made, workloads=[]))
    with pytest.raises(click.ClickException, match="map_put"):
        ask("map_put", MapAnswer, RehearsalStart(plan="no map"))
    assert ask("map_get", MapAnswer).map is None

    put(msgspec.structs.replace(made, schedule=None))
    refused("--force", words="proposes no schedule")

    other = msgspec.structs.replace(made, fingerprint=msgspec.structs.replace(made.fingerprint, hardware="Other CPU"))
    assert put(other).stale == [f"hardware: Other CPU then, {made.fingerprint.hardware} now"]
    refused(words="hardware: Other CPU then")
    before = ask("snapshot", Snapshot)
    assert before.map is not None
    assert before.map.stale == put(other).stale
    assert before.policy == PolicyMode(mode="static", k=4)
    forced = specdeck("policy", "set", "map", "--force", "--why", "I know")
    assert (forced.exit_code, "forced, though" in forced.stderr) == (OK, True)
    assert specdeck("policy", "undo").exit_code == OK

    assert put(made).stale == []
    result = specdeck("policy", "set", "map", "--confirm", "1h")
    assert result.exit_code == OK
    seen = ask("snapshot", Snapshot)
    assert seen.policy == PolicyMode(mode="schedule", schedule=[(1, 1, 3), (2, 32, 1)])
    assert seen.unconfirmed is not None
    assert seen.map is not None
    assert (seen.map.id, seen.map.stale) == (made.id, [])
    texts = [entry.text for entry in ask("policy_history", History, HistoryParams()).entries]
    assert f"(operating map {made.id})" in texts[0]
    assert any(f"(operating map {made.id}: I know)" in text for text in texts)
    entry = next(one for one in ask("policy_history", History, HistoryParams()).entries if one.action == "map")
    assert (entry.numbers, f"operating map {made.id}: 1 of 2 loads measured" in entry.text) == (None, True)
    assert any(made.id in event.text for event in seen.events)

    with pytest.raises(click.ClickException, match="waits to be confirmed"):
        ask("rehearsal_start", RehearsalView, RehearsalStart(plan="quick"))
    assert specdeck("policy", "confirm").exit_code == OK


def test_what_can_not_be_forced_is_said() -> None:
    result = specdeck("policy", "set", "static:4", "--force")
    assert (result.exit_code, "only `specdeck policy set map`" in result.stderr) == (BAD_INPUT, True)


@pytest.mark.usefixtures("place")
def test_without_a_station_there_is_no_map() -> None:
    assert specdeck("policy", "set", "map").exit_code == UNREACHABLE


def test_of_two_starts_at_once_one_goes_on_and_an_interrupt_ends_it(station: StationUnderTest) -> None:
    def start(_: int) -> str:
        try:
            return ask("rehearsal_start", RehearsalView, RehearsalStart(plan="long")).state
        except click.ClickException as error:
            return error.message

    with ThreadPoolExecutor(2) as pool:
        answers = sorted(pool.map(start, range(2)))
    assert answers[1] == "starting"
    assert answers[0].startswith("a rehearsal goes on already")
    seen = station.wait(rehearsal("running"), "its progress")
    assert seen.rehearsal is not None
    assert seen.rehearsal.id == "20260921T120000Z-long"
    processes = specdeck("status", "--json")
    assert f'"pid":{seen.rehearsal.pid}' in processes.stdout.replace(" ", "")
    view = ask("rehearsal_stop", RehearsalView, RehearsalStop())
    assert "gives the policy back" in view.note
    station.wait(rehearsal("stopped"), "its last word")
    assert (station.run_dir / "given-back").exists()
    (station.run_dir / "given-back").unlink()


def test_a_killed_one_has_failed(station: StationUnderTest) -> None:
    until(lambda: not (station.run_dir / "rehearsal.json").exists(), "the end of the one before")
    view = ask("rehearsal_start", RehearsalView, RehearsalStart(plan="mute"))
    assert view.pid is not None
    os.kill(view.pid, signal.SIGKILL)
    seen = station.wait(rehearsal("failed"), "that it is gone")
    assert seen.rehearsal is not None
    assert "without a last word: SIGKILL" in seen.rehearsal.note
    log = station.data_dir / "logs" / "rehearsal.log"
    assert log.exists()


def test_the_map_is_found_after_a_restart_before_which_a_rehearsal_was_interrupted(
    station: StationUnderTest, made: OperatingMap
) -> None:
    ask("rehearsal_start", RehearsalView, RehearsalStart(plan="long"))
    station.wait(rehearsal("running"), "its progress")
    assert station.terminate() == 0
    assert (station.run_dir / "given-back").exists(), station.output()[-2000:]
    assert not (station.run_dir / "rehearsal.json").exists()
    station.start()
    assert ask("map_get", MapAnswer).map == made


def test_a_replay_shows_the_map_that_held_then(tmp_path: Path) -> None:
    records: list[Record] = [engine(hardware=HARDWARE), sequence("a"), *(step(n, [row()], T0 + n) for n in range(30))]
    records += [control(operating_map(), T0 + 10, "rehearsal"), control(operating_map(id="next"), T0 + 15, "rehearsal")]
    records += [engine(T0 + 20, drafter="other", boot="b2"), engine(T0 + 25, engine="v0", max_k=0)]
    with TraceWriter(tmp_path / "a.jsonl") as writer:
        for record in sorted(records, key=lambda one: one.ts):
            writer.write(record)
    with opened(tmp_path / "a.jsonl", None, lambda: None) as source:
        until(lambda: source.complete, "the whole trace")
        player = Player(source)
        found = []
        for ts in (5, 12, 16, 29):
            replay_act(player, ReplayAct(act="seek", ts=T0 + ts))
            shown = player.take().map
            found.append(None if shown is None else (shown.id, len(shown.stale)))
            answer = map_then(player, None)
            assert found[-1] == (None if answer.map is None else (answer.map.id, len(answer.stale)))
    assert found == [None, (operating_map().id, 0), ("next", 0), ("next", 1)]
