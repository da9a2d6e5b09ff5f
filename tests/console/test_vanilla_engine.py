"""A second engine without speculation beside the first: it serves its lane, comes and goes by itself, and is ended with
everything else. Both are scripted (scripted_engine.py) and answer each request with their id."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import msgspec
import pytest

from console.cli.leftovers import living as left_running
from console.cli.options import station_options
from console.cli.outcomes import BadInput
from console.cli.station import ask
from console.cli.status_text import describe, status_object
from console.cli.stop import end_everything
from console.feed.messages import GatewayView, Snapshot
from console.feed.protocol import PolicyResult, PolicySet, ProcessesResult, RestartParams
from console.feed.vanilla_lane import vanilla_lane
from console.station.options import StationOptions
from console.station.own_engines import Turn
from console.station.vanilla_engine import half_the_cores
from engine.launch import SpecError, command, validate
from engine.models import ModelPath
from engine.records import PolicyMode
from tests.console import scenes
from tests.console.station_harness import StationUnderTest, engine, free_port, living, until

LANE = {"x-workload": "hostile"}
OFF = PolicyMode(mode="off")


def both_serve(seen: Snapshot) -> bool:
    return (
        {view.engine for view in seen.engines} == {"e0", "v0"}
        and all(view.state == "serving" and view.executed_k is not None for view in seen.engines)
        and seen.gateway is not None
        and seen.gateway.vanilla_ok is True
    )


def served_by(station: StationUnderTest, headers: dict[str, str], **fields: Any) -> str:
    """The engine that answered, or the status where none did."""
    url = f"{station.options.base_url}/v1/completions"
    answer = httpx.post(url, json={"prompt": "a", **fields}, headers=headers, timeout=30.0, trust_env=False)
    if answer.status_code != 200:
        return str(answer.status_code)
    name: str = answer.json()["engine"]
    assert (answer.headers.get("x-specdeck-lane") == "vanilla") == (name == "v0")
    return name


def test_the_lane_goes_to_it_and_back_when_it_is_killed_and_a_new_station_adopts_both(place: Path) -> None:
    station = StationUnderTest(place, vanilla_engine=True).start()
    try:
        seen = station.wait(both_serve, "both engines")
        assert (engine(seen).executed_k, engine(seen, "v0").executed_k) == (4, 0)
        second = engine(seen, "v0")
        assert (second.owned, second.configured, second.mismatch, second.method) == (True, OFF, None, "none")
        assert engine(seen).configured == PolicyMode(mode="static", k=4)
        ask("policy_set", PolicyResult, PolicySet(lanes={"hostile": "vanilla"}))
        wanted = ["v0", "v0", "v0", "e0"]
        until(lambda: _who_serves(station) == wanted, "the lane at the gateway")

        first, old = station.engine_pid(), station.engine_pid("v0")
        os.kill(old, signal.SIGKILL)
        until(lambda: _who_serves(station) == ["e0", "e0", "503", "e0"], "the lane in the other engine meanwhile")
        seen = station.wait(lambda now: both_serve(now) and engine(now, "v0").restarts == 1, "another v0")
        assert (engine(seen).restarts, station.engine_pid()) == (0, first), "its neighbour was left alone"
        assert _who_serves(station) == wanted
        assert seen.gateway is not None
        assert seen.gateway.vanilla_spilled >= 2
        assert seen.gateway.vanilla_requests >= 3

        pids = [station.engine_pid(), station.engine_pid("v0"), station.managed("gateway").pid]
        station.kill()
        assert living(pids) == pids
        assert set(left_running()) == {"engine-e0", "engine-v0", "gateway"}
        station.start()
        station.wait(both_serve, "both engines, adopted")
        assert [station.engine_pid(), station.engine_pid("v0"), station.managed("gateway").pid] == pids
        assert _who_serves(station) == wanted

        ask("engine_restart", type(None), RestartParams("v0"))
        station.wait(lambda now: both_serve(now) and engine(now, "v0").restarts == 1, "the restart that was asked for")
        assert station.engine_pid() == first
        told = ask("processes", ProcessesResult)
        assert {"engine e0", "engine v0"} <= {process.role for process in told.processes}
        end_everything()
        assert left_running() == {}
        assert living([process.pid for process in told.processes if process.pid]) == []
    finally:
        station.close()


def _who_serves(station: StationUnderTest) -> list[str]:
    return [
        served_by(station, LANE),
        served_by(station, {"x-disable-speculation": "1"}),
        served_by(station, {}, min_p=0.1, temperature=0.7),
        served_by(station, {"x-workload": "friendly"}),
    ]


def test_a_station_that_wants_none_ends_the_one_that_was_left(place: Path) -> None:
    port = free_port()
    station = StationUnderTest(place, vanilla_engine=True, port=port).start()
    try:
        station.wait(both_serve, "both engines")
        main, second = station.engine_pid(), station.engine_pid("v0")
        station.kill()
        alone = StationUnderTest(place, port=port).start()
        try:
            seen = alone.wait(
                lambda now: (
                    engine(now).state == "serving" and now.gateway is not None and now.gateway.state == "serving"
                ),
                "the first engine, adopted",
            )
            assert living([main, second]) == [main]
            assert {view.engine for view in seen.engines} == {"e0"}
            assert seen.gateway is not None
            assert (seen.gateway.vanilla_engine, seen.gateway.vanilla_ok) == (False, None)
            assert any("v0" in event.text and "--vanilla-engine" in event.text for event in seen.events)
            assert served_by(alone, {}, min_p=0.1) == "400"
            assert alone.terminate() == 0
        finally:
            alone.close()
    finally:
        station.close()


def test_both_engines_get_half_of_the_machine_and_the_second_only_what_it_can_take() -> None:
    options = StationOptions(
        store="s",
        drafter="ngram",
        vanilla_engine=True,
        max_num_seqs=8,
        engine_args=["--per-request-spec-decode-metrics=detailed", "--dtype", "float32",
                     "--per_request_spec_decode_metrics", "summary", "--seed=1"],
    )  # fmt: skip
    main, second = options.engine_spec(), options.vanilla_spec()
    validate(main)
    validate(second)
    assert (main.threads, second.threads) == (half_the_cores(), half_the_cores())
    assert half_the_cores() >= 1
    assert main.gpu_memory is not None
    assert second.gpu_memory is not None
    assert main.gpu_memory + second.gpu_memory < 1
    assert main.extra_args == tuple(options.engine_args)
    assert second.extra_args == ("--dtype", "float32", "--seed=1")
    assert (second.engine, second.drafter, second.method, second.max_k) == ("v0", "none", None, 0)
    assert (second.model, second.max_num_seqs) == (main.model, 8)
    alone = StationOptions(store="s", drafter="ngram").engine_spec()
    assert (alone.threads, alone.gpu_memory) == (None, None), "without it nothing changes"


def test_the_share_of_a_gpu_is_vllms_to_keep_and_an_operators_own_comes_after_it(tmp_path: Path) -> None:
    target = ModelPath(
        path="/m", name="m", local=True, fingerprint="ab", dtype="bfloat16", max_position_embeddings=2048
    )
    options = StationOptions(
        store="s", drafter="ngram", vanilla_engine=True, engine_args=["--gpu-memory-utilization=0.3"]
    )
    for spec in (options.engine_spec(), options.vanilla_spec()):
        on_gpu, _ = command(msgspec.structs.replace(spec, device="cuda"), tmp_path, target)
        assert on_gpu.index("--gpu-memory-utilization") < on_gpu.index("--gpu-memory-utilization=0.3")
        on_cpu, env = command(msgspec.structs.replace(spec, device="cpu"), tmp_path, target)
        assert "--gpu-memory-utilization" not in on_cpu
        assert env["OMP_NUM_THREADS"] == str(half_the_cores())
    with pytest.raises(SpecError, match="gpu_memory"):
        validate(msgspec.structs.replace(spec, gpu_memory=1.5))


@pytest.mark.parametrize("cores", [1, 2, 3, 16])
def test_half_of_the_cores_is_never_none(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    assert half_the_cores() == max(1, cores // 2)


@pytest.mark.parametrize(
    ("given", "words"),
    [({"drafter": "none"}, "without speculation"), ({"no_engine": True}, "--no-engine")],
)
def test_an_engine_beside_none_or_beside_its_like_is_refused(given: dict[str, Any], words: str, place: Path) -> None:
    with pytest.raises(BadInput, match=words):
        _options(place, vanilla_engine=True, **given)


@pytest.mark.parametrize(
    ("typed", "mode"),
    [
        ("adaptive", PolicyMode(mode="adaptive", act=True)),
        ("advise:[[1,4,4],[5,32,0]]", PolicyMode(mode="adaptive", schedule=[(1, 4, 4), (5, 32, 0)], act=False)),
        ("static:2", PolicyMode(mode="static", k=2)),
        ("off", OFF),
    ],
)
def test_the_policy_to_begin_with_is_typed_as_everywhere(typed: str, mode: PolicyMode, place: Path) -> None:
    assert _options(place, policy=typed).policy == mode


def test_no_policy_and_two_ways_to_leave_calibration_out(place: Path) -> None:
    with pytest.raises(BadInput, match=r"--policy: 'fast' .*static:K"):
        _options(place, policy="fast")
    assert _options(place, calibrate=12.0).calibrate == 12.0
    assert _options(place, no_calibration=True).calibrate == 0.0


def _options(place: Path, **given: Any) -> StationOptions:
    defaults: dict[str, Any] = {
        "host": "127.0.0.1", "port": free_port(), "api_key": None, "metrics_port": 0, "store": str(place / "s.duckdb"),
        "no_engine": False, "engine_args": (), "drafter": "ngram",
    }  # fmt: skip
    return station_options(**(defaults | given))


# Status


def test_status_says_who_serves_the_vanilla_lane() -> None:
    processes = ProcessesResult([], {}, "s", None)
    gateway = GatewayView("http://127.0.0.1:8000", "serving", 1, vanilla_engine=True, vanilla_ok=True)
    e0, v0 = scenes.engine(), scenes.engine(engine="v0", drafter="none", method="none")
    own = scenes.live(engines=[e0, v0], gateway=gateway)
    assert "vanilla lane: an engine of its own (v0, serving)\n" in describe(own, processes)
    assert "vanilla lane: K = 0 in the same engine\n" in describe(scenes.live(), processes)
    told = msgspec.to_builtins(status_object(own, processes))["vanilla_lane"]
    assert told == {"engine": "v0", "ok": True, "text": "an engine of its own (v0, serving)"}
    away = scenes.live(
        engines=[e0, scenes.engine(engine="v0", drafter="none", method="none", state="restarting")],
        gateway=GatewayView("http://127.0.0.1:8000", "serving", 1, vanilla_engine=True, vanilla_ok=False),
    )
    lane = vanilla_lane(away)
    assert lane is not None
    assert (lane.engine, lane.ok) == ("v0", False)
    assert "until it serves: K = 0 in the other engine" in lane.text
    assert vanilla_lane(scenes.live(gateway=None)) is None


def test_it_waits_until_the_first_one_serves_and_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    first, calibration, now = SimpleNamespace(engine="e0", state="starting"), ["waiting"], [100.0]
    monkeypatch.setattr("console.station.own_engines.time.monotonic", lambda: now[0])
    turn = Turn(first, lambda: calibration[0])  # type: ignore[arg-type]
    assert turn.waits() == "for e0 to serve"
    first.state = "serving"
    assert turn.waits() == "for e0 to be calibrated", "it is about to begin"
    calibration[0], now[0] = "running", 150.0
    assert turn.waits() == "for e0 to be calibrated"
    for over in ("waiting", "done", "skipped"):
        calibration[0] = over
        assert turn.waits() is None, over
    first.state = "failed"
    calibration[0] = "waiting"
    assert Turn(first, lambda: calibration[0]).waits() is None, "the lane can be served without it"  # type: ignore[arg-type]
