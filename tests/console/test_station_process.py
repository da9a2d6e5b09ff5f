"""A station as a process, over an engine that only speaks (scripted_engine.py): records, adopts, restarts, stops.

The engine is scripted because these tests are about the station; what the real one says is tested elsewhere.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import zmq

from console.cli.outcomes import BadInput
from console.cli.station import ask
from console.feed.bucket_detail import BucketDetail, BucketDetailParams
from console.feed.messages import Series
from console.feed.protocol import (
    LogChunk,
    LogParams,
    PolicyResult,
    PolicySet,
    ProcessesResult,
    RestartParams,
    SeriesParams,
    StopParams,
)
from engine.records import PolicyMode
from engine.sockets import Sockets, ipc
from store.figures import Report, Window
from tests.console.station_harness import StationUnderTest, engine, living, start_own_engine, until

OFF = PolicyMode(mode="off")

MakeStation = Callable[..., StationUnderTest]


@pytest.fixture
def make_station(monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeStation]:
    """Stations in one private place; whatever is left at the end is ended."""
    made: list[StationUnderTest] = []
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name:
        directory = Path(name)
        for variable, folder in (("RUNTIME", "run"), ("DATA", "data"), ("CACHE", "cache")):
            monkeypatch.setenv(f"SPECDECK_{variable}_DIR", str(directory / folder))

        def make(**overrides: Any) -> StationUnderTest:
            made.append(StationUnderTest(directory, **overrides))
            return made[-1]

        yield make
        for station in made:
            station.close()


def stored(station: StationUnderTest, query: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(station.store), read_only=True) as connection:
        return connection.execute(query).fetchall()


def test_rows_of_an_engine_reach_the_snapshot_and_on_sigterm_the_store(make_station: MakeStation) -> None:
    station = make_station().start()
    seen = station.wait_serving()
    assert {bucket.key.workload for bucket in seen.buckets} == {"code", "chat"}
    assert engine(seen).executed_k == 4
    assert engine(seen).policy_applied == seen.policy_version
    assert engine(seen).mismatch is None
    assert seen.store.recording
    pids = [station.engine_pid(), station.managed("gateway").pid, *station.managed("engine-e0").state.members[0][:1]]
    rows = station.wait(lambda shown: shown.store.rows > 50, "fifty rows").store.rows
    assert station.terminate() == 0
    assert living(pids) == []
    ((count,),) = stored(station, "SELECT count(*) FROM rows")
    assert count >= rows
    assert stored(station, "SELECT count(*), max(frames_lost) FROM gaps") == [(0, None)]


def test_the_policy_is_applied_recorded_and_refused_on_an_outdated_picture(make_station: MakeStation) -> None:
    station = make_station().start()
    before = station.wait_serving()
    result = ask("policy_set", PolicyResult, PolicySet(policy=OFF, expect=before.policy_version, why="too slow"))
    assert result.version == before.policy_version + 1
    after = station.wait(lambda seen: engine(seen).executed_k == 0, "the policy in frames")
    assert engine(after).policy_applied == result.version
    assert engine(after).executed_limit == "off"
    with pytest.raises(BadInput, match="look again"):
        ask("policy_set", PolicyResult, PolicySet(policy=OFF, expect=before.policy_version))
    with pytest.raises(BadInput, match=r"policy\.k"):
        ask("policy_set", PolicyResult, PolicySet(policy=PolicyMode(mode="static")))
    station.terminate()
    ((actor, action, old, new, version, why),) = stored(
        station, "SELECT actor, action, before, after, policy, why FROM controls WHERE action <> 'begin'"
    )
    assert (actor, action, version, why) == ("operator", "mode", result.version, "too slow")
    assert '"static"' in old
    assert '"off"' in new


def test_a_new_station_adopts_engine_and_gateway_of_one_that_was_killed(make_station: MakeStation) -> None:
    station = make_station().start()
    station.wait_serving()
    ask("policy_set", PolicyResult, PolicySet(policy=PolicyMode(mode="static", k=2)))
    left = station.wait(lambda seen: engine(seen).executed_k == 2, "K 2")
    engine_pid, gateway_pid = station.engine_pid(), station.managed("gateway").pid
    assert ask("report", Report).buckets, "a report flushes what was taken in"
    rows = left.store.rows
    station.kill()
    assert living([engine_pid, gateway_pid]) == [engine_pid, gateway_pid]

    station.start()
    seen = station.wait_serving()
    assert seen.station != left.station
    assert station.engine_pid() == engine_pid
    assert station.managed("gateway").pid == gateway_pid
    assert engine(seen).restarts == 0
    assert seen.policy_version > left.policy_version
    assert seen.total is not None
    assert seen.total.window is not None
    assert seen.total.window.start < seen.started, "what the station before it recorded is shown"
    assert seen.store.rows >= rows
    applied = station.wait(
        lambda now: engine(now).policy_applied == now.policy_version and engine(now).executed_k is not None,
        "the new station's policy, and a step after it",
    )
    assert engine(applied).executed_k == 2, "the adopted engine keeps its policy"
    assert {bucket.key.workload for bucket in seen.buckets} == {"code", "chat"}, "live sequences keep their tags"
    assert station.terminate() == 0
    assert stored(station, "SELECT count(*) FROM buckets WHERE workload = 'unattributed'") == [(0,)]


@pytest.mark.parametrize("victim", ["api server", "member"])
def test_each_engine_process_killed_alone_leads_to_a_clean_restart_and_a_gap(
    make_station: MakeStation, victim: str
) -> None:
    station = make_station().start()
    station.wait_serving()
    process = until(
        lambda: station.managed("engine-e0") if station.managed("engine-e0").state.members else None, "members"
    )
    old = [process.pid, *(pid for pid, _ in process.state.members)]
    assert len(old) == 3
    os.kill(old[0] if victim == "api server" else old[1], signal.SIGKILL)
    seen = station.wait(
        lambda now: (
            engine(now).restarts == 1 and engine(now).state == "serving" and engine(now).last_frame_age is not None
        ),
        "a restart",
    )
    assert living(old) == []
    assert any(alert.kind == "engine_down" for alert in seen.alerts)
    assert any("died" in event.text for event in seen.events)
    station.wait(lambda now: now.loss.gaps >= 1, "the outage as a gap")
    station.terminate()
    gaps = stored(station, "SELECT since < ts, frames_lost, reason FROM gaps WHERE reason LIKE '%died%'")
    assert [(ordered, lost) for ordered, lost, _ in gaps] == [(True, 0)]


def test_a_killed_gateway_is_back_at_once(make_station: MakeStation) -> None:
    station = make_station().start()
    first = station.wait(lambda seen: seen.gateway is not None and seen.gateway.state == "serving", "the gateway")
    assert first.gateway is not None
    assert first.gateway.pid is not None
    os.kill(first.gateway.pid, signal.SIGKILL)
    station.wait(
        lambda seen: (
            seen.gateway is not None and seen.gateway.state == "serving" and seen.gateway.pid != first.gateway.pid  # type: ignore[union-attr]
        ),
        "another gateway",
    )


def test_a_second_station_is_told_who_holds_the_place(make_station: MakeStation) -> None:
    station = make_station(engine=False).start()
    assert station.process is not None
    second = make_station(engine=False)
    refused = subprocess.run(
        [sys.executable, "-m", "console.station", str(station.run_dir.parent / "options.json")],
        capture_output=True,
        text=True,
    )
    assert refused.returncode == 3
    assert f"pid {station.process.pid}" in refused.stderr
    assert str(station.store) in refused.stderr
    assert second.snapshot() is not None, "the first one goes on"


def test_a_station_elsewhere_on_the_same_store_is_told_who_holds_it(make_station: MakeStation, tmp_path: Path) -> None:
    station = make_station(engine=False).start()
    assert station.process is not None
    refused = subprocess.run(
        [sys.executable, "-m", "console.station", str(station.run_dir.parent / "options.json")],
        capture_output=True,
        text=True,
        env={**os.environ, "SPECDECK_RUNTIME_DIR": tempfile.mkdtemp(prefix="sd-", dir=tmp_path)},
    )
    assert refused.returncode == 3
    assert str(station.process.pid) in refused.stderr


def test_messages_that_are_no_frames_are_counted_and_harm_nothing(make_station: MakeStation) -> None:
    station = make_station().start()
    station.wait_serving()
    with zmq.Context() as context, context.socket(zmq.PUSH) as push:
        push.setsockopt(zmq.LINGER, 5000)
        push.connect(ipc(Sockets(station.run_dir).telemetry))
        for payload in (b"", b"\xff" * 50, b"\x93\xa5frame\x01\x02", os.urandom(500)):
            push.send(payload)
        push.send_multipart([b"two", b"parts"])
    seen = station.wait(lambda now: now.loss.broken_messages == 5, "five broken messages")
    assert any(alert.kind == "telemetry_loss" for alert in seen.alerts)
    rows = seen.store.rows
    station.wait(lambda now: now.store.rows > rows, "recording that goes on")


def test_an_engine_of_somebody_else_appears_and_is_only_advised(make_station: MakeStation) -> None:
    station = make_station(engine=False).start()
    own = start_own_engine(station.run_dir, "mine")
    try:
        seen = station.wait(lambda now: any(view.engine == "mine" for view in now.engines) and bool(now.buckets), "it")
        view = engine(seen, "mine")
        advised = PolicyMode(mode="adaptive", schedule=[(1, 8, 4)], act=False)
        assert (view.owned, view.state, view.configured) == (False, "serving", advised)
        assert (view.executed_k, view.mismatch) == (4, None), "it executes what it was launched with"
        with pytest.raises(BadInput, match="did not start this engine"):
            ask("engine_restart", type(None), RestartParams(engine="mine"))
        result = ask("policy_set", PolicyResult, PolicySet(policy=OFF))
        applied = station.wait(lambda now: engine(now, "mine").executed_k == 0, "the operator's policy")
        assert engine(applied, "mine").policy_applied == result.version
        assert station.terminate() == 0
        assert own.poll() is None, "it is not ours to end"
    finally:
        own.kill()
        own.wait()


def test_stop_of_the_station_alone_leaves_engine_and_gateway_serving(make_station: MakeStation) -> None:
    station = make_station().start()
    station.wait_serving()
    pids = [station.engine_pid(), station.managed("gateway").pid]
    ask("stop", type(None), StopParams(everything=False))
    assert station.process is not None
    assert station.process.wait(60) == 0
    assert living(pids) == pids


def test_the_feed_tells_log_series_and_processes(make_station: MakeStation) -> None:
    station = make_station().start()
    seen = station.wait_serving()
    key = seen.buckets[0].key
    parts = (key.workload, key.context, key.temperature, key.model_version)
    ask("span", Window)  # what came until now is stored with that
    series = ask("series", Series, SeriesParams(key=parts, seconds=120, points=12, detail=True))
    assert any(point.alpha is not None and point.sequences for point in series.points)
    detail = ask("bucket_detail", BucketDetail, BucketDetailParams(key=parts))
    assert [one.k for one in detail.measured if one.rows]
    assert detail.absent["level"].startswith("no baseline yet")
    assert ask("engine_log", LogChunk, LogParams()).path.endswith("engine-e0.log")
    processes = ask("processes", ProcessesResult).processes
    assert {process.role for process in processes} >= {"station", "gateway", "engine e0", "VLLM::Worker"}
    assert all(process.pid and process.alive for process in processes)


def test_a_restart_asked_for_by_the_operator_happens_without_a_pause(make_station: MakeStation) -> None:
    station = make_station().start()
    station.wait_serving()
    pid = station.engine_pid()
    ask("engine_restart", type(None), RestartParams("e0"))
    station.wait(lambda seen: engine(seen).state == "serving" and engine(seen).restarts == 1, "the restart")
    assert living([pid]) == []


def test_an_options_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    refused = subprocess.run(
        [sys.executable, "-m", "console.station", str(tmp_path / "nothing.json")], capture_output=True, text=True
    )
    assert refused.returncode == 2
    assert "nothing.json" in refused.stderr


def test_an_engine_that_died_while_no_station_looked_leaves_a_gap(make_station: MakeStation) -> None:
    station = make_station().start()
    station.wait_serving()
    station.wait(lambda seen: seen.store.rows > 100, "rows in the store")
    process = station.managed("engine-e0")
    station.kill()
    os.kill(process.pid, signal.SIGKILL)
    station.start()
    seen = station.wait(lambda now: now.loss.gaps == 1, "the outage as a gap")
    assert station.engine_pid() != process.pid
    assert engine(seen).restarts == 0
    assert living([pid for pid, _ in process.state.members]) == [], "nothing of the dead engine is left"
    station.terminate()
    ((since, until, reason),) = stored(station, "SELECT since, ts, reason FROM gaps")
    assert since < until
    assert "down" in reason
