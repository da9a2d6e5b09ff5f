"""What moving about in an opened replay costs: seeks to and fro, pictures while it plays, memory.

    python -m tests.benchmarks.bench_seek [--rows 10000000] [--seeks 40] [--profile] [--keep FILE]

Prints each figure with the machine as JSON. The design wants a seek in a 10-million-row trace within 150 ms: from the
key to a picture of the new moment, figures of all buckets included.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from console.feed.protocol import ReplayAct
from console.replaying.acts import replay_act
from console.replaying.opened import opened
from console.replaying.player import Player
from engine.frames import Frame, decode
from store.database import Store
from store.ingest import Ingest
from store.judging import judge_all
from tests.benchmarks.bench_history import machine
from tests.benchmarks.bench_ingest import START, STEP_SECONDS, messages

LEAST_HOURS: Final = 1.5
"""The steps of a short trace are spread over so much record time."""
BATCH: Final = 32
TARGET_MS: Final = 150.0
_PICTURE_SECONDS: Final = 0.25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--seeks", type=int, default=40)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--keep", type=Path, help="a store to use again, made where it is missing")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.keep or Path(folder) / "seek.duckdb"
        made = 0.0 if path.exists() else fill(path, arguments.rows)
        with opened(path, None, lambda: None) as found:
            wall = Wall()
            player = Player(found, wall=wall)
            measure: Callable[[], dict[str, object]] = partial(measured, player, wall, arguments.seeks)
            if arguments.profile:
                profile = cProfile.Profile()
                result = profile.runcall(measure)
                pstats.Stats(profile).sort_stats("cumulative").print_stats(45)
            else:
                result = measure()
            result = {"rows": found.rows, "made_s": round(made, 1), **result}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"benchmark": "seek", **result, "peak_rss_mib": round(peak), "target_ms": TARGET_MS, **machine()}))


class Wall:
    """Time as the benchmark lets it pass."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def fill(path: Path, rows: int) -> float:
    """A store of some 50 buckets, recorded as from an engine and judged; the seconds that took."""
    began = time.perf_counter()
    step_seconds = max(STEP_SECONDS, LEAST_HOURS * 3600 / (rows // BATCH))
    with Store.open(path) as store:
        ingest = Ingest(store)
        for payload in messages(rows, batch=BATCH, step_seconds=step_seconds):
            message = decode(payload)
            if isinstance(message, Frame):
                ingest.frame(message, time.perf_counter())
            else:
                ingest.announcement(message, START)
            if ingest.buffered_rows >= 500_000:
                ingest.flush()
        ingest.close()
        judge_all(store.connection)
        store.connection.execute("CHECKPOINT")
    return time.perf_counter() - began


def measured(player: Player, wall: Wall, seeks: int) -> dict[str, object]:
    random.seed(2)
    first = milliseconds(player.take)
    clock = player.clock
    forward, backward = [], []
    for _ in range(seeks):
        target = random.uniform(clock.start, clock.end)
        (forward if target > clock.ts else backward).append(milliseconds(partial(go, player, target)))
    steps_on = [milliseconds(partial(step, player, 1)) for _ in range(seeks)]
    steps_back = [milliseconds(partial(step, player, -1)) for _ in range(seeks)]
    result: dict[str, object] = {
        "hours": round((clock.end - clock.start) / 3600, 2), "buckets": len(player.take().buckets),
        "first_ms": round(first.passed, 1), "forward": spread(forward), "backward": spread(backward),
        "step_on": spread(steps_on), "step_back": spread(steps_back),
    }  # fmt: skip
    for speed in (1.0, 50.0, 1000.0):
        result[f"playing_x{speed:g}"] = spread(played(player, wall, speed, seeks))
    return result


def go(player: Player, ts: float) -> None:
    replay_act(player, ReplayAct(act="seek", ts=ts))
    player.take()


def step(player: Player, count: int) -> None:
    replay_act(player, ReplayAct(act="step", count=count))
    player.take()


def played(player: Player, wall: Wall, speed: float, pictures: int) -> list[Spent]:
    """Milliseconds of each picture; a loop keeps it going."""
    clock = player.clock
    go(player, clock.start + (clock.end - clock.start) * 0.6)
    replay_act(player, ReplayAct(act="loop", loop=(clock.start, clock.end)))
    replay_act(player, ReplayAct(act="speed", speed=speed))
    replay_act(player, ReplayAct(act="play"))
    spent = []
    for _ in range(pictures):
        wall.now += _PICTURE_SECONDS
        spent.append(milliseconds(player.take))
    replay_act(player, ReplayAct(act="pause"))
    return spent


def spread(spent: list[Spent]) -> dict[str, float]:
    """Milliseconds: median, 95th percentile and worst of what passed, and the median of what the CPUs worked."""
    ordered = sorted(one.passed for one in spent)
    worked = statistics.median(one.worked for one in spent)
    p95 = ordered[min(len(ordered) - 1, round(0.95 * (len(ordered) - 1)))]
    return {
        "p50_ms": round(statistics.median(ordered), 1), "p95_ms": round(p95, 1), "worst_ms": round(ordered[-1], 1),
        "cpu_p50_ms": round(worked, 1),
    }  # fmt: skip


class Spent(NamedTuple):
    passed: float
    worked: float
    """By all threads: what it would take on one idle CPU."""


def milliseconds(work: Callable[[], object]) -> Spent:
    began, worked = time.perf_counter(), time.process_time()
    work()
    return Spent((time.perf_counter() - began) * 1000, (time.process_time() - worked) * 1000)


if __name__ == "__main__":
    main()
