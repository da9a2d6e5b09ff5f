"""Draw the console as it looks on the running station, or on a trace at some moment of it, as SVG:

    python scripts/picture.py docs/live.svg [--keys 7]
    python scripts/picture.py docs/replay.svg --trace sample_traces/schedule.jsonl.zst --at 110s

The README's pictures are made this way, so that they show what the product shows.
"""

from __future__ import annotations

import argparse
import asyncio
from contextlib import nullcontext
from pathlib import Path

from console.app.application import SpecdeckApp
from console.app.replay.desk import Opening
from console.app.replay.moment import read_moment
from console.cli.replay_child import replay_child
from console.feed.client import FeedClient
from engine.sockets import Sockets, sockets


async def draw(out: Path, size: tuple[int, int], keys: list[str], seconds: float, replay: Opening | None) -> None:
    """Open the console without a terminal, press `keys`, wait for `seconds` of snapshots, and write the picture."""
    intent = "attach" if replay is None else "replay"
    app = SpecdeckApp(FeedClient(PLACES.feed, PLACES.snapshots), on_disconnect=None, intent=intent, opening=replay)
    async with app.run_test(size=size) as pilot:
        await pilot.pause(1.0 if replay is None else 6.0)  # a replay takes its trace in first
        await pilot.press(*keys)
        await pilot.pause(seconds)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(app.export_screenshot(title="specdeck"))


def main() -> None:
    global PLACES
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", default="120x36", help="columns x lines")
    parser.add_argument("--keys", nargs="*", default=[], help="keys to press first, e.g. 7 for the Engine screen")
    parser.add_argument("--seconds", type=float, default=4.0, help="how long to watch before drawing")
    parser.add_argument("--trace", type=Path, help="draw a replay of this trace")
    parser.add_argument("--at", default="0%", help="the moment of the trace: 14:05, 90s, 40%%")
    given = parser.parse_args()
    width, _, height = given.size.partition("x")
    replay = None if given.trace is None else Opening(1.0, read_moment(given.at))
    with nullcontext() if given.trace is None else replay_child(given.trace) as child:
        PLACES = sockets() if child is None else child.sockets
        asyncio.run(draw(given.out, (int(width), int(height)), given.keys, given.seconds, replay))


PLACES: Sockets


if __name__ == "__main__":
    main()
