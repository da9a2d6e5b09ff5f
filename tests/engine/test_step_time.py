"""The step-time model finds what each part of a step costs, says how well it knows it, and never says more."""

from __future__ import annotations

from math import exp, hypot, sqrt
from statistics import mean, median, median_low, pstdev

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.step_time.bands import CONTEXT_EDGES, PREFILL_EDGES, batch_band, context_band, duration_bin, prefill_band
from engine.step_time.columns import Groups
from engine.step_time.counts import KEYS, SUMS, StepTimes
from engine.step_time.fit import Coefficients, fit_coefficients
from engine.step_time.medians import grouped_mean, grouped_median
from engine.step_time.model import StepModel, fit_step_model
from tests.engine.simulated_steps import EXACT, TRUTH, added_up, band, known_model, one_row_each, steps, traffic

LOADS = np.array([1, 2, 4, 8, 16, 32, 32]), np.array([500, 1000, 2000, 4000, 8000, 16000, 160000])
"""Batches, and contexts summed over them."""


@pytest.fixture(scope="module")
def model() -> StepModel:
    """Of 30,000 steps with noise and outliers."""
    return fit_step_model(added_up(traffic(seed=1, number=30_000)))


class TestBands:
    @given(st.integers(0, 2**40))
    @settings(deadline=None)
    def test_a_batch_is_padded_to_the_next_power_of_two(self, batch: int) -> None:
        padded = 0
        while padded < batch:
            padded = padded * 2 or 1
        assert batch_band(batch) == padded

    @given(st.integers(1, 2**20), st.integers(0, 2**20))
    @settings(deadline=None)
    def test_a_context_band_is_the_largest_edge_that_the_mean_reaches(self, batch: int, mean: int) -> None:
        for context in (batch * mean, batch * mean + batch - 1, max(0, batch * mean - 1)):
            assert context_band(context, batch) == max(edge for edge in CONTEXT_EDGES if edge * batch <= context)

    @given(st.integers(0, 2**40))
    @settings(deadline=None)
    def test_a_prefill_band_is_the_largest_edge_reached_and_0_is_apart(self, prefill: int) -> None:
        assert prefill_band(prefill) == max(edge for edge in PREFILL_EDGES if edge <= prefill)
        assert (prefill_band(prefill) == 0) == (prefill == 0)

    @given(st.floats(0.001, 1e9))
    @settings(deadline=None)
    def test_a_duration_lies_within_its_bin_of_two_per_cent(self, ms: float) -> None:
        number = int(duration_bin(ms))
        assert 1.02**number * (1 - 1e-9) <= ms <= 1.02 ** (number + 1) * (1 + 1e-9)

    def test_a_step_without_duration_has_a_bin_too(self) -> None:
        assert duration_bin(0.0) == duration_bin(0.001)

    def test_columns_may_be_narrow(self) -> None:
        batch = np.array([1, 200, 255], dtype=np.uint8)
        assert batch_band(batch).tolist() == [1, 256, 256]
        assert context_band(np.array([255, 60000, 60000], dtype=np.uint16), batch).tolist() == [0, 256, 0]


