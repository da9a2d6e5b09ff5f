"""The demo's two ways to run. The traffic is a process of its own, so that the console stays calm beside it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from console.cli.console import reviver, show
from console.cli.figures_text import as_table, bucket_table
from console.cli.launcher import Launcher
from console.cli.options import station_options
from console.cli.outcomes import CHECK_FAILED, OK, CheckFailed, say
from console.cli.sources import LIVE, load_report
from console.cli.station import ask, running_station
from console.cli.stop import end_everything
from console.feed.messages import Snapshot
from console.statefile import state_path
from console.station.demo_traffic import ROLE, progress_path
from engine.places import data_dir, runtime_dir
from engine.process import ManagedProcess

_TABLE_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 0.5
_ENGINE_PATIENCE: Final = 900.0
_HOPELESS_STARTS: Final = 3


class Target(NamedTuple):
    """The station that the traffic goes to, and what starts it again should it die."""

    base_url: str
    api_key: str | None
    launcher: Launcher | None
    """None: the station ran before the demo and is not the demo's to end."""
    revive: Callable[[], str | None] | None


def run_with_console(given: dict[str, Any], seconds: float | None, seed: int) -> int:
    """With a terminal: the console opens at once and shows how everything comes up. The exit code."""
    target = _target(given)
    traffic = start_traffic(target, seconds, seed)
    code = show("demo", target.revive)
    if running_station() is None:
        traffic.terminate_group(2.0)
    return code


def run_headless(given: dict[str, Any], seconds: float | None, seed: int) -> int:
    """Without a terminal: the live table on stdout as it goes, then the report. The exit code."""
    target: Target | None = None
    began = time.time()
    with _terminated_like_interrupted():
        try:
            target = _target(given)
            if target.launcher is not None:
                station = target.launcher.wait()
                say(f"station (pid {station.pid}) on {station.info.base_url}, store {station.info.store}")
            traffic = start_traffic(target, seconds, seed)
            _follow(traffic, target)
            code = _end(traffic)
            click.echo(as_table(load_report(LIVE, None, time.time() - began, None)))
            return code
        finally:
            if target is None or target.launcher is not None:
                end_everything()


def start_traffic(target: Target, seconds: float | None, seed: int) -> ManagedProcess:
    """Start the sample traffic; it waits for the engine and its calibration by itself."""
    progress = progress_path(runtime_dir())
    argv = [
        sys.executable, "-m", "console.cli.demo_traffic", "--base-url", f"{target.base_url}/v1", "--profile", "demo",
        "--seed", str(seed), "--patience", str(_ENGINE_PATIENCE), "--progress", str(progress),
    ]  # fmt: skip
    if seconds is not None:
        argv += ["--duration", str(seconds)]
    env = dict(os.environ) if target.api_key is None else {**os.environ, "SPECDECK_API_KEY": target.api_key}
    state_file = state_path(runtime_dir(), ROLE)
    before = ManagedProcess.recall(state_file)
    if before is not None:
        before.terminate_group(2.0)
    progress.unlink(missing_ok=True)
    return ManagedProcess.start(argv, env, _log(), state_file)


def _target(given: dict[str, Any]) -> Target:
    """The running station, else a new one."""
    station = running_station()
    if station is not None:
        say(f"a station runs already (pid {station.pid}): its engine gets the traffic")
        return Target(station.info.base_url, given["api_key"], None, reviver(station))
    launcher = Launcher(station_options(**given, free_port=True))
    launcher.spawn()
    return Target(launcher.options.base_url, launcher.options.api_key, launcher, launcher.revive)


def _follow(traffic: ManagedProcess, target: Target) -> None:
    """Until the traffic is over: what is coming up, then the live table every few seconds."""
    told: set[str] = set()
    next_table = time.monotonic()
    while traffic.alive():
        if target.revive is not None and (revived := target.revive()):
            say(revived)
        try:
            snapshot = ask("snapshot", Snapshot, seconds=5.0)
        except click.ClickException:
            snapshot = None  # a station that died: revived in the next round
        if snapshot is not None:
            _refuse_hopeless(snapshot)
            _tell_phases(snapshot, told)
            if snapshot.buckets and time.monotonic() >= next_table:
                next_table = time.monotonic() + _TABLE_SECONDS
                click.echo(_live_table(snapshot) + "\n")
        time.sleep(_LOOK_SECONDS)


def _refuse_hopeless(snapshot: Snapshot) -> None:
    """Raises CheckFailed: the engine cannot be started as it was asked for, and nobody here would change that."""
    for engine in snapshot.engines:
        if engine.owned and engine.state == "failed" and engine.restarts >= _HOPELESS_STARTS:
            raise CheckFailed(f"engine {engine.engine} does not start: {engine.detail}")


def _tell_phases(snapshot: Snapshot, told: set[str]) -> None:
    """Say each phase of the engine's start once, with the time it took."""
    for engine in snapshot.engines:
        for phase in engine.phases:
            if phase.state == "done" and phase.name not in told:
                told.add(phase.name)
                say(f"  {phase.name}: {phase.seconds or 0:.1f} s")
        if engine.detail and engine.detail not in told:
            told.add(engine.detail)
            say(f"  engine {engine.engine} {engine.state}: {engine.detail}")


def _live_table(snapshot: Snapshot) -> str:
    engines = ", ".join(f"{view.engine} {view.state} K {view.executed_k}" for view in snapshot.engines)
    rate = 0.0 if snapshot.tokens_per_second is None else snapshot.tokens_per_second
    load = f"running {snapshot.running or 0}  waiting {snapshot.waiting or 0}  {rate:.0f} tok/s"
    head = f"{time.strftime('%H:%M:%S')}  {engines}  {load}"
    return "\n".join([head, *bucket_table([bucket.figures for bucket in snapshot.buckets], snapshot.total)])


def _end(traffic: ManagedProcess) -> int:
    """What the traffic came to."""
    code = traffic.exit_code()
    text = _log().read_text(errors="replace") if _log().exists() else ""
    for line in text.splitlines()[-6:]:
        say(line)
    if code == 0:
        return OK
    say(f"the traffic ended with exit code {code} (log: {_log()})")
    return CHECK_FAILED


@contextlib.contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM ends the demo as ctrl+c does: everything it started is stopped."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _log() -> Path:
    return data_dir() / "logs" / "traffic.log"
