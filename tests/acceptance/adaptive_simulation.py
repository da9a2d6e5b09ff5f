"""Adaptive against every fixed K in the deterministic simulator: quiet, rising and busy load, one workload and two.

The best arm is chosen on odd blocks of time and adaptive compared with it on even ones. Holds when adaptive reaches
0.97 of the best arm everywhere, and probes take no more than their share.
"""

from __future__ import annotations

import time
from typing import Any, Final

from engine.deciding.settings import DecidingSettings
from engine.intervals import geometric_mean
from tests.acceptance.result import write
from tests.engine.deciding_simulator.run import MAX_K, against_best, run_adaptive, run_fixed
from tests.engine.deciding_simulator.traffic import HOSTILE, MIDDLING, Workload, kept, steady, stepping

HOURS: Final = 4
FLOOR: Final = 0.97


def loads() -> dict[str, list[Workload]]:
    middling, hostile = steady(MIDDLING), steady(HOSTILE)
    rising = stepping(1, 2, 4, 8, 16, 8, 4, 2, seconds=120, rounds=4 * HOURS)
    return {
        "quiet, middling": [Workload("chat", hazards=middling)],
        "quiet, friendly": [Workload("code")],
        "rising, middling": [Workload("chat", hazards=middling, running=rising)],
        "rising, friendly": [Workload("code", running=rising)],
        "busy, middling": [Workload("chat", hazards=middling, running=kept(16))],
        "busy, friendly": [Workload("code", running=kept(16))],
        "4 running, hostile beside friendly": [
            Workload("code", running=kept(2)), Workload("chat", hazards=hostile, running=kept(2)),
        ],
        "16 running, hostile beside friendly": [
            Workload("code", running=kept(8)), Workload("chat", hazards=hostile, running=kept(8)),
        ],
    }  # fmt: skip


def main() -> bool:
    started, table = time.process_time(), {}
    for name, workloads in loads().items():
        table[name] = row = _row(workloads)
        print(f"{name}: {row['ratio']:.3f} ({row['low']:.3f} to {row['high']:.3f}) of K={row['best']}", flush=True)
    held = all(row["ratio"] >= FLOOR for row in table.values())
    share = DecidingSettings().probe_share
    within = all(row["probe_share"] <= share for row in table.values())
    print(f"{'holds' if held else 'DOES NOT HOLD'}: {FLOOR} of the best arm")
    print(f"{'holds' if within else 'DOES NOT HOLD'}: probes within {share:.1%} of the time")
    figures = {"hours": HOURS, "floor": FLOOR, "loads": table, "cpu_seconds": round(time.process_time() - started)}
    print(write("adaptive_simulation", figures))
    return held and within


def _row(workloads: list[Workload]) -> dict[str, Any]:
    seconds = 3600.0 * HOURS
    station, mine = run_adaptive(workloads, seconds, block_s=960)
    arms = {k: run_fixed(workloads, k, seconds, block_s=960) for k in range(MAX_K + 1)}
    best, ratios = against_best(mine, arms)
    ratio, interval = geometric_mean(ratios)
    assert interval is not None
    assert station.estimates is not None
    totals = station.estimates.totals
    return {
        "ratio": ratio, "low": interval.low, "high": interval.high, "best": best, "blocks": len(ratios),
        "decisions": len(station.journal.decisions), "probe_share": totals.probe_ms / totals.busy_ms,
    }  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
