"""Hazards, the objective and the search are what design and definitions say they are."""

from __future__ import annotations

import numpy as np
import pytest

from engine.deciding.estimates import Evidence, Loads
from engine.deciding.hazards import expected_tokens, tokens_interval
from engine.deciding.objective import Objective, Prospects
from engine.deciding.plan import best_lengths
from engine.deciding.positions import positions_of
from engine.frames import CAUSE_CODE

FULL, BUDGET, EMPTY = (CAUSE_CODE[name] for name in ("full", "token_budget", "no_proposal"))


def objective(rows: list[float], fixed: bool = False, token: float = 2.0, passing: float = 2.0) -> Objective:
    """One load of two workloads; 30 ms, so much a verified token and so much a pass."""
    loads = Loads(np.array([100.0]), np.array([rows]), np.array([0.0]), np.array([400.0]))
    base = 30 + passing * np.arange(5.0)[None, :]
    return Objective(loads, np.array([4]), base, np.full((1, 5), token), np.zeros((1, 5)), 0.02, fixed)


def prospects(*hazards: float) -> Prospects:
    return Prospects(
        np.array([expected_tokens([one] * 4) for one in hazards]), np.tile(np.arange(5.0), (len(hazards), 1))
    )


def test_expected_tokens_follow_from_the_hazards_of_the_rows() -> None:
    drafted, accepted = np.array([3, 1, 1, 3]), np.array([3, 1, 1, 0])
    found = positions_of(np.arange(4), np.full(4, 3), drafted, accepted, np.array([FULL, EMPTY, EMPTY, FULL]), 3)
    g = found.passed.sum(axis=0) / found.at_risk.sum(axis=0)
    assert g.tolist() == pytest.approx([3 / 4, 1 / 3, 1])
    assert expected_tokens(g)[3] == pytest.approx(2.25)


def test_a_position_that_the_token_budget_took_is_nobodys_failure() -> None:
    found = positions_of(np.array([1]), np.array([4]), np.array([2]), np.array([2]), np.array([BUDGET]), 4)
    assert found.at_risk.tolist() == [[1, 1, 0, 0]]
    assert found.passed.tolist() == [[1, 1, 0, 0]]


def test_the_interval_of_tokens_covers_the_truth_when_sequences_differ() -> None:
    random = np.random.default_rng(4)
    covered = 0
    for _ in range(200):
        quality = random.beta(6, 3, 30)
        accepted = np.minimum(random.geometric(1 - np.repeat(quality, 20)) - 1, 2)
        sequence, k = np.repeat(np.arange(30), 20), np.full(600, 2)
        found = positions_of(sequence, k, k, accepted, np.full(600, FULL), 2)
        interval = tokens_interval(Evidence(found.at_risk, found.passed, found.asked, found.drafted), 2, 0.95)
        assert interval is not None
        covered += interval.low <= 1 + 6 / 9 + (6 * 7) / (9 * 10) <= interval.high
    assert covered >= 180


def test_one_sequence_alone_gives_no_interval() -> None:
    one = np.array([[10.0, 5.0]])
    assert tokens_interval(Evidence(one, one / 2, one[0], one[0]), 1, 0.95) is None


def test_the_objective_is_tokens_over_time_with_the_longest_draft_of_all() -> None:
    lengths = np.array([4, 1])
    tokens = 2 * float(expected_tokens([0.8] * 4)[4]) + 2 * 1.5
    assert objective([2, 2]).rate(lengths, prospects(0.8, 0.5)) == pytest.approx(
        1000 * tokens / (30 + 2 * (4 + 8 + 2) + 2 * 4)
    )


def test_a_fixed_batch_k_costs_its_passes_whatever_is_asked() -> None:
    fixed, nobody = objective([2, 2], fixed=True), np.array([0, 0])
    assert fixed.ms(nobody, prospects(0.8, 0.5)) == pytest.approx(100 * (30 + 2 * 4 + 2 * 4))


def test_two_that_pay_only_together_are_found_together() -> None:
    dear = objective([8, 8], token=1.2, passing=10.0)
    both = prospects(0.5, 0.5)
    now, choices = np.array([4, 4]), [[0, 1, 2, 3, 4]] * 2
    best = best_lengths(dear, both, now, choices)
    rates = {(a, b): dear.rate(np.array([a, b]), both) for a in range(5) for b in range(5)}
    assert rates[best[0], best[1]] == max(rates.values())
    assert rates[best[0], 4] < rates[best[0], best[1]]