class TestCounts:
    def test_a_column_that_is_missing_or_of_another_length_is_named(self) -> None:
        columns = {name: [1, 2] for name in (*KEYS, *SUMS)}
        with pytest.raises(ValueError, match="prefill has shape"):
            StepTimes.of(**columns | {"prefill": [1]})
        with pytest.raises(ValueError, match="k_draft missing or unknown"):
            StepTimes.of(**{name: column for name, column in columns.items() if name != "k_draft"})
        with pytest.raises(ValueError, match="surplus missing or unknown"):
            StepTimes.of(**columns, surplus=[1, 2])

    def test_narrow_columns_give_the_same_model_as_wide_ones(self) -> None:
        wide = added_up(traffic(seed=2, number=2_000))
        narrow = StepTimes.of(
            **{name: getattr(wide, name).astype(np.uint16) for name in KEYS},
            **{name: getattr(wide, name) for name in SUMS},
        )
        assert fit_step_model(narrow).coefficients == fit_step_model(wide).coefficients

    @pytest.mark.parametrize("times", [10**6, 10**12])
    def test_years_of_steps_do_not_overflow(self, times: int) -> None:
        once = added_up(traffic(seed=2, number=2_000))
        often = StepTimes.of(
            **{name: getattr(once, name) for name in KEYS}, **{name: getattr(once, name) * times for name in SUMS}
        )
        known, batch = fit_step_model(often), LOADS[0]
        vanilla = known.vanilla_ms(*LOADS)
        assert vanilla is not None
        assert known.clean_steps == times * fit_step_model(once).clean_steps
        assert vanilla == pytest.approx(TRUTH.ms(batch, batch, LOADS[1]), rel=0.1)

    def test_steps_kept_one_by_one_tell_what_their_sums_tell(self) -> None:
        seen = traffic(seed=3, number=4_000)
        whole, summed = fit_step_model(one_row_each(seen)), fit_step_model(added_up(seen))
        assert summed.vanilla_ms(*LOADS) == pytest.approx(whole.vanilla_ms(*LOADS), rel=0.02)
        assert summed.clean_steps == whole.clean_steps

    def test_the_order_of_rows_does_not_matter(self) -> None:
        seen = traffic(seed=3, number=2_000)
        shuffled = seen.take(np.random.default_rng(0).permutation(len(seen.ms)))
        assert fit_step_model(one_row_each(shuffled)).coefficients == pytest.approx(
            fit_step_model(one_row_each(seen)).coefficients, rel=1e-6
        )


class TestMedians:
    @given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50), st.integers(1, 9)), min_size=1, max_size=40))
    @settings(deadline=None)
    def test_a_weighted_median_is_that_of_the_repeated_values(self, rows: list[tuple[int, int, int]]) -> None:
        present = sorted({group for group, _, _ in rows})
        of = np.array([present.index(group) for group, _, _ in rows])
        values, weights = (np.array([row[place] for row in rows], dtype=float) for place in (1, 2))
        expected = [
            median_low([value for group, value, weight in rows if group == one for _ in range(weight)])
            for one in present
        ]
        assert grouped_median(values, weights, Groups(of, len(present))).tolist() == expected

    @given(st.lists(st.tuples(st.integers(0, 2), st.floats(0.1, 99), st.integers(1, 9)), min_size=1, max_size=40))
    @settings(deadline=None)
    def test_a_mean_without_stalls_is_that_of_the_repeated_values_near_their_median(
        self, rows: list[tuple[int, float, int]]
    ) -> None:
        present = sorted({group for group, _, _ in rows})
        groups = Groups(np.array([present.index(group) for group, _, _ in rows]), len(present))
        values, weights = (np.array([row[place] for row in rows], dtype=float) for place in (1, 2))
        means, spreads = grouped_mean(values, weights, groups)
        for group, shown, spread in zip(present, means, spreads, strict=True):
            all_of_it = [value for one, value, weight in rows if one == group for _ in range(weight)]
            middle = median_low(all_of_it)
            kept = [value for value in all_of_it if middle / 5 < value < 5 * middle]
            assert shown == pytest.approx(mean(kept))
            assert spread == pytest.approx(pstdev(kept), abs=1e-6)


