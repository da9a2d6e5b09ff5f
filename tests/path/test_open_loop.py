"""Load is open loop on the real engine: frozen for some seconds, it owes each client the rest of them, and the
rehearsal says so from the clients' and from the engine's side."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

import duckdb
import msgspec
import pytest

from console.rehearsing.load.front import LoadProgress, LoadSummary, send
from console.traffic.prompts import prompts
from engine.records import PolicyMode
from store.rehearsal.records import DrawnRequest, Message, Outcome
from store.rehearsal.waiting import waiting
from tests.path.served import Served, until

pytestmark = [pytest.mark.engine, pytest.mark.alone]

SECONDS = 14.0
APART = 1.0
"""Far enough apart that those which wait for the freeze to end hardly hold each other up then."""
FROZEN = 5.0
FIRST_HIT = 4
"""Number of the request that comes just after the engine freezes."""


class Passed(NamedTuple):
    summary: LoadSummary
    outcomes: list[Outcome]
    frozen: tuple[float, float]
    """Seconds after moment 0 by the wall clock, like the engine's records."""

    def latencies(self) -> dict[str, float]:
        return {one.id: one.ended - one.at for one in self.outcomes if one.ended is not None}


def _drawn() -> list[DrawnRequest]:
    texts = [prompt[-1].content for prompt in prompts("chat")]
    return [
        DrawnRequest(
            id=str(number), at=number * APART, phase=0, workload="open-loop", temperature=0.0, seed=number, exact=True,
            max_tokens=6, messages=(Message("user", texts[number % len(texts)]),),
        )
        for number in range(round(SECONDS / APART))
    ]  # fmt: skip


async def _pass(served: Served, folder: Path, *, freeze: bool) -> Passed:
    folder.mkdir()
    requests, outcomes = folder / "requests.jsonl", folder / "outcomes.jsonl"
    requests.write_bytes(b"".join(msgspec.json.encode(request) + b"\n" for request in _drawn()))
    pids = served.pids()
    engine = [pids[role] for role in ("api_server", "engine_core", "worker") if role in pids]
    zero: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    def note(progress: LoadProgress) -> None:
        if not zero.done():
            zero.set_result(time.monotonic() - progress.elapsed)

    async def frozen() -> tuple[float, float]:
        await asyncio.sleep(await zero + FIRST_HIT * APART - 0.1 - time.monotonic())
        try:
            for pid in engine:
                os.kill(pid, signal.SIGSTOP)
            began = time.time()
            await asyncio.sleep(FROZEN)
        finally:
            for pid in engine:
                os.kill(pid, signal.SIGCONT)
        return began, time.time()

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        freezing = group.create_task(frozen()) if freeze else None
        summary = await send(
            requests, outcomes, base_url=served.url, api_key=None, model=None, tag_prefix="", on_progress=note
        )
    found = [msgspec.json.decode(line, type=Outcome) for line in outcomes.read_bytes().splitlines()]
    began, ended = freezing.result() if freezing is not None else (summary.start, summary.start)
    return Passed(summary, found, (began - summary.start, ended - summary.start))


def _waited(served: Served, passed: Passed) -> dict[str, float] | None:
    """By request, once all of them are stored."""
    out = served.directory / f"export-{time.monotonic_ns()}.duckdb"
    done = served.specdeck("export", str(out))
    assert done.returncode == 0, done.stderr
    with duckdb.connect(str(out), read_only=True) as connection:
        found = waiting(connection, passed.outcomes, passed.summary.start)
    return found if len(found) == len(passed.outcomes) else None


def test_a_frozen_engine_owes_every_request_the_rest_of_the_freeze(served: Served, tmp_path: Path) -> None:
    served.wait_serving()
    served.policy(PolicyMode(mode="static", k=4))
    before = served.pids()
    plain = asyncio.run(_pass(served, tmp_path / "plain", freeze=False))
    frozen = asyncio.run(_pass(served, tmp_path / "frozen", freeze=True))
    for passed in (plain, frozen):
        assert [one.error for one in passed.outcomes] == [None] * len(_drawn())
        assert passed.summary.lag_max < 0.5
    assert served.pids() == before, "no process was started anew"

    growth = max(frozen.latencies().values()) - max(plain.latencies().values())
    waited = until("every request of the pass is stored", lambda: _waited(served, frozen))
    began, ended = frozen.frozen
    hit = [one for one in frozen.outcomes if began < one.at < ended]
    over = [waited[one.id] - (ended - one.at) for one in hit]
    print(
        f"latency at most {max(plain.latencies().values()):.2f} s, frozen for {ended - began:.2f} s "
        f"{max(frozen.latencies().values()):.2f} s; {len(hit)} requests meanwhile waited for the rest of it and "
        f"{min(over):.3f} to {max(over):.3f} s; lag at most {frozen.summary.lag_max:.3f} s"
    )
    assert 4.5 <= growth <= 5.5
    assert len(hit) >= 4
    assert all(-0.05 <= one <= 0.5 for one in over)
    before_it = [waited[one.id] for one in frozen.outcomes if one.at < began]
    assert max(before_it) < 1.0
