"""Intervals hold what they promise for clustered data, and say nothing where one sequence can't."""

from __future__ import annotations

import numpy as np
import pytest

from store.counts import RATIO_UNIT, SequenceTotals, sum_by_sequence
from store.intervals import acceptance_interval, effective_n


def totals(ratios: list[float], steps: list[int]) -> SequenceTotals:
    y = np.array(steps, dtype=np.int64)
    x = np.array([round(ratio * RATIO_UNIT) for ratio in ratios], dtype=np.int64) * y
    return SequenceTotals(y, y, x)


def test_equal_sequences_count_fully_and_unequal_ones_less() -> None:
    assert effective_n(totals([0.5] * 20, [7] * 20)) == pytest.approx(20)
    assert effective_n(totals([0.5, 0.5], [90, 10])) == pytest.approx(100**2 / (90**2 + 10**2))


def test_one_sequence_has_no_interval_unless_all_or_nothing_was_accepted() -> None:
    assert acceptance_interval(totals([0.5], [100])) is None
    assert acceptance_interval(totals([], [])) is None
    assert acceptance_interval(totals([1.0], [100])) == pytest.approx((0.025, 1.0))
    assert acceptance_interval(totals([0.0], [100])) == pytest.approx((0.0, 0.975))


def test_all_accepted_gives_the_exact_binomial_on_effective_n() -> None:
    interval = acceptance_interval(totals([1.0] * 20, [5] * 20))
    assert interval == pytest.approx((0.025 ** (1 / 20), 1.0))


def test_the_interval_covers_the_truth_about_95_times_in_100_when_sequences_differ() -> None:
    random = np.random.default_rng(3)
    covered = 0
    for _ in range(400):
        rates = random.beta(4, 4, size=40)
        interval = acceptance_interval(totals(rates.tolist(), random.integers(5, 60, size=40).tolist()))
        assert interval is not None
        covered += interval.low <= 0.5 <= interval.high
    assert 365 <= covered <= 395


def test_totals_of_a_sequence_that_was_cut_by_cells_are_summed_first() -> None:
    cut = [np.array(column, dtype=np.int64) for column in ([7, 7, 9], [3, 4, 5], [3, 4, 5], [1, 2, 3])]
    whole = sum_by_sequence(*cut)
    assert whole.sequences == 2
    assert whole.draft_steps.tolist() == [7, 5]
    assert whole.ratio.tolist() == [3, 3]
