"""The replay process over the feed, on a recorded trace: it is driven like a player, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from console.feed.bucket_detail import BucketDetail, BucketDetailParams
from console.feed.client import FeedClient, FeedError
from console.feed.messages import ReplayView, Series, Snapshot
from console.feed.protocol import (
    ExportParams,
    History,
    HistoryParams,
    LogParams,
    PolicySet,
    ReplayAct,
    ReportParams,
    SeriesParams,
    Steps,
    StepsParams,
    StopParams,
    WhatIfParams,
)
from store.database import Store
from store.figures import Report
from store.whatif.figures import WhatIf
from tests.console.replay_process import environment, kept, replay_command, running_replay

DEMO = Path(__file__).parents[2] / "sample_traces" / "demo.jsonl.zst"
DEADLINE = 60.0
T = TypeVar("T")


class Console:
    """What a console does, over the real feed."""

    def __init__(self, client: FeedClient) -> None:
        self.client = client

    async def ask(self, method: Any, params: Any, kind: type[T]) -> T:
        return await self.client.request(method, params, kind, timeout=DEADLINE)

    async def act(self, act: Any, **params: Any) -> ReplayView:
        return await self.ask("replay_act", ReplayAct(act=act, **params), ReplayView)

    async def picture(self) -> Snapshot:
        return await self.ask("snapshot", None, Snapshot)

    async def published(self, until: Any) -> Snapshot:
        async with asyncio.timeout(DEADLINE), contextlib.aclosing(self.client.snapshots()) as stream:
            async for update in stream:
                if isinstance(update, Snapshot) and until(update):
                    return update
        raise AssertionError


@contextlib.asynccontextmanager
async def watching(folder: Path) -> AsyncIterator[Console]:
    async with FeedClient(folder / "run" / "feed", folder / "run" / "snapshots") as client:
        yield Console(client)


async def test_a_trace_is_played_stepped_and_searched(tmp_path: Path) -> None:
    with running_replay(DEMO) as (process, folder):
        async with watching(folder) as console:
            first = await console.published(lambda seen: seen.replay.complete)
            view = first.replay
            assert view is not None
            assert (first.source, first.ts) == ("replay", view.start), "it waits at the beginning"
            assert (await console.client.hello()).source == "replay"
            await _plays(console, view)
            await _steps(console)
            await _seeks(console, view)
            await _answers(console, view, tmp_path)
            await _refuses(console)
            await console.ask("stop", StopParams(), type(None))
        assert process.wait(DEADLINE) == 0
        assert kept(folder) == []


async def _plays(console: Console, view: ReplayView) -> None:
    await console.act("speed", speed=100.0)
    assert (await console.act("play")).playing
    moved = await console.published(lambda seen: seen.ts > view.start + 20)
    assert moved.total is not None
    assert moved.engines[0].executed_k == 4
    first, last = view.start + 60, view.start + 65
    looped = await console.act("loop", loop=(first, last))
    assert looped.loop == (first, last)
    for _ in range(3):
        assert first <= (await console.picture()).ts <= last
    await console.act("loop")
    await console.act("speed", speed=None)
    ended = await console.published(lambda seen: not seen.replay.playing)
    assert ended.ts == view.end, "it stops at the end"
    with pytest.raises(FeedError, match="speed: from 0"):
        await console.act("speed", speed=5000.0)


async def _steps(console: Console) -> None:
    await console.act("seek", share=0.5)
    here = await console.picture()
    await console.act("step")
    onward = await console.picture()
    assert onward.ts > here.ts
    back = await console.act("step", count=-1)
    before = await console.picture()
    assert before.ts <= here.ts < onward.ts
    assert before.replay is not None
    assert onward.replay is not None
    assert (before.replay.position, onward.replay.position) == (here.replay.position, _next(here)), back
    recent = (await console.ask("steps", StepsParams(limit=3), Steps)).steps
    assert recent[-1].ts == before.ts
    assert len(recent) == 3


def _next(here: Snapshot) -> str:
    assert here.replay is not None
    _, number, *_ = here.replay.position.split()
    return f"step {int(number) + 1} of e0"


async def _seeks(console: Console, view: ReplayView) -> None:
    await console.act("seek", ts=view.start + 100)
    there = await console.picture()
    await console.act("seek", share=0.9)
    await console.act("seek", ts=view.start + 100)
    again = await console.picture()
    assert again.total == there.total, "a moment looks the same from wherever it is come to"
    assert [bucket.figures for bucket in again.buckets] == [bucket.figures for bucket in there.buckets]
    stayed = await console.act("jump", kind="gap")
    assert stayed.position == again.replay.position, "there is none to go to"
    with pytest.raises(FeedError, match="seek needs a moment"):
        await console.act("seek")


async def _answers(console: Console, view: ReplayView, tmp_path: Path) -> None:
    await console.act("seek", ts=view.start + 100)
    report = await console.ask("report", ReportParams(), Report)
    assert report.window is not None
    assert report.window.end <= view.start + 100
    series = await console.ask("series", SeriesParams(seconds=300.0, points=30), Series)
    assert series.points
    assert series.marks[0].kind == "engine"
    key = (await console.picture()).buckets[0].key
    parts = (key.workload, key.context, key.temperature, key.model_version)
    detail = await console.ask("bucket_detail", BucketDetailParams(key=parts), BucketDetail)
    assert (detail.key, detail.measured[0].rows > 0) == (key, True)
    assert (await console.ask("policy_history", HistoryParams(), History)).entries == []
    (answer,) = await console.ask("whatif", WhatIfParams(policies=["static:1"]), list[WhatIf])
    assert answer.predicted.tokens_per_step < answer.recorded.tokens_per_step
    with pytest.raises(FeedError, match="no policy"):
        await console.ask("whatif", WhatIfParams(policies=["fast"]), list[WhatIf])
    out = tmp_path / "out.duckdb"
    await console.ask("export", ExportParams(path=str(out)), str)
    with Store.open(out, read_only=True) as store:
        assert store.connection.execute("SELECT max(ts) FROM steps").fetchall() == [(view.end,)], "all of it"


async def _refuses(console: Console) -> None:
    with pytest.raises(FeedError, match="a recording: it can be looked at, not changed"):
        await console.ask("policy_set", PolicySet(cap=1), type(None))
    with pytest.raises(FeedError, match="holds no engine log"):
        await console.ask("engine_log", LogParams(), type(None))


def test_it_ends_with_its_parent_even_one_that_was_killed(tmp_path: Path) -> None:
    parent = f"""
        import subprocess, sys, time
        child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)
        print(child.pid, flush=True)
        time.sleep({DEADLINE})
    """
    folder = tmp_path
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(parent), *replay_command(DEMO, folder)],
        env=environment(folder), stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        _until(lambda: (folder / "run" / "feed").exists())
        process.kill()
        _until(lambda: not _lives(pid))
    assert kept(folder) == []


def test_it_ends_on_sigterm_while_it_still_reads(tmp_path: Path) -> None:
    with running_replay(DEMO) as (process, folder):
        _until(lambda: bool(kept(folder)))
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) == 0
        assert kept(folder) == []


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(b"not a trace\n", "trace.jsonl:1: not a JSON object"), (b"", "no engine record"), (None, "no such file")],
)
def test_what_cant_be_read_is_said_in_one_line(tmp_path: Path, content: bytes | None, complaint: str) -> None:
    trace = tmp_path / "trace.jsonl"
    if content is not None:
        trace.write_bytes(content)
    with running_replay(trace) as (process, _):
        assert process.wait(DEADLINE) == 2
        assert process.stderr is not None
        (line,) = process.stderr.read().decode().splitlines()
        assert line.startswith("replay: ")
        assert complaint in line


def _until(condition: Any) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
