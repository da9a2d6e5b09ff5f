"""A station whose engine serves completions and whose switch can be broken, and the commands run against it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from console.cli.root import root
from console.cli.station import ask
from console.feed.messages import Snapshot
from console.feed.protocol import PolicyConfirm, PolicyResult, PolicySet
from tests.console.station_harness import StationUnderTest, until

SPECDECK = Path(sys.executable).with_name("specdeck")
ENGINE = [sys.executable, str(Path(__file__).with_name("broken_switch_engine.py"))]


@dataclass
class Done:
    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


def invoked(*arguments: str) -> Done:
    result = CliRunner().invoke(root, arguments)
    return Done(result.exit_code, result.stdout, result.stderr)


class RehearsingStation:
    def __init__(self, station: StationUnderTest, folder: Path) -> None:
        self.station = station
        self.folder = folder

    def run(self, *arguments: str) -> Done:
        return invoked(*arguments)

    def spawn(self, *arguments: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen([str(SPECDECK), *arguments], stdout=pipe, stderr=pipe, text=True, cwd=self.folder)

    def snapshot(self) -> Snapshot:
        return ask("snapshot", Snapshot)

    def policy(self, **changes: Any) -> None:
        ask("policy_set", PolicyResult, PolicySet(**changes))

    def confirm(self) -> None:
        if self.snapshot().unconfirmed is not None:
            ask("policy_confirm", PolicyResult, PolicyConfirm())

    @contextlib.contextmanager
    def behaving(self, behaviour: str) -> Iterator[None]:
        """Break the engine's switch for a while."""
        file = self.station.run_dir / "behaviour"
        file.write_text(behaviour)
        try:
            yield
        finally:
            file.unlink()


@contextlib.contextmanager
def rehearsing_station() -> Iterator[RehearsingStation]:
    """In places of its own, until its gateway answers."""
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        for variable, part in (("RUNTIME", "run"), ("DATA", "data"), ("CACHE", "cache")):
            patch.setenv(f"SPECDECK_{variable}_DIR", str(folder / part))
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]))
        station = StationUnderTest(folder, engine_command=ENGINE)
        station.start()
        try:
            until(lambda: _answers(station.options.base_url), "an answer of the engine")
            yield RehearsingStation(station, folder)
        finally:
            station.close()


def _answers(url: str) -> bool:
    with contextlib.suppress(httpx.HTTPError):
        if httpx.get(f"{url}/v1/models").status_code != 200:
            return False
        views = ask("snapshot", Snapshot).engines
        return bool(views) and views[0].state == "serving" and bool(views[0].max_k)
    return False
