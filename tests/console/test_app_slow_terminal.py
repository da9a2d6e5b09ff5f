"""A console far away, and one whose terminal is not read: keys do what they did, and nothing piles up."""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from tests.console.fake_station import FakeStation
from tests.console.pseudo_terminal import SlowLink
from tests.console.test_app_process import LEAVES_SECONDS, Console

BUCKETS = 200
FAR = 0.2
"""Seconds on the way, each way."""
UNREAD = 3.0
"""Seconds without reading: a terminal holds some 64 kB, and this many changing figures are 50 kB a second."""


@pytest.fixture
async def console() -> AsyncIterator[Console]:
    """On a station all of whose figures change four times a second."""
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name:
        station = FakeStation(Path(name))
        station.play("live", BUCKETS)
        await station.start()
        console = Console(Path(name), size=(120, 36), environment={"COLORTERM": "truecolor"})
        try:
            await asyncio.to_thread(console.read_until, b"workload-009")
            yield console
        finally:
            console.end()
            await station.stop()


async def test_over_a_slow_link_a_burst_of_keys_comes_to_the_right_picture(console: Console) -> None:
    link = SlowLink(console, FAR)
    try:
        link.type("3415" + "1" + "\x1b[B" * 7)
        took = await asyncio.to_thread(link.shows, lambda seen: re.search("▸. workload-007", seen) is not None, 10.0)
        assert took is not None, link.picture
        assert took > 2 * FAR, "it is a slow link"
    finally:
        link.close()


async def test_a_terminal_that_is_not_read_costs_nothing_and_shows_the_newest_picture_after(console: Console) -> None:
    process = psutil.Process(console.process.pid)
    before = process.memory_info().rss
    await asyncio.sleep(UNREAD)
    began, taken = time.monotonic(), len(console.output)
    await asyncio.to_thread(console.read, 1.5)
    assert process.memory_info().rss - before < 20e6
    assert len(console.output) - taken < 64e3 + 50e3 * (time.monotonic() - began) + 64e3
    shown = re.search(r"\d\d:\d\d:\d\d", console.picture)
    assert shown is not None
    assert shown[0] >= time.strftime("%H:%M:%S", time.localtime(time.time() - 2)), console.picture
    await asyncio.sleep(UNREAD)
    console.process.terminate()
    assert await asyncio.to_thread(console.process.wait, LEAVES_SECONDS) == 0, "it waits for nobody to read"
