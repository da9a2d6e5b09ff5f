"""A console that is open for long: rounds through all screens and dialogs leave nothing behind."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from tests.console import scenes
from tests.console.driving import NARROW, running
from tests.console.tour import count, grown, tour

PICTURES = 3
"""On each screen of a round."""


async def test_rounds_through_all_screens_leave_nothing_behind() -> None:
    first = scenes.live(buckets=scenes.many_buckets(20), workloads=scenes.workloads())
    async with running(first, size=NARROW) as (app, feed, pilot):
        number = 1

        async def pictures() -> None:
            nonlocal number
            for _ in range(PICTURES):
                number += 1
                buckets = scenes.many_buckets(20, number / 9)
                app.receive(replace(first, number=number, ts=scenes.NOW + number, buckets=buckets))
                await asyncio.sleep(0)
            feed.asked.clear()

        counted = []
        for _ in range(3):
            await tour(pilot, pictures)
            counted.append(await count(app))
        warm, last = counted[1], counted[-1]
        assert not last.left_behind(warm), (warm[:-1], last[:-1])
        assert grown(warm, last) == {}
