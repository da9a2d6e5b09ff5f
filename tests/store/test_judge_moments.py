"""Moments say what the clusters they sum up say; sequences count once in a window, however they are cut."""

from __future__ import annotations

from collections import defaultdict
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from engine.intervals import effective_n, ratio_interval
from store.judge.mix import parts
from store.judge.moments import MOMENTS, N, estimate, fall_below, moments
from store.judge.pairs import Gathering, Pairs, collapsed, keys_of
from store.judge.scale import Scale, empty_scale
from store.judge.spans import share_span


def summed(under: list[float], over: list[float]) -> list[float]:
    columns = (np.array(under, dtype=float)[:, None], np.array(over, dtype=float)[:, None])
    _, found = moments(*columns, np.zeros(len(under), dtype=np.int64))
    sums: list[float] = found[0, 0].tolist()
    return sums


clusters = st.lists(st.tuples(st.integers(1, 200), st.integers(0, 200)), min_size=2, max_size=40).map(
    lambda pairs: ([y for y, _ in pairs], [min(x, y) for y, x in pairs])
)


@settings(deadline=None, max_examples=60)
@given(clusters)
def test_an_estimate_from_moments_is_the_ratio_estimator_of_the_clusters(drawn: tuple[list[int], list[int]]) -> None:
    under, over = drawn
    found = estimate(summed(list(map(float, under)), list(map(float, over))))
    assert found is not None
    assert found.value == pytest.approx(sum(over) / sum(under))
    assert found.n_eff == pytest.approx(effective_n(under))
    if not 0 < found.value < 1:
        return
    interval, span = ratio_interval(over, under), share_span(np.array(summed(under, over)), 0.95)  # type: ignore[arg-type]
    assert (interval is None) == (span is None)
    if interval is not None and span is not None:
        assert (span.low, span.high) == pytest.approx(interval, abs=1e-6)


def test_moments_of_windows_add_up() -> None:
    random = np.random.default_rng(1)
    under = random.integers(1, 50, 60).astype(float)
    over = np.floor(under * random.random(60))
    whole = np.array(summed(under.tolist(), over.tolist()))
    halves = [np.array(summed(u.tolist(), o.tolist())) for u, o in ((under[:20], over[:20]), (under[20:], over[20:]))]
    assert sum(halves) == pytest.approx(whole)


def test_all_or_nothing_still_has_a_spread_and_few_clusters_have_no_estimate() -> None:
    found = estimate(summed([5.0] * 30, [5.0] * 30))
    assert found is not None
    assert (found.value, found.spread) == (1.0, pytest.approx(0.5 / 31 * (1 - 0.5 / 31)))
    assert estimate(summed([5.0], [5.0])) is None
    assert estimate([0.0] * MOMENTS) is None


def test_the_bound_of_a_fall_is_welchs_on_effective_n() -> None:
    here, there = estimate(summed([10.0] * 20, [4.0, 6.0] * 10)), estimate(summed([10.0] * 50, [6.0, 8.0] * 25))
    assert here is not None
    assert there is not None
    fall = fall_below(here, there, 0.999)
    spread = max(here.spread, there.spread)
    a, b = spread / 20, spread / 50
    freedom = (a + b) ** 2 / (a * a / 19 + b * b / 49)
    assert fall.fall == pytest.approx(0.2)
    assert fall.bound == pytest.approx(stats.t.ppf(0.999, freedom) * sqrt(a + b) - 0.2)


@pytest.mark.parametrize("mean", [0.1, 0.5, 0.9])
def test_a_bound_at_99_percent_is_crossed_by_chance_once_in_a_hundred_looks_at_most(mean: float) -> None:
    random = np.random.default_rng(7)
    crossed = 0
    for _ in range(2000):
        steps = np.clip(random.lognormal(3.5, 0.8, 90), 5, 200).astype(int)
        rate = random.beta(mean * 5, (1 - mean) * 5, 90)
        accepted = random.binomial(steps, rate)
        present = estimate(summed(steps[:30].tolist(), accepted[:30].tolist()))
        reference = estimate(summed(steps[30:].tolist(), accepted[30:].tolist()))
        assert present is not None
        assert reference is not None
        crossed += fall_below(present, reference, 0.99).bound < 0
    assert crossed <= 36, "twenty, and what chance adds once in a thousand times"


# Sequences in windows

