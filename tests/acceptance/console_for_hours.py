"""Eight hours of a station's life through the console: memory flat, nothing left behind by screens and dialogs.

Twice: once as 115,200 pictures, four for each second of the eight hours, given to the app one after the other; once as
an operator has it, a real replay of a trace of eight hours at ×1000, over the feed, again and again. Meanwhile all
screens are gone through and dialogs are opened over them. The app runs headless in this process.

    python -m tests.acceptance.console_for_hours [--hours 8]

Holds when after the warm-up (a fifth of it) there are as many widgets, screens and timers at the end as before, no type
has grown by a tenth and 500 objects, and memory along a line through all counts by less than 5 %.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from console.app.application import SpecdeckApp
from console.app.replay.desk import Opening
from console.feed.client import FeedClient
from console.feed.protocol import ReplayAct
from store.export import export
from tests.acceptance.result import write
from tests.console import scenes
from tests.console.driving import WIDE, running
from tests.console.replay_process import running_replay
from tests.console.tour import SCREENS, Counts, count, grown, tour
from tests.store.station_days import START, Station, day

HOURS: Final = 8.0
PER_SECOND: Final = 4
ROUNDS_AN_HOUR: Final = 4
BUCKETS: Final = 30
SPEED: Final = 1000.0
TURNS: Final = 3
"""Times that the replay goes from its start to its end."""
MOST_GROWTH: Final = 0.05
LEAK: Final = 500
"""Objects of a type: less is what Textual's bounded caches still fill with; one a round or a picture is more."""


def main(hours: float = HOURS) -> bool:
    began = time.monotonic()
    given = asyncio.run(_pictures(round(hours * 3600 * PER_SECOND)))
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "hours.jsonl.zst"
        station = Station()
        with contextlib.closing(station.store):
            station.live(day(round(hours * 60)), lambda: 60.0)
            export(station.store.connection, trace)
        replayed = asyncio.run(_replayed(trace, hours))
    arms = {"pictures": _found(given), "replay": _found(replayed)}
    verdicts = {f"{name}: {claim}": held for name, arm in arms.items() for claim, held in arm.pop("verdicts").items()}
    for claim, held in verdicts.items():
        print(f"{'holds' if held else 'DOES NOT HOLD'}: {claim}")
    figures = {"hours": hours, "wall_seconds": round(time.monotonic() - began), **arms, "verdicts": verdicts}
    print(write("console_for_hours", figures))
    return all(verdicts.values())


async def _pictures(number: int) -> list[Counts]:
    """Counts after each round."""
    rounds = max(8, number // (3600 * PER_SECOND) * ROUNDS_AN_HOUR)
    first = scenes.live(buckets=scenes.many_buckets(BUCKETS), workloads=scenes.workloads())
    counted = []
    shown = iter(range(number))
    async with running(first, size=WIDE) as (app, feed, pilot):

        async def some() -> None:
            for place in _next(shown, number // rounds // len(SCREENS)):
                moved = scenes.many_buckets(BUCKETS, place / PER_SECOND / 7)
                app.receive(replace(first, number=place, ts=scenes.NOW + place / PER_SECOND, buckets=moved))
                await asyncio.sleep(0)
            feed.asked.clear()

        for _ in range(rounds):
            await tour(pilot, some)
            await pilot.press("t")
            counted.append(await count(app))
    return counted


def _next(numbers: Iterator[int], many: int) -> Iterator[int]:
    for _ in range(many):
        yield next(numbers)


async def _replayed(trace: Path, hours: float) -> list[Counts]:
    """Counts after each round that was gone while the replay played."""
    counted = []
    with running_replay(trace) as (_, folder):
        feed = FeedClient(folder / "run" / "feed", folder / "run" / "snapshots")
        app = SpecdeckApp(feed, intent="replay", opening=Opening(speed=SPEED))
        async with feed, app.run_test(size=WIDE) as pilot:
            await _until(lambda: app.picture.replay is not None and app.picture.replay.complete)
            for _ in range(TURNS):
                await feed.request("replay_act", ReplayAct(act="seek", ts=START), object)
                await feed.request("replay_act", ReplayAct(act="play"), object)
                over = time.monotonic() + hours * 3600 / SPEED
                while time.monotonic() < over:
                    await tour(pilot, lambda: asyncio.sleep(0.3))
                    counted.append(await count(app))
            view = app.picture.replay
            assert view is not None
            assert app.picture.moment > view.start + 0.9 * (view.end - view.start), "it came to the end"
    return counted


async def _until(condition: Any) -> None:
    async with asyncio.timeout(120.0):
        while not condition():
            await asyncio.sleep(0.1)


def _found(counted: list[Counts]) -> dict[str, Any]:
    warm = counted[len(counted) // 5 :]
    slope, level = np.polyfit(range(len(warm)), [one.rss for one in warm], 1)
    rise = float(slope * (len(warm) - 1) / level)
    more = grown(warm[0], warm[-1], LEAK)
    return {
        "rounds": len(counted),
        "rss_mb": [round(one.rss / 1e6, 1) for one in counted],
        "objects": [one.objects for one in counted],
        "widgets_screens_timers_over": [list(one.lasting) for one in (warm[0], warm[-1])],
        "rise_after_warm_up": round(rise, 4),
        "types_that_grew": more,
        "verdicts": {
            "nothing left behind": not warm[-1].left_behind(warm[0]),
            "no type grows": not more,
            "memory flat": rise < MOST_GROWTH,
        },
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=HOURS)
    sys.exit(0 if main(parser.parse_args().hours) else 1)
