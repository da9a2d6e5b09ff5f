"""What recording costs end to end: tokens/s with the recorder on against off, toggled inside one engine.

The engine runs in this process with batch 16; its frames go to a real station without an engine of its own, which
writes them to DuckDB on the same two cores, as in service. Blocks alternate on, off, off, on: the machine's drift
falls on both. Holds when the lower end of the interval is 0.97 or more.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from engine.intervals import geometric_mean
from tests.acceptance.result import write

QUADS = int(os.environ.get("SPECDECK_ACCEPT_QUADS", "16"))
BATCH = 16
TOKENS = 128
FLOOR = 0.97


class SilentRecorder:
    """Stands in for the recorder while it is off: vLLM with the same K and nothing counted."""

    def __init__(self, k: int) -> None:
        self._k = k

    def after_schedule(self, *args: Any) -> int:
        del args
        return self._k

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


def main() -> bool:
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as directory:
        os.environ |= {
            "SPECDECK_RUNTIME_DIR": f"{directory}/run",
            "SPECDECK_DATA_DIR": f"{directory}/data",
            "SPECDECK_ENGINE": "measured",
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            "VLLM_USE_AOT_COMPILE": "0",
        }
        from engine.sockets import sockets

        os.environ["SPECDECK_SOCKET"] = str(sockets().telemetry)
        specdeck = Path(sys.executable).with_name("specdeck")
        station = subprocess.Popen([specdeck, "serve", "--no-engine", "--port", "8917"], stderr=subprocess.DEVNULL)
        try:
            ratios, rates = _measure()
        finally:
            station.terminate()
            station.wait(30)
        rows = _stored_rows(Path(directory))
    point, interval = geometric_mean(ratios)
    assert interval is not None
    low, high = interval
    print(f"recording on/off: {point:.3f} ({low:.3f} to {high:.3f}), {len(ratios)} pairs, {rows} rows stored")
    figures = {"ratio": point, "low": low, "high": high, "floor": FLOOR, "pairs": ratios, "tokens_per_second": rates}
    print(write("recording_cost", figures | {"rows_stored": rows, "batch": BATCH}))
    return low >= FLOOR and rows > 0


def _measure() -> tuple[list[float], dict[str, list[float]]]:
    from engine.models import resolve
    from tests.engine.inprocess import Bench

    # Worker in a process of its own and bound to its cores, as in service; the scheduler stays here to be toggled.
    bench = Bench("ngram", Path(resolve("bundled").path), record=True, distributed_executor_backend="mp")
    on, off = bench.scheduler.recorder, SilentRecorder(4)
    rates: dict[str, list[float]] = {"on": [], "off": []}
    _block(bench, -1)
    ratios = []
    for quad in range(QUADS):
        found: dict[str, list[float]] = {"on": [], "off": []}
        for place, arm in enumerate(("on", "off", "off", "on") if quad % 2 == 0 else ("off", "on", "on", "off")):
            bench.scheduler.recorder = on if arm == "on" else off
            found[arm].append(_block(bench, quad * 4 + place))
        for arm, values in found.items():
            rates[arm] += values
        ratios.append((found["on"][0] * found["on"][1] / found["off"][0] / found["off"][1]) ** 0.5)
        print(f"quad {quad + 1}/{QUADS}: on/off {ratios[-1]:.3f}", file=sys.stderr)
    return ratios, rates


def _block(bench: Any, number: int) -> float:
    """Tokens a second of one batch; every block has prompts of its own, the same for every run."""
    from tests.engine.inprocess import REPEAT

    for place in range(BATCH):
        bench.add(f"w-{number}-{place}", f"{place} {REPEAT}", temperature=0.0, max_tokens=TOKENS, ignore_eos=True)
    started = time.perf_counter()
    bench.run()
    return BATCH * TOKENS / (time.perf_counter() - started)


def _stored_rows(directory: Path) -> int:
    import duckdb

    with duckdb.connect(str(directory / "data" / "specdeck.duckdb"), read_only=True) as connection:
        (count,) = connection.execute("SELECT count(*) FROM rows").fetchone() or (0,)
    return int(count)


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
