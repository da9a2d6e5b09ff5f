"""Are the acceptance alerts silent on steady traffic, and do they see what they must?

Random traffic, of which all is known (`tests.store.judge_random_traffic`), is fed to the judge in 10-s cells.

- Silence: seven steady days of 500 buckets with 2 to 600 sequences an hour; at most one acceptance alert fires.
- Power: 8 points less from a random moment on, in a bucket of 200 sequences an hour whose sequences are spread by up to
  20 points; found within three hours in 90 of 100 runs. A fall of 2 points raises an alert in 1 of 100 at most.
"""

from __future__ import annotations

import sys
import time
from typing import Final

import numpy as np

from store.buckets import BucketName
from store.judge.alerts import Alert
from store.judge.inputs import Floats
from store.judge.judge import Judge
from tests.acceptance.result import write
from tests.store.judge_random_traffic import HISTORY_HOURS, HOUR, T0, Traffic, cells, falling, long_lasting, steady

SEEDS: Final = (1, 2, 3)
POWER_SEED: Final = 11
BUCKETS: Final = 500
DAYS: Final = 7
RUNS: Final = 300
LIMIT_SECONDS: Final = 3 * HOUR
MOST_FALSE: Final = 1
LEAST_FOUND: Final = 0.90
MOST_SMALL: Final = 0.01
LONG_BUCKETS: Final = 40


def judged(random: np.random.Generator, traffic: Traffic, hours: int) -> dict[int, list[Alert]]:
    """The acceptance alerts that fired, by bucket, oldest first."""
    names: dict[int, BucketName] = {
        number: ("e0", f"w{number}", "0-512", "0", "target | drafter | ngram | vllm 0.32.0")
        for number in range(len(traffic))
    }
    judge = Judge(names)
    for cell in cells(random, traffic, T0, hours):
        judge.sequences(cell)
    judge.advance(T0 + hours * HOUR)
    fired: dict[int, list[Alert]] = {}
    for alert in judge.changes().alerts:
        if alert.started is not None and alert.bucket is not None:
            fired.setdefault(int((alert.bucket.workload or "w0")[1:]), []).append(alert)
    return fired


def false_alerts(seed: int, buckets: int = BUCKETS, days: int = DAYS, *, lasting: bool = False) -> int:
    """How many alerts fired on steady traffic. `lasting`: of sequences that last for minutes."""
    random = np.random.default_rng(seed)
    traffic = long_lasting(random, buckets) if lasting else steady(random, buckets)
    return sum(len(alerts) for alerts in judged(random, traffic, days * 24).values())


def found(
    seed: int, points: float, spread: Floats | float, runs: int = RUNS, *, alike: bool = False
) -> tuple[float, float, list[float]]:
    """Shares of the runs in which an alert fired after the fall and within the limit, and in which one fired at all;
    seconds from the fall to each alert that fired."""
    random = np.random.default_rng(seed)
    traffic = falling(random, runs, points, spread, alike=alike)
    fired = judged(random, traffic, HISTORY_HOURS + 4)
    delays = [(alerts[0].confirmed or 0.0) - traffic.fall_at[number] for number, alerts in fired.items()]
    in_time = sum(0 < delay <= LIMIT_SECONDS for delay in delays)
    return float(in_time / runs), len(fired) / runs, sorted(float(delay) for delay in delays)


def main() -> bool:
    started = time.process_time()
    false = {str(seed): false_alerts(seed) for seed in SEEDS}
    for seed, many in false.items():
        print(f"{BUCKETS} steady buckets, {DAYS} days, seed {seed}: {many} false alerts")
    lasting = false_alerts(SEEDS[0], LONG_BUCKETS, lasting=True)
    print(f"{LONG_BUCKETS} steady buckets of sequences that last for minutes, {DAYS} days: {lasting} false alerts")
    table = {name: _row(*arguments) for name, arguments in _falls().items()}
    for name, row in table.items():
        print(f"a fall of {name}: found within 3 h in {row['in_time']:.1%} of {RUNS} runs, at all in {row['ever']:.1%}")
    verdicts = {
        "steady traffic is silent": max(false.values()) <= MOST_FALSE,
        "and where sequences last for minutes": lasting <= MOST_FALSE,
        "8 points are found within 3 h": table["8 points, spread up to 20"]["in_time"] >= LEAST_FOUND,
        "so they are at a spread of 20 where lengths are alike": (
            table["8 points, spread 20, lengths alike"]["in_time"] >= LEAST_FOUND
        ),
        "2 points are no fall": max(row["ever"] for name, row in table.items() if name.startswith("2 ")) <= MOST_SMALL,
    }
    for claim, held in verdicts.items():
        print(f"{'holds' if held else 'DOES NOT HOLD'}: {claim}")
    seconds = time.process_time() - started
    print(f"{seconds:.0f} s of CPU", file=sys.stderr)
    figures = {
        "false_alerts": false,
        "false_alerts_long": lasting,
        "runs": RUNS,
        "falls": table,
        "verdicts": verdicts,
        "cpu_seconds": round(seconds),
    }
    print(write("alert_simulation", figures))
    return all(verdicts.values())


def _falls() -> dict[str, tuple[float, Floats | float, bool]]:
    """Name → points, spread between sequences, whether their lengths are alike."""
    falls: dict[str, tuple[float, Floats | float, bool]] = {}
    for points in (8.0, 2.0):
        any_spread = np.random.default_rng(17).uniform(0, 0.2, RUNS)
        falls[f"{points:g} points, spread up to 20"] = (points, any_spread, False)
        for spread in (0.05, 0.1, 0.15, 0.2):
            falls[f"{points:g} points, spread {100 * spread:g}"] = (points, spread, False)
        falls[f"{points:g} points, spread 20, lengths alike"] = (points, 0.2, True)
    return falls


def _row(points: float, spread: Floats | float, alike: bool) -> dict[str, float]:
    in_time, ever, delays = found(POWER_SEED, points, spread, alike=alike)
    row = {"in_time": in_time, "ever": ever}
    if delays:
        row["median_minutes"] = round(delays[len(delays) // 2] / 60, 1)
    return row


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
