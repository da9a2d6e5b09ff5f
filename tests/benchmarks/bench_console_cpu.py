"""What the console costs: CPU at 4 snapshots a second with 200 buckets, and from a key to its paint.

In this process, without a terminal; `bench_console_recording` measures whole processes. Prints shares of a core and
milliseconds, beside a stock DataTable that is given the same cells. To hold (design §11): 15 % of a core; 50 ms p95
from key to paint, on every screen and from one to the next.

    python -m tests.benchmarks.bench_console_cpu
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress

from textual.app import App, ComposeResult
from textual.events import Key
from textual.screen import Screen
from textual.widgets import DataTable

from console.app.application import SpecdeckApp
from console.app.drawing.spans import text_of
from console.app.live.columns import RowFacts, fit_columns, make_columns
from console.feed.messages import Snapshot
from tests.console import map_scenes, memory_feed, scenes

BUCKETS, SNAPSHOTS, KEYS, SIZE = 200, 80, 200, (120, 36)
PER_SECOND = 4
SCREENS = {
    "Bucket": ("2", "left", "right"), "Policy": ("3", "down", "up"), "Alerts": ("4", "down", "up"),
    "Map": ("5", "right", "left"), "Engine": ("7", "up", "down"), "from screen to screen": ("1", "3", "1"),
}  # fmt: skip
"""By name the key that opens it, and two that take turns on it."""
KEYS_ELSEWHERE = 60


def snapshots() -> list[Snapshot]:
    return [
        scenes.live(number=number, buckets=scenes.many_buckets(BUCKETS, number * 0.05)) for number in range(SNAPSHOTS)
    ]


class PaintingApp(SpecdeckApp):
    """Says when something was painted. (Textual offers no public hook for it; a pilot's own waits are longer.)"""

    def __init__(self, feed: memory_feed.MemoryFeed) -> None:
        super().__init__(feed)
        self.painted = asyncio.Event()

    def _display(self, screen: Screen[object], renderable: object) -> None:
        super()._display(screen, renderable)
        self.painted.set()


async def own_table() -> tuple[float, dict[str, list[float]]]:
    """CPU seconds a snapshot, and by screen the seconds from each key to the end of its paint."""
    map_ = map_scenes.operating_map()
    buckets = scenes.many_buckets(BUCKETS)
    full = scenes.live(buckets=buckets, workloads=scenes.workloads(), map=map_scenes.summary(map_))
    feed = memory_feed.MemoryFeed(full)
    feed.map = map_
    app = PaintingApp(feed)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(0.5)
        began = time.process_time()
        for snapshot in snapshots():
            app.receive(snapshot)
            await pilot.pause()
        cpu = (time.process_time() - began) / SNAPSHOTS
        app.receive(full)
        waits = {"Live": await _waits(app, ("down", "up"), KEYS)}
        for name, (opens, *keys) in SCREENS.items():
            await pilot.press(opens)
            await pilot.pause(0.5)
            waits[name] = await _waits(app, keys, KEYS_ELSEWHERE)
    return cpu, waits


async def _waits(app: PaintingApp, keys: Sequence[str], number: int) -> list[float]:
    """Seconds to the paint after each key; of many twenty of the one come before twenty of the other."""
    waits = []
    turn = 20 if number == KEYS else 1
    for place in range(number):
        app.painted.clear()
        started = time.perf_counter()
        app.post_message(Key(keys[place // turn % 2], None))
        with suppress(TimeoutError):  # at the end of a short list a key paints nothing
            await asyncio.wait_for(app.painted.wait(), 0.3)
            waits.append(time.perf_counter() - started)
        await asyncio.sleep(0.02)
    return sorted(waits)


class StockTable(App[None]):
    """The same cells in a DataTable, each changed one set with `update_cell`."""

    def compose(self) -> ComposeResult:
        yield DataTable()

    def on_mount(self) -> None:
        self._shown: dict[tuple[str, str], str] = {}
        self._layout = fit_columns(make_columns(4, False), 116)
        table = self.query_one(DataTable)
        for column, width in self._layout:
            table.add_column(column.title, width=width, key=column.id)
        for number in range(BUCKETS):
            table.add_row(*("" for _ in self._layout), key=str(number))

    def show(self, snapshot: Snapshot) -> None:
        table = self.query_one(DataTable)
        for number, bucket in enumerate(snapshot.buckets):
            for column, width in self._layout:
                text = text_of(column.cell(RowFacts(bucket, snapshot.ts), width))
                if self._shown.get((str(number), column.id)) != text:
                    self._shown[(str(number), column.id)] = text
                    table.update_cell(str(number), column.id, text)


async def stock_table() -> float:
    app = StockTable()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(0.5)
        began = time.process_time()
        for snapshot in snapshots():
            app.show(snapshot)
            await pilot.pause()
        return (time.process_time() - began) / SNAPSHOTS


def main() -> None:
    cpu, waits = asyncio.run(own_table())
    stock = asyncio.run(stock_table())
    print(f"console, {BUCKETS} buckets at {PER_SECOND} Hz: {cpu * PER_SECOND:.1%} of a core (≤ 15 %)")
    print(f"a DataTable alone with the same cells: {stock * PER_SECOND:.1%} of a core, {stock / cpu:.1f} times as much")
    for screen, times in waits.items():
        half, most = times[len(times) // 2] * 1e3, times[len(times) * 95 // 100] * 1e3
        print(f"key to paint, {screen}, {len(times)} keys: p50 {half:.0f} ms, p95 {most:.0f} ms (≤ 50 ms)")


if __name__ == "__main__":
    main()
