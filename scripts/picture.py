"""Draw the console as it looks on the running station, as SVG: `python scripts/picture.py docs/live.svg [--keys 7]`.

The README's picture is made this way during `make demo`, so that it shows what the product shows.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from console.app.application import SpecdeckApp
from console.feed.client import FeedClient
from engine.sockets import sockets


async def draw(out: Path, width: int, height: int, keys: list[str], seconds: float) -> None:
    """Open the console without a terminal, press `keys`, wait for `seconds` of snapshots, and write the picture."""
    places = sockets()
    app = SpecdeckApp(FeedClient(places.feed, places.snapshots), read_only=False, on_disconnect=None, intent="attach")
    async with app.run_test(size=(width, height)) as pilot:
        await pilot.pause(1.0)
        await pilot.press(*keys)
        await pilot.pause(seconds)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(app.export_screenshot(title="specdeck"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", default="120x36", help="columns x lines")
    parser.add_argument("--keys", nargs="*", default=[], help="keys to press first, e.g. 7 for the Engine screen")
    parser.add_argument("--seconds", type=float, default=4.0, help="how long to watch before drawing")
    given = parser.parse_args()
    width, _, height = given.size.partition("x")
    asyncio.run(draw(given.out, int(width), int(height), given.keys, given.seconds))


if __name__ == "__main__":
    main()