class TestFit:
    def test_exact_steps_give_the_exact_costs(self) -> None:
        seen = traffic(seed=5, number=20_000, noise=0, outliers=0)
        assert fit_coefficients(one_row_each(seen)) == pytest.approx(TRUTH, rel=0.02)

    @pytest.mark.parametrize(("noise", "outliers"), [(0.1, 0.01), (0.3, 0.02)])
    def test_vanilla_times_are_found_among_noise_and_outliers(self, noise: float, outliers: float) -> None:
        found = fit_step_model(added_up(traffic(seed=1, number=30_000, noise=noise, outliers=outliers)))
        batch, context = LOADS
        slower = exp(noise**2 / 2)  # the mean of the factor by which steps are slower
        assert found.vanilla_ms(batch, context) == pytest.approx(TRUTH.ms(batch, batch, context) * slower, rel=0.04)

    def test_steps_with_drafts_and_prompts_are_found_too(self, model: StepModel) -> None:
        batch, context = LOADS
        assert model.step_ms(batch, 5 * batch, context, 500, 4) == pytest.approx(
            TRUTH.ms(batch, 5 * batch, context, 500, 4), rel=0.04
        )
        assert model.prefill_ms(1000) == pytest.approx(TRUTH.prefill * 1000, rel=0.1)

    def test_noise_of_the_duration_does_not_turn_into_cost_of_the_context(self) -> None:
        random = np.random.default_rng(8)
        batch = np.repeat([1, 8], 5_000)
        seen = steps(batch, random.uniform(256, 1024, 10_000).round()).slower(np.exp(random.normal(0, 0.3, 10_000)))
        assert fit_coefficients(added_up(seen)).context < 3 * TRUTH.context

    @given(
        st.lists(
            st.tuples(
                st.integers(0, 40), st.integers(0, 9000), st.integers(0, 5), st.integers(0, 3000), st.floats(0, 1e6)
            ),
            max_size=30,
        )
    )
    @settings(max_examples=60, deadline=None)
    def test_whatever_was_seen_no_cost_is_negative_and_every_time_is_a_number(
        self, seen: list[tuple[int, int, int, int, float]]
    ) -> None:
        batch, context, k, prefill, ms = np.array(seen, dtype=float).reshape(-1, 5).T
        found = fit_step_model(added_up(steps(batch, context, ms, k=k, prefill=prefill)))
        assert all(cost >= 0 for cost in found.coefficients)
        times = [found.vanilla_ms(*LOADS), found.step_ms(*LOADS, LOADS[1], 10, 2), found.prefill_ms(100)]
        assert all(np.all(np.isfinite(one)) and np.all(one >= 0) for one in times if one is not None)
        assert found.error is None or found.error >= 0
        assert np.isfinite(found.vanilla_error(*_bands(LOADS), np.ones(7)))

    def test_batch_and_tokens_that_are_always_equal_are_no_obstacle(self) -> None:
        seen = steps(np.tile([1, 2, 3, 5, 8, 13], 100))
        found = fit_coefficients(added_up(seen))
        costs = [one.batch + one.tokens + 400 * one.context for one in (found, TRUTH)]
        assert costs[0] == pytest.approx(costs[1], rel=0.001)
        assert found.ms(6, 6, 2400) == pytest.approx(TRUTH.ms(6, 6, 2400), rel=0.001)

    @pytest.mark.parametrize("number", [1, 2, 30])
    def test_one_load_is_enough_to_know_that_load(self, number: int) -> None:
        seen = steps([4] * number, ms=31.0)
        assert fit_step_model(added_up(seen)).vanilla_ms(4, 1600) == pytest.approx(31.0)

    def test_one_step_in_ten_that_takes_fifty_times_as_long_hardly_moves_anything(self) -> None:
        late = np.where(np.arange(400) % 10 == 3, 50, 1)
        found = fit_step_model(added_up(steps(np.tile([2, 2, 6, 6], 100)).slower(late)))
        assert found.vanilla_ms([2, 6], [800, 2400]) == pytest.approx(TRUTH.ms([2, 6], [2, 6], [800, 2400]), rel=0.001)