entry = st.tuples(st.integers(0, 3), st.integers(0, 6), st.integers(1, 9), st.integers(0, 9))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(st.lists(entry, max_size=8), max_size=6), min_size=1, max_size=5))
def test_a_window_sums_each_sequence_before_it_counts_it(ticks: list[list[list[tuple[int, int, int, int]]]]) -> None:
    scale, buckets = Scale(empty_scale()), np.ones(4, dtype=bool)
    expected: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(lambda: [0.0, 0.0]))
    last: dict[tuple[int, int], int] = {}
    alias: dict[tuple[int, int], int] = {}
    for tick, cells in enumerate(ticks):
        gathering = Gathering()
        for cell in cells:
            distinct = {(bucket, sequence): (steps, min(steps, got)) for bucket, sequence, steps, got in cell}
            for (bucket, sequence), (steps, got) in distinct.items():
                pair = (bucket, sequence)
                if last.get(pair, tick) < tick - 1:  # it was quiet for five minutes: another one
                    alias[pair] = alias.get(pair, 0) + 1
                last[pair] = tick
                total = expected[bucket][sequence + 100 * alias.get(pair, 0)]
                total[0] += steps
                total[1] += got
            if distinct:
                gathering.add(_pairs(distinct))
        scale.feed(gathering.take(), 4)
    seen, sums, _ = scale.close(buckets)
    assert seen.tolist() == sorted(expected)
    for bucket, found in zip(seen.tolist(), sums, strict=True):
        pairs = [*expected[bucket].values()]
        assert found[1] == pytest.approx(summed([y for y, _ in pairs], [x for _, x in pairs]))


def test_steps_of_sequences_that_were_there_before_the_window_are_told_apart() -> None:
    scale, buckets = Scale(empty_scale()), np.ones(1, dtype=bool)
    scale.feed(_pairs({(0, 1): (10, 5), (0, 2): (10, 5)}), 1)
    _, _, carried = scale.close(buckets)
    assert carried.tolist() == [0.0]
    scale.feed(_pairs({(0, 2): (30, 5), (0, 3): (10, 5)}), 1)
    _, _, carried = scale.close(buckets)
    assert carried.tolist() == [0.75]


def test_buckets_can_close_at_other_times() -> None:
    scale = Scale(empty_scale())
    scale.feed(_pairs({(0, 1): (10, 5), (1, 2): (20, 5)}), 2)
    seen, sums, _ = scale.close(np.array([True, False]))
    assert (seen.tolist(), sums[0, 1, N]) == ([0], 1)
    scale.feed(_pairs({(0, 1): (10, 5), (1, 2): (20, 5)}), 2)
    seen, sums, carried = scale.close(np.array([True, True]))
    assert (seen.tolist(), sums[:, 1, 1].tolist(), carried.tolist()) == ([0, 1], [10.0, 40.0], [1.0, 0.0])


def test_deeper_drafts_can_come_at_any_time() -> None:
    narrow = _pairs({(0, 1): (10, 5)})
    wide = Pairs(keys_of(np.array([0]), np.array([1])), np.array([[0.0, 10, 20]]), np.array([[0.0, 5, 7]]))
    gathering = Gathering()
    for pairs in (narrow, wide, narrow):
        gathering.add(pairs)
    totals = gathering.take()
    assert totals.under.tolist() == [[0, 30, 20]]
    assert collapsed([narrow, wide]).over.tolist() == [[0, 10, 7]]


def _pairs(entries: dict[tuple[int, int], tuple[int, int]]) -> Pairs:
    keys = keys_of(np.array([b for b, _ in entries]), np.array([s for _, s in entries]))
    order = np.argsort(keys)
    values = np.array([*entries.values()], dtype=float)[order]
    nothing = np.zeros(len(order))
    return Pairs(keys[order], np.stack([nothing, values[:, 0]], axis=1), np.stack([nothing, values[:, 1]], axis=1))


# The traffic mix


def test_a_pooled_change_is_the_sum_of_its_parts() -> None:
    before, after = np.zeros((2, MOMENTS)), np.zeros((2, MOMENTS))
    before[:, 1:3] = [[100, 44.7], [100, 20.5]]
    after[:, 1:3] = [[40, 17.88], [160, 32.8]]
    found = parts(before, after)
    assert (found.mix, found.rates) == pytest.approx((-0.0726, 0.0), abs=1e-4)
    after[1, 2] = 16.0
    found = parts(before, after)
    assert found.mix + found.rates == pytest.approx(33.88 / 200 - 65.2 / 200)
    assert found.rates < 0


def test_traffic_that_one_period_lacks_changes_the_mix_and_no_rate() -> None:
    before, after = np.zeros((2, MOMENTS)), np.zeros((2, MOMENTS))
    before[0, 1:3] = [100, 50]
    after[:, 1:3] = [[100, 50], [100, 10]]
    assert parts(before, after)[:2] == pytest.approx((-0.2, 0.0))
