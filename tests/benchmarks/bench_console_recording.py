"""What the console takes while a station beside it records: both are processes of their own, as an operator has them.

Frames of 256 sequences go to a real station over its socket, 25,000 sequence-steps a second in 200 buckets; the console
follows it on a pseudo terminal. To hold (design §11): 15 % of a core on Live; and 3 % when nothing happens. Then how
many bytes a second it writes, which is what a slow link has to carry, on a feed of made-up pictures.

    python -m tests.benchmarks.bench_console_recording [--rows 25000]
"""

from __future__ import annotations

import argparse
import asyncio
import threading
import time
from pathlib import Path
from typing import Final

import psutil
import zmq
from msgspec.structs import replace

from console.feed.messages import Snapshot
from engine.sockets import Sockets, ipc
from tests.acceptance.result import machine
from tests.acceptance.soak import places
from tests.benchmarks.bench_ingest import BATCH, messages
from tests.benchmarks.console_process import ConsoleProcess, cpu_seconds
from tests.console import scenes
from tests.console.fake_station import FakeStation
from tests.console.station_harness import StationUnderTest

ROWS_A_SECOND: Final = 25_000
WORKLOADS: Final = [f"workload-{number:02}" for number in range(34)]
"""With two temperatures and three contexts they come to some 200 buckets."""
WARM_SECONDS, LIVE_SECONDS, SCREEN_SECONDS, IDLE_SECONDS = 15.0, 10.0, 4.0, 10.0
SCREENS: Final = {"2": "Bucket", "3": "Policy", "4": "Alerts", "5": "Map", "7": "Engine"}
READY_SECONDS: Final = 20.0
"""For the frames to be made, before the first has to be sent."""


class Traffic:
    """Sends frames at their times, which begin soon, for `seconds`."""

    def __init__(self, run_dir: Path, rows_a_second: int, seconds: float) -> None:
        step = BATCH / rows_a_second
        self.start = time.time() + READY_SECONDS
        self._payloads = list(
            messages(int(seconds * rows_a_second), self.start, WORKLOADS, (0.0, 0.8), step_seconds=step)
        )
        self._address, self._step = ipc(Sockets(run_dir).telemetry), step
        self.late = 0.0
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def wait(self) -> None:
        self._thread.join()

    def _send(self) -> None:
        with zmq.Context() as context, context.socket(zmq.PUSH) as push:
            push.connect(self._address)
            for number, payload in enumerate(self._payloads):
                due = self.start + number * self._step
                time.sleep(max(0.0, due - time.time()))
                self.late = max(self.late, time.time() - due)
                push.send(payload)


def beside_a_recorder(rows_a_second: int) -> None:
    with places() as directory:
        station = StationUnderTest(directory, engine=False).start()
        try:
            assert station.process is not None
            recorder = psutil.Process(station.process.pid)
            seconds = WARM_SECONDS + LIVE_SECONDS + SCREEN_SECONDS * 1.5 * len(SCREENS)
            traffic = Traffic(station.run_dir, rows_a_second, seconds)
            with ConsoleProcess(station.run_dir) as console:
                time.sleep(max(0.0, traffic.start - time.time()) + WARM_SECONDS)
                before, rows, began = cpu_seconds(recorder), _rows(station), time.perf_counter()
                live = console.cost(LIVE_SECONDS)
                took = time.perf_counter() - began
                share, taken = (cpu_seconds(recorder) - before) / took, (_rows(station) - rows) / took
                seen = station.snapshot()
                assert seen is not None
                print(
                    f"recorder: {taken:,.0f} sequence-steps/s in {len(seen.buckets)} buckets, {share:.1%} of a core, "
                    f"{seen.loss.frames_lost} frames lost; sent at most {traffic.late * 1e3:.0f} ms late"
                )
                print(f"console on Live: {live.cpu:.1%} of a core (≤ 15 %), {live.written / 1e3:.0f} kB/s")
                for key, name in SCREENS.items():
                    console.type(key)
                    time.sleep(SCREEN_SECONDS / 2)
                    cost = console.cost(SCREEN_SECONDS)
                    print(f"console on {name}: {cost.cpu:.1%} of a core, {cost.written / 1e3:.0f} kB/s")
                traffic.wait()
                console.type("1")
                time.sleep(5.0)
                idle = console.cost(IDLE_SECONDS)
                print(f"console on Live, nothing comes in: {idle.cpu:.1%} of a core (< 3 %), {idle.written:.0f} B/s")
        finally:
            station.close()


def _rows(station: StationUnderTest) -> int:
    seen = station.snapshot()
    return 0 if seen is None else seen.store.rows


class Still(FakeStation):
    """Nothing changes but the time."""

    def snapshot(self) -> Snapshot:
        moved = super().snapshot()
        first = [replace(bucket, last_seen=moved.ts) for bucket in scenes.many_buckets(200)]
        return replace(moved, buckets=first, tokens_per_second=212.4, events=[])


def bytes_written() -> None:
    for kind, what in ((Still, "nothing changes but the clock"), (FakeStation, "every figure changes")):
        for size in ((80, 24), (120, 36), (200, 50)):
            with places() as directory:
                over = threading.Event()
                thread = threading.Thread(target=lambda d=directory, k=kind, o=over: asyncio.run(_publish(k(d), o)))
                thread.start()
                with ConsoleProcess(directory, size) as console:
                    time.sleep(4.0)
                    cost = console.cost(6.0)
                    print(
                        f"{size[0]}×{size[1]}, 200 buckets at 4 Hz, {what}: {cost.written / 1e3:.1f} kB/s, "
                        f"{cost.cpu:.1%} of a core"
                    )
                over.set()
                thread.join()


async def _publish(station: FakeStation, over: threading.Event) -> None:
    station.play("live", 200)
    await station.start()
    while not over.is_set():
        await asyncio.sleep(0.1)
    await station.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS_A_SECOND)
    arguments = parser.parse_args()
    beside_a_recorder(arguments.rows)
    bytes_written()
    print(machine())


if __name__ == "__main__":
    main()