class TestTable:
    def test_a_load_that_costs_more_than_the_line_through_the_others_is_read_from_the_table(self) -> None:
        bumpy = TRUTH.ms(8, 8, 3200) * 1.5
        batch = np.repeat([1, 2, 4, 8, 16, 32], 60)
        seen = steps(batch, ms=np.where(batch == 8, bumpy, TRUTH.ms(batch, batch, batch * 400)))
        assert fit_step_model(added_up(seen)).vanilla_ms(8, 3200) == pytest.approx(bumpy, rel=0.001)

    @pytest.mark.parametrize(("number", "measured"), [(29, False), (30, True)])
    def test_a_cell_counts_from_thirty_clean_steps(self, number: int, measured: bool) -> None:
        found = fit_step_model(added_up(steps([4] * number + [16] * 60)))
        assert found.measured(*band(4, 1600)) == measured
        assert found.measured(*band(16, 6400))
        assert not found.measured(*band(32, 12800))

    def test_only_steps_that_are_vanilla_through_and_through_are_clean(self) -> None:
        plain = steps([4] * 40)
        shapes = {
            "drafting": plain._replace(k_draft=np.full(40, 2)),
            "verifying": plain._replace(k_verify=np.full(40, 2)),
            "prefilling": plain._replace(prefill=np.full(40, 9)),
            "not decoding": plain._replace(batch=np.zeros(40, dtype=int), context=np.zeros(40, dtype=int)),
        }
        for seen in shapes.values():
            found = fit_step_model(added_up(seen))
            assert found.clean_steps == 0
            assert found.vanilla_ms(4, 1600) is None
            assert not found.measured(*band(4, 1600))
        assert fit_step_model(added_up(plain)).clean_steps == 40

    def test_factor_and_error_of_a_cell_are_those_of_its_steps_one_by_one(self, model: StepModel) -> None:
        seen = traffic(seed=1, number=30_000)
        fit = model.coefficients
        batch, context = 16, 16 * 500
        ratios = [
            ms / (fit.constant + (fit.batch + fit.tokens) * rows + fit.context * tokens)
            for k_verify, k, rows, tokens, prefill, ms in zip(
                seen.k_verify, seen.k_draft, seen.batch, seen.context, seen.prefill, seen.ms, strict=True
            )
            if k_verify == k == 0 and not prefill and band(int(rows), int(tokens)) == band(batch, context)
        ]  # fmt: skip
        kept = [ratio for ratio in ratios if 1 / 5 < ratio / median(ratios) < 5]
        assert len(kept) < len(ratios)
        expected = hypot(pstdev(kept) / mean(kept) / sqrt(len(ratios)), 0.02 / sqrt(12))
        (place,) = np.flatnonzero(model.cells.code == (16 << 20 | 256))
        assert model.cells.steps[place] == len(ratios)
        assert model.cells.factor[place] == pytest.approx(mean(kept), rel=0.01)
        assert model.cells.error[place] == pytest.approx(expected, rel=0.1)


class TestWhatIsKnown:
    def test_nothing_seen_nothing_known(self) -> None:
        nothing = fit_step_model(StepTimes.of(**{name: [] for name in (*KEYS, *SUMS)}))
        assert nothing.vanilla_ms(*LOADS) is None
        assert nothing.step_ms(*LOADS, LOADS[1]) is None
        assert nothing.error is None
        assert not nothing.calibrated(*_bands(LOADS), np.ones(7))

    def test_an_engine_that_always_speculates_knows_nothing_of_vanilla(self) -> None:
        found = fit_step_model(added_up(steps(np.tile([1, 4, 8], 100), k=4)))
        assert found.vanilla_ms(*LOADS) is None
        assert found.step_ms(4, 20, 1600, passes=4) == pytest.approx(TRUTH.ms(4, 20, 1600, passes=4))

    def test_an_engine_that_never_drafted_does_not_guess_what_drafts_cost(self) -> None:
        found = fit_step_model(added_up(steps(np.tile([1, 4, 8], 100))))
        assert found.step_ms(4, 20, 1600, passes=4) is None
        assert found.step_ms(4, 4, 1600) == pytest.approx(TRUTH.ms(4, 4, 1600), rel=0.01)

    def test_a_step_of_one_token_each_is_planned_as_it_is_reckoned(self, model: StepModel) -> None:
        batch, context = LOADS
        assert model.step_ms(batch, batch, context) == pytest.approx(model.vanilla_ms(batch, context))

    def test_prompt_tokens_cost_nothing_at_none_and_never_less_for_more(self, model: StepModel) -> None:
        times = model.prefill_ms(np.arange(0, 5000, 100))
        assert times[0] == 0
        assert np.all(np.diff(times) > 0)

    def test_vanilla_time_is_linear_within_a_cell(self, model: StepModel) -> None:
        ends = model.vanilla_ms([9, 16], [9 * 300, 16 * 1000])
        middle = model.vanilla_ms(12.5, (9 * 300 + 16 * 1000) / 2)
        assert ends is not None
        assert middle == pytest.approx(ends.mean())


