"""The simulation of the acceptance measurements in small: silence on steady traffic, and an eye for falls."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from store.judge.compare import confidence_of_two
from tests.acceptance.alert_simulation import false_alerts, found
from tests.store.judge_random_traffic import HISTORY_HOURS, T0, cells, falling, steady


def test_steady_traffic_is_silent() -> None:
    assert false_alerts(seed=4, buckets=60, days=3) == 0


def test_sequences_that_last_over_several_windows_raise_nothing() -> None:
    assert false_alerts(seed=1, buckets=12, days=2, lasting=True) == 0


def test_a_fall_of_eight_points_is_found_and_one_of_two_is_none() -> None:
    in_time, _, delays = found(seed=5, points=8.0, spread=0.1, runs=30)
    assert in_time >= 0.9
    assert min(delays) > 0, "nothing fired before the fall"
    assert found(seed=6, points=2.0, spread=0.1, runs=30)[1] == 0


def test_the_made_traffic_is_what_it_says() -> None:
    random = np.random.default_rng(8)
    traffic = falling(random, 8, 8.0, 0.15)
    sums: dict[tuple[bool, int, int], list[float]] = {}
    for cell in cells(random, traffic, T0, HISTORY_HOURS + 12):
        for bucket, sequence, reached, matched in zip(
            cell.bucket.tolist(), cell.sequence.tolist(), cell.reached, cell.matched, strict=True
        ):
            k = int(traffic.k[bucket])
            total = sums.setdefault((cell.ts >= traffic.fall_at[bucket] + 60, bucket, sequence), [0.0, 0.0])
            total[0] += float(reached[k - 1])
            total[1] += float(matched[k - 1]) / k
    for bucket in range(8):
        before, after = (
            np.array([x / y for (late, b, _), (y, x) in sums.items() if (b, late) == (bucket, fallen) and y >= 30])
            for fallen in (False, True)
        )
        assert before.mean() == pytest.approx(traffic.mean[bucket], abs=0.012)
        assert before.mean() - after.mean() == pytest.approx(0.08, abs=0.025)
        assert 0.14 < before.std() < 0.19, "between sequences, and a little within"
    whole = Counter[int]()
    for (_, _, sequence), (steps, _) in sums.items():
        whole[sequence] += int(steps)
    lengths = np.array([whole[sequence] for sequence in range(80_000)])
    assert (lengths.min(), lengths.max()) == (5, 200)
    assert 1.5 < (lengths**2).mean() / lengths.mean() ** 2 < 2.1, "very unequal: half as many would tell as much"


def test_steady_buckets_are_of_all_sizes() -> None:
    rates = steady(np.random.default_rng(1), 500).per_hour
    assert rates.min() < 4
    assert rates.max() > 400


def test_two_windows_in_a_row_show_together_what_their_confidence_squared_would() -> None:
    assert 1 - confidence_of_two(0.9999) == pytest.approx(7.2e-8, rel=0.01)
