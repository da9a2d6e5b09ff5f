"""The speedup that the formula predicts, and the one that was realised at the load at which each token was made."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.intervals import ratio_interval
from engine.speedup import Speedup, formula_speedup, formula_tokens, pooled_speedup, realised_speedup
from engine.step_time.bands import batch_band, context_band
from engine.step_time.fit import Coefficients
from engine.step_time.load import LoadSums, account
from engine.step_time.model import StepModel, fit_step_model
from tests.engine.simulated_steps import EXACT, TRUTH, Steps, added_up, band, known_model, steps


class TestFormula:
    @pytest.mark.parametrize(
        ("alpha", "k", "c", "speedup"),
        [(0.4, 8, 0.1, 0.9257), (0.3, 4, 0.1, 1.0179), (0.8, 4, 0.1, 2.4011), (0.6, 1, 0.1, 1.4545)],
    )
    def test_it_gives_the_published_values(self, alpha: float, k: int, c: float, speedup: float) -> None:
        assert formula_speedup(alpha, k, c) == pytest.approx(speedup, abs=5e-5)

    def test_four_drafts_at_an_acceptance_of_80_per_cent_make_3_3616_tokens(self) -> None:
        assert formula_tokens(0.8, 4) == pytest.approx(3.3616, abs=5e-5)

    @given(st.floats(0, 1), st.integers(0, 200), st.floats(0, 10))
    @settings(deadline=None)
    def test_it_agrees_with_the_sum_of_powers(self, alpha: float, k: int, c: float) -> None:
        tokens = sum(alpha**j for j in range(k + 1))
        assert formula_tokens(alpha, k) == pytest.approx(tokens, rel=1e-12)
        assert formula_speedup(alpha, k, c) == pytest.approx(tokens / (k * c + 1), rel=1e-12)

    @given(st.floats(0, 1), st.integers(0, 50), st.floats(0, 10))
    @settings(deadline=None)
    def test_its_edges_are_exact(self, alpha: float, k: int, c: float) -> None:
        assert formula_speedup(1, k, c) == (k + 1) / (k * c + 1)
        assert formula_speedup(alpha, 0, c) == 1
        assert formula_speedup(alpha, k, 0) == formula_tokens(alpha, k)
        assert formula_speedup(0, k, c) == formula_speedup(5e-324, k, c) == 1 / (k * c + 1)

    @pytest.mark.parametrize("alpha", [1 - 1e-9, 1 - 1e-15, np.nextafter(1, 0)])
    def test_no_digits_are_lost_just_below_one(self, alpha: float) -> None:
        assert formula_tokens(alpha, 8) == pytest.approx(9 - 36 * (1 - alpha), rel=1e-14)

    @pytest.mark.parametrize(
        ("alpha", "k", "c", "message"),
        [
            (-0.01, 4, 0.1, r"alpha must lie in \[0, 1\], not -0.01"),
            (1.01, 4, 0.1, r"alpha must lie in \[0, 1\]"),
            (float("nan"), 4, 0.1, r"alpha must lie in \[0, 1\]"),
            ("0.5", 4, 0.1, r"alpha must lie in \[0, 1\]"),
            (0.5, -1, 0.1, "K must be a whole number of 0 or more, not -1"),
            (0.5, 2.5, 0.1, "K must be a whole number of 0 or more"),
            (0.5, True, 0.1, "K must be a whole number of 0 or more"),
            (0.5, 4, -0.1, "c must be a finite number of 0 or more, not -0.1"),
            (0.5, 4, float("nan"), "c must be a finite number of 0 or more"),
            (0.5, 0, float("inf"), "c must be a finite number of 0 or more"),
        ],
    )
    def test_what_cannot_be_meant_is_refused_by_name(self, alpha: Any, k: Any, c: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            formula_speedup(alpha, k, c)


class Row(NamedTuple):
    """A decode row, with what its step was."""

    cell: int
    emitted: int
    batch: int
    context: int
    """Summed over the decode rows of the step."""
    prefill: int
    ms: float


def load_sums(rows: list[Row]) -> LoadSums:
    """Added up as a store keeps them: one entry a key."""
    added: dict[tuple[int, int, int], list[float]] = {}
    for row in rows:
        amounts = (1, row.emitted, row.ms, row.emitted * row.batch, row.emitted * row.context, row.prefill)
        into = added.setdefault((row.cell, *band(row.batch, row.context)), [0.0] * 6)
        for place, amount in enumerate(amounts):
            into[place] += amount
    keys = np.array(list(added), dtype=np.int64).reshape(-1, 3).T
    sums = np.array(list(added.values()), dtype=float).reshape(-1, 6).T
    return LoadSums.of(**dict(zip((field.name for field in fields(LoadSums)), [*keys, *sums], strict=True)))


TWO_LOADS = Coefficients(constant=20, batch=10, tokens=0, context=0, prefill=0.5, passes=0)
"""v = 30 ms at batch 1 and 100 ms at batch 8; 400 prompt tokens take 200 ms."""
BOTH = known_model(TWO_LOADS, {(1, 256): (1.0, EXACT), (8, 256): (1.0, EXACT)})


def quiet(number: int, emitted: int, ms: float, prefill: int = 0) -> list[Row]:
    """Rows of batch 1, v = 30."""
    return [Row(cell % 10, emitted, 1, 400, prefill, ms) for cell in range(number)]


def busy(number: int, emitted: int, ms: float) -> list[Row]:
    """Rows of batch 8, v = 100."""
    return [Row(cell % 10, emitted, 8, 3200, 0, ms) for cell in range(number)]


class TestMixedLoad:
    def test_each_token_counts_at_the_load_at_which_it_was_made(self) -> None:
        rows = quiet(500, 3, 40) + busy(500, 1, 100)
        assert realised_speedup(load_sums(rows), BOTH).value == pytest.approx(1.357, abs=5e-4)

    def test_the_prefill_part_of_a_step_is_no_loss(self) -> None:
        rows = quiet(90, 3, 40) + quiet(10, 3, 240, prefill=400)
        assert realised_speedup(load_sums(rows), BOTH).value == pytest.approx(1.833, abs=5e-4)

    @pytest.mark.parametrize(
        ("rows", "vanilla", "right", "wrong"),
        [
            (quiet(500, 3, 40) + busy(500, 1, 100), [30] * 500 + [100] * 500, 1.357, 1.857),
            (quiet(90, 3, 40) + quiet(10, 3, 240, prefill=400), [30] * 90 + [30 + 200] * 10, 1.833, 2.50),
        ],
    )
    def test_a_product_of_means_is_another_number(
        self, rows: list[Row], vanilla: list[int], right: float, wrong: float
    ) -> None:
        product = np.mean([row.emitted for row in rows]) * np.mean(vanilla) / np.mean([row.ms for row in rows])
        assert realised_speedup(load_sums(rows), BOTH).value == pytest.approx(right, abs=5e-4)
        assert product == pytest.approx(wrong, abs=5e-4)

    @pytest.mark.parametrize(("noise", "slow"), [(0.05, 1.0), (0.1, 3.0), (0.3, 1.0), (0.3, 3.0)])
    def test_what_is_vanilla_throughout_is_neither_faster_nor_slower_than_vanilla(
        self, noise: float, slow: float
    ) -> None:
        """Times are skewed, and one step in a hundred takes longer: what a sum of times is held against is a mean."""
        found = []
        for seed in range(12):
            random = np.random.default_rng(seed)
            batch = random.choice([1, 4, 8], 3_000)
            factor = np.exp(random.normal(0, noise, 3_000)) * np.where(random.random(3_000) < 0.01, slow, 1.0)
            seen = steps(batch, 500).slower(factor)
            sums = LoadSums.of(
                cell=seen.cell, batch_band=batch_band(batch), context_band=context_band(batch * 500, batch), rows=batch,
                emitted=batch, duration_ms=seen.ms * batch, emitted_batch=batch**2, emitted_context=batch**2 * 500,
                prefill=0 * batch,
            )  # fmt: skip
            found.append(realised_speedup(sums, fit_step_model(added_up(seen))).value)
        assert np.mean(found) == pytest.approx(1, abs=0.004)

    def test_two_loads_with_noise_are_pooled_without_bias(self) -> None:
        random = np.random.default_rng(4)
        drafted = loads(random, k=4, number=6_000)
        model = fit_step_model(added_up(joined(drafted, loads(random, k=0, number=6_000))))
        emitted = np.where(drafted.batch == 2, 3, 1)
        rows = rows_of(drafted, emitted)
        truth = sum(e * TRUTH.ms(n, n, c) for e, n, c in zip(emitted, drafted.batch, drafted.context, strict=True))
        found = realised_speedup(load_sums(rows), model)
        assert found.state == "ok"
        assert found.value == pytest.approx(truth / drafted.ms.sum(), rel=0.02)
        assert found.low is not None
        assert found.high is not None
        assert found.low < truth / drafted.ms.sum() < found.high
        of_means = emitted.mean() * TRUTH.ms(
            *(column.mean() for column in (drafted.batch, drafted.batch, drafted.context))
        )
        assert of_means / drafted.ms.mean() > 1.1 * truth / drafted.ms.sum()


def loads(random: np.random.Generator, k: int, number: int) -> Steps:
    """Steps that are half of batch 2 and half of batch 16, with noise."""
    batch = np.where(np.arange(number) // 50 % 4 < 2, 2, 16)
    return steps(batch, 500, k=k).slower(np.exp(random.normal(0, 0.05, number)))


def joined(*parts: Steps) -> Steps:
    return Steps(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def rows_of(seen: Steps, emitted: np.ndarray) -> list[Row]:
    """One row a step."""
    whole = np.stack([seen.cell, emitted, seen.batch, seen.context, seen.prefill], axis=1).astype(int).tolist()
    return [Row._make([*counts, ms]) for counts, ms in zip(whole, seen.ms.tolist(), strict=True)]


class TestExperienced:
    def test_a_workload_at_k_0_pays_for_the_drafts_of_its_neighbour(self) -> None:
        random = np.random.default_rng(5)
        shared = steps([16] * 2_000, 500, k=4).slower(np.exp(random.normal(0, 0.05, 2_000)))
        model = fit_step_model(added_up(joined(shared, steps([16] * 400, 500))))
        plain, drafting = (rows_of(shared, np.full(2_000, emitted)) for emitted in (1, 4))
        experienced = realised_speedup(load_sums(plain), model)
        neighbour = realised_speedup(load_sums(drafting), model)
        expected = TRUTH.ms(16, 16, 8000) / TRUTH.ms(16, 80, 8000, passes=4)
        assert experienced.value == pytest.approx(expected, rel=0.02)
        assert experienced.high is not None
        assert experienced.high < 0.6
        assert neighbour.value == pytest.approx(4 * expected, rel=0.02)

    def test_vanilla_rows_alone_have_a_speedup_of_one(self) -> None:
        plain = steps(np.tile([1, 2, 4, 16], 500)).slower(np.exp(np.random.default_rng(6).normal(0, 0.05, 2_000)))
        found = realised_speedup(load_sums(rows_of(plain, np.ones(2_000))), fit_step_model(added_up(plain)))
        assert found.value == pytest.approx(1, abs=0.01)


ROWS = st.lists(
    st.builds(
        Row, st.integers(0, 5), st.integers(0, 6), st.integers(1, 40), st.integers(0, 40_000), st.integers(0, 5_000),
        st.floats(0.1, 1000),
    ),
    min_size=1, max_size=60,
)  # fmt: skip


class TestSums:
    FACTORS: Final = {(4, 256): 1.2, (8, 0): 0.7, (32, 1024): 1.1}
    MODEL = known_model(TRUTH, {cell: (factor, 0.02) for cell, factor in FACTORS.items()})

    @given(ROWS)
    @settings(deadline=None)
    def test_gained_and_taken_are_those_of_the_rows_one_by_one(self, rows: list[Row]) -> None:
        gained: dict[int, float] = {}
        taken: dict[int, float] = {}
        for row in rows:
            fit = TRUTH.constant + (TRUTH.batch + TRUTH.tokens) * row.batch + TRUTH.context * row.context
            vanilla = fit * self.FACTORS.get(band(row.batch, row.context), 1.0)
            assert self.MODEL.vanilla_ms(row.batch, row.context) == pytest.approx(vanilla)
            gained[row.cell] = gained.get(row.cell, 0.0) + row.emitted * vanilla + TRUTH.prefill * row.prefill
            taken[row.cell] = taken.get(row.cell, 0.0) + row.ms
        found = account(load_sums(rows), self.MODEL)
        assert found.cell.tolist() == sorted(gained)
        assert found.gained_ms.tolist() == pytest.approx([gained[cell] for cell in sorted(gained)])
        assert found.taken_ms.tolist() == pytest.approx([taken[cell] for cell in sorted(taken)])
        assert found.rows == len(rows)

    @given(ROWS, st.integers(0, 60))
    @settings(deadline=None)
    def test_sums_of_any_split_add_up(self, rows: list[Row], place: int) -> None:
        whole = account(load_sums(rows), self.MODEL)
        parts = [load_sums(part) for part in (rows[:place], rows[place:])]
        split = account(
            LoadSums(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(LoadSums))), self.MODEL
        )
        assert split.gained_ms.tolist() == pytest.approx(whole.gained_ms.tolist())
        assert split.taken_ms.tolist() == pytest.approx(whole.taken_ms.tolist())
        assert split.error_ms == pytest.approx(whole.error_ms)
        assert split.rows == whole.rows
        assert split.measured_ms == pytest.approx(whole.measured_ms)


ABSENT = Speedup(None, None, None, "absent", None, None)
CALIBRATING = Speedup(None, None, None, "calibrating", None, None)


def ten_stretches(model: StepModel | None, *, cells: int = 10, seed: int = 0) -> Speedup:
    random = np.random.default_rng(seed)
    rows = [
        Row(int(cell), 2, 1, 400, 0, ms) for cell, ms in zip(range(cells), random.uniform(30, 50, cells), strict=True)
    ]
    return realised_speedup(load_sums(rows), model)


class TestState:
    def test_without_decode_rows_it_is_absent(self) -> None:
        assert realised_speedup(load_sums([]), BOTH) == ABSENT
        assert realised_speedup(load_sums([]), None) == ABSENT
        assert pooled_speedup([]) == ABSENT

    def test_rows_that_took_no_time_have_no_speedup(self) -> None:
        assert realised_speedup(load_sums(quiet(20, 1, 0.0)), BOTH) == ABSENT

    @pytest.mark.parametrize(
        "model",
        [
            None,
            known_model(TWO_LOADS, {(1, 256): (1.0, EXACT)}, clean_steps=0),
            known_model(TWO_LOADS, {(1, 256): (1.0, EXACT)}, error=0.11),
            known_model(TWO_LOADS, {(1, 256): (1.0, EXACT)}, error=None),
            known_model(TWO_LOADS, {(8, 256): (1.0, EXACT)}),
        ],
        ids=["no model", "no clean step", "large error", "unknown error", "another load measured"],
    )
    def test_what_cannot_be_trusted_is_not_shown(self, model: StepModel | None) -> None:
        assert ten_stretches(model) == CALIBRATING

    @pytest.mark.parametrize(("away", "state"), [(19, "ok"), (21, "calibrating")])
    def test_a_fifth_of_the_time_may_lie_at_unmeasured_loads(self, away: int, state: str) -> None:
        rows = quiet(100 - away, 2, 40) + busy(away, 2, 40)
        assert realised_speedup(load_sums(rows), known_model(TWO_LOADS, {(1, 256): (1.0, EXACT)})).state == state

    @pytest.mark.parametrize(("cells", "state"), [(1, "few"), (2, "few"), (3, "ok")])
    def test_it_carries_few_below_three_stretches_of_time(self, cells: int, state: str) -> None:
        found = ten_stretches(BOTH, cells=cells)
        assert found.state == state
        assert found.value is not None
        assert (found.low is None) == (cells == 1)


class TestInterval:
    def test_with_vanilla_times_known_exactly_it_is_the_ratio_estimator_s(self) -> None:
        rows = [row._replace(ms=40 + row.cell) for row in quiet(1000, 2, 0)]
        found, sums = realised_speedup(load_sums(rows), BOTH), account(load_sums(rows), BOTH)
        expected = ratio_interval(sums.gained_ms, sums.taken_ms, share=False)
        assert expected is not None
        assert (found.low, found.high) == pytest.approx(expected, rel=0.01)

    def test_an_error_of_calibration_widens_it_by_relative_variances(self) -> None:
        unsure = known_model(TWO_LOADS, {(1, 256): (1.0, 0.05)})
        exact, wide = ten_stretches(BOTH), ten_stretches(unsure)
        assert wide.value == exact.value
        relative = [np.log(one.high / one.value) for one in (exact, wide)]  # type: ignore[operator]
        assert relative[1] ** 2 - relative[0] ** 2 == pytest.approx((1.96 * 0.05) ** 2, rel=0.001)
        assert wide.low * wide.high == pytest.approx(wide.value**2)  # type: ignore[operator]

    def test_only_the_part_of_gained_that_is_vanilla_time_is_unsure(self) -> None:
        unsure = known_model(TWO_LOADS, {(1, 256): (1.0, 0.05)})
        found = account(load_sums(quiet(90, 3, 40) + quiet(10, 3, 240, prefill=400)), unsure)
        assert found.gained_ms.sum() == pytest.approx(100 * 90 + 10 * 200)
        assert found.error_ms == pytest.approx(0.05 * 100 * 90)

    def test_it_covers_the_truth_about_95_times_in_100_when_stretches_differ(self) -> None:
        random = np.random.default_rng(9)
        covered = 0
        for _ in range(300):
            factor = 1 + random.normal(0, 0.04)  # what calibration got wrong
            model = known_model(TWO_LOADS, {(1, 256): (factor, 0.04)})
            level = np.exp(random.normal(0, 0.2, 20)) / np.exp(0.02)
            rows = [Row(cell, 2, 1, 400, 0, 40 * level[cell]) for cell in range(20) for _ in range(3)]
            found = realised_speedup(load_sums(rows), model)
            covered += found.low <= 1.5 <= found.high  # type: ignore[operator]
        assert 0.91 * 300 <= covered <= 0.99 * 300


class TestEngines:
    SLOW = known_model(Coefficients(200, 100, 0, 0, 0, 0), {(1, 256): (1.0, 0.03)})
    FAST = known_model(TWO_LOADS, {(1, 256): (1.0, 0.04)})

    def test_each_engine_is_held_against_its_own_model(self) -> None:
        accounts = [account(load_sums(quiet(100, 2, ms)), model) for ms, model in ((400, self.SLOW), (40, self.FAST))]
        found = pooled_speedup(accounts)
        assert found.value == pytest.approx((100 * 2 * 300 + 100 * 2 * 30) / (100 * 400 + 100 * 40))
        assert (found.gained_ms, found.taken_ms) == pytest.approx((66_000, 44_000))
        assert found.state == "ok"

    def test_errors_of_their_models_are_independent(self) -> None:
        accounts = [account(load_sums(quiet(100, 2, ms)), model) for ms, model in ((400, self.SLOW), (40, self.FAST))]
        found = pooled_speedup(accounts)
        error = np.hypot(0.03 * 60_000, 0.04 * 6_000) / 66_000
        assert found.high == pytest.approx(found.value * np.exp(1.96 * error), rel=1e-3)

    def test_an_engine_that_knows_nothing_yet_is_left_out_of_both_sums_while_it_is_a_small_part(self) -> None:
        new = known_model(TWO_LOADS, {}, clean_steps=0)
        known = account(load_sums(quiet(100, 2, 40)), self.FAST)
        small, large = (account(load_sums(quiet(number, 9, 40)), new) for number in (20, 30))
        assert pooled_speedup([known, small]).value == pooled_speedup([known]).value
        assert pooled_speedup([known, large]) == CALIBRATING