class TestHeldOut:
    def test_halves_that_agree_have_no_error(self) -> None:
        assert fit_step_model(added_up(steps([4] * 200))).error == pytest.approx(0, abs=1e-9)

    def test_a_half_that_is_a_quarter_slower_shows_as_the_mean_of_both_ways(self) -> None:
        seen = steps(np.tile([4, 16], 200))
        found = fit_step_model(added_up(seen.slower(np.where(seen.cell % 2 == 1, 1.25, 1))))
        assert found.error == pytest.approx((0.2 + 0.25) / 2, rel=0.02)

    def test_it_is_an_error_of_the_level_and_not_the_noise_of_single_steps(self, model: StepModel) -> None:
        assert model.error is not None
        assert 0 < model.error < 0.02

    def test_it_is_absent_while_one_half_has_no_clean_step(self) -> None:
        seen = steps([4] * 200)
        assert fit_step_model(added_up(seen.take(seen.cell % 2 == 0))).error is None
        drafting = seen._replace(k_draft=np.where(seen.cell % 2, 2, 0))
        assert fit_step_model(added_up(drafting)).error is None


class TestCalibrated:
    CELLS = (np.array([4, 16]), np.array([256, 256]))

    @pytest.mark.parametrize(("share", "calibrated"), [(0.79, False), (0.80, True), (1.0, True)])
    def test_four_fifths_of_the_time_must_be_measured(self, share: float, calibrated: bool) -> None:
        partly = known_model(TRUTH, {(4, 256): (1.0, 0.01)})
        assert partly.calibrated(*self.CELLS, np.array([share, 1 - share]) * 1000) == calibrated

    @pytest.mark.parametrize(("error", "calibrated"), [(0.10, True), (0.11, False), (None, False)])
    def test_the_held_out_error_must_be_known_and_small(self, error: float | None, calibrated: bool) -> None:
        cells = {(4, 256): (1.0, 0.01), (16, 256): (1.0, 0.01)}
        assert known_model(TRUTH, cells, error).calibrated(*self.CELLS, np.ones(2)) == calibrated

    def test_no_time_is_not_calibrated(self) -> None:
        assert not known_model(TRUTH, {(4, 256): (1.0, 0.01)}).calibrated(*self.CELLS, np.zeros(2))


class TestError:
    def test_cells_are_independent_and_a_cell_that_comes_twice_is_one(self) -> None:
        model = known_model(TRUTH, {(4, 256): (1.0, 0.03), (16, 256): (1.0, 0.04)})
        batch, context = np.array([4, 16, 4]), np.array([256, 256, 256])
        assert model.vanilla_error(batch, context, np.array([0.3, 0.5, 0.2])) == pytest.approx(
            hypot(0.5 * 0.03, 0.5 * 0.04)
        )

    def test_unmeasured_cells_share_the_error_of_the_fit(self) -> None:
        model = known_model(TRUTH, {(4, 256): (1.05, EXACT), (16, 256): (0.95, EXACT)})
        batch, context = np.array([4, 2, 8]), np.array([256, 256, 256])
        expected = (20 + 30) * 1.4826 * 0.05
        assert model.vanilla_error(batch, context, np.array([50.0, 20.0, 30.0])) == pytest.approx(expected)

    def test_it_covers_the_truth_though_the_steps_of_a_stretch_of_time_are_alike(self) -> None:
        covered, loads = 0, (np.array([1, 4, 16]), np.array([500, 2000, 8000]))
        truth = TRUTH.ms(loads[0], *loads) * exp((0.1**2 + 0.1**2) / 2)
        for seed in range(40):
            random = np.random.default_rng(seed)
            seen = steps(random.choice(loads[0], 3_000), 500).slower(np.exp(random.normal(0, 0.1, 3_000)))
            found = fit_step_model(added_up(seen.slower(np.exp(random.normal(0, 0.1, 60))[seen.cell])))
            vanilla = found.vanilla_ms(*loads)
            assert vanilla is not None
            for place in range(3):
                cell = _bands((loads[0][place : place + 1], loads[1][place : place + 1]))
                covered += abs(vanilla[place] / truth[place] - 1) < 1.96 * found.vanilla_error(*cell, np.ones(1))
        assert covered >= 0.85 * 120


def test_coefficients_are_named_in_the_order_of_a_step_s_load() -> None:
    assert Coefficients(1, 20, 300, 4000, 50000, 600000).ms(1, 1, 1, 1, 1) == 654321


def _bands(loads: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    batch, context = loads
    return batch_band(batch), context_band(context, batch)
