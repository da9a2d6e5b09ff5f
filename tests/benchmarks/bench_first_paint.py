"""The console's first paint against a bare Textual app: both in fresh processes, alternating, as a ratio.

A process notes the time since its own start when its first frame has been painted. To hold (design §11): 2.0.

    python tests/benchmarks/bench_first_paint.py [PAIRS]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BARE = """
from textual.app import App
from textual.widgets import Static

class Bare(App):
    def compose(self):
        yield Static("hello")

    def on_mount(self):
        self.call_after_refresh(painted)

def make(directory):
    return Bare()
"""

CONSOLE = """
from pathlib import Path
from console.app.application import SpecdeckApp
from console.feed.client import FeedClient

class Console(SpecdeckApp):
    def on_mount(self):
        self.call_after_refresh(painted)

def make(directory):
    return Console(FeedClient(Path(directory) / "feed", Path(directory) / "snapshots"))
"""

AROUND = """
import sys, time
began = time.perf_counter()

def painted():
    print(time.perf_counter() - began, file=sys.stdout, flush=True)
    app.exit()
{body}
app = make(sys.argv[1])
app.run(headless=True, size=(120, 36))
"""


def first_paint(body: str, directory: str) -> float:
    """Seconds from the first line of a fresh process to its first painted frame."""
    done = subprocess.run(
        [sys.executable, "-c", AROUND.format(body=body), directory],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TERM": "xterm-256color"},
    )
    return float(done.stdout.split()[-1])


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    bare: list[float] = []
    console: list[float] = []
    with tempfile.TemporaryDirectory() as directory:
        first_paint(BARE, directory), first_paint(CONSOLE, directory)  # warm the page cache
        for pair in range(pairs):
            order = [(BARE, bare), (CONSOLE, console)]
            for body, times in order if pair % 2 == 0 else reversed(order):
                times.append(first_paint(body, directory))
    ratios = sorted(one / other for one, other in zip(console, bare, strict=True))
    print(f"bare Textual app: {statistics.median(bare) * 1e3:.0f} ms (median of {pairs})")
    print(f"console:          {statistics.median(console) * 1e3:.0f} ms")
    print(f"ratio: {statistics.median(ratios):.2f} (≤ 2.0), pairs from {ratios[0]:.2f} to {ratios[-1]:.2f}")


if __name__ == "__main__":
    main()
