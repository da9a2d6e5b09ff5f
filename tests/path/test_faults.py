"""Each process killed with -9 while serving: the console says so, all comes back, the outage is visible and bounded."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from console.feed.messages import Snapshot
from engine.records import GapRecord, StepRecord
from tests.path.served import Served, until

pytestmark = [pytest.mark.engine, pytest.mark.alone]

ALIKE = [pytest.param(role, marks=pytest.mark.long) for role in ("engine_core", "worker")]
"""Each costs a start of the engine; a scripted one is killed in `tests.console.test_station_process`."""


class Load:
    """Requests one after the other from a few threads; counts answers by status, never raises."""

    def __init__(self, served: Served, workload: str) -> None:
        self.served = served
        self.model = served.model()
        self.workload = workload
        self.statuses: list[int] = []
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._send, daemon=True) for _ in range(3)]

    def _send(self) -> None:
        body: dict[str, Any] = {"model": self.model, "prompt": "one two three " * 20, "max_tokens": 100}
        body |= {"temperature": 0.0, "ignore_eos": True, "vllm_xargs": {"workload": self.workload}}
        while not self._ended.is_set():
            try:
                answer = httpx.post(f"{self.served.url}/v1/completions", json=body, timeout=60.0)
                self.statuses.append(answer.status_code)
                if answer.status_code == 503:
                    assert int(answer.headers["Retry-After"]) > 0
            except httpx.TransportError:
                self.statuses.append(0)
            if self.statuses[-1] != 200:
                self._ended.wait(0.5)

    @contextmanager
    def running(self) -> Iterator[Load]:
        for thread in self._threads:
            thread.start()
        try:
            until("first answers under load", lambda: 200 in self.statuses, 60.0)
            yield self
        finally:
            self._ended.set()
            for thread in self._threads:
                thread.join(70.0)


def _kill(pid: int) -> float:
    os.kill(pid, signal.SIGKILL)
    return time.time()


def _engine_down(served: Served) -> Snapshot | None:
    picture = served.snapshot_or_none()
    return picture if picture and any(engine.state != "serving" for engine in picture.engines) else None


@pytest.mark.parametrize("role", ["api_server", *ALIKE])
def test_an_engine_process_killed_alone_leads_to_a_clean_restart(served: Served, role: str) -> None:
    served.wait_serving()
    before = served.pids()
    assert role in before, before
    with Load(served, f"killed-{role}").running() as load:
        killed = _kill(before[role])
        picture = until(f"the picture says that {role} is gone", lambda: _engine_down(served), 30.0)
        assert any(alert.kind == "engine_down" for alert in picture.alerts) or picture.engines[0].detail
        served.wait_serving()
        load.statuses.clear()
        until("answers again", lambda: 200 in load.statuses, 60.0)
    after = served.pids()
    assert {"api_server", "engine_core"} <= set(after)
    assert not set(before.values()) & {after[name] for name in ("api_server", "engine_core", "worker") if name in after}
    gaps = [record for record in served.records() if isinstance(record, GapRecord) and record.ts >= killed - 2]
    assert gaps, "the outage is on the time axis"


def test_the_engine_serves_on_when_the_station_dies_and_the_next_one_adopts_it(served: Served) -> None:
    served.wait_serving()
    before = served.pids()
    with Load(served, "orphaned").running() as load:
        killed = _kill(before["station"])
        served.process.wait(10)
        load.statuses.clear()
        until("the engine answers without a station", lambda: load.statuses.count(200) >= 3, 60.0)
        served.serve_again()
        served.wait_serving(60.0)
        came_back = time.time()
        until(
            "live sequences have their tags back",
            lambda: any(
                view.key.workload == "orphaned" and view.last_seen > came_back for view in served.snapshot().buckets
            ),
            30.0,
        )
        assert set(load.statuses) == {200}, "no client noticed"
    after = served.pids()
    for role in ("api_server", "engine_core", "gateway"):
        assert after[role] == before[role], f"{role} was adopted, not restarted"
    records = served.records()
    steps = [record.ts for record in records if isinstance(record, StepRecord)]
    assert max(ts for ts in steps if ts < killed) > killed - 1.5, "at most the last second is missing"
    # The engine held its frames while nobody listened, so there may be no hole at all; one that is there is a gap.
    around = [ts for ts in sorted(steps) if killed - 2 < ts < came_back + 2]
    holes = [(before, after) for before, after in itertools.pairwise(around) if after - before > 1.5]
    gaps = [record for record in records if isinstance(record, GapRecord) and record.ts >= killed - 2]
    assert gaps or not holes, "what was missed is a gap"


def test_a_killed_gateway_is_back_at_once_on_the_same_port(served: Served) -> None:
    served.wait_serving()
    before = served.pids()
    _kill(before["gateway"])
    until("another gateway", lambda: served.pids().get("gateway", before["gateway"]) != before["gateway"], 20.0)
    served.wait_serving(30.0)
    assert served.pids()["api_server"] == before["api_server"]
