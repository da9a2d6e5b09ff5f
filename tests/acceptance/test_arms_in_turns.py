"""The arithmetic of arms that take turns: order of rounds, choice of the best arm, verdict."""

from __future__ import annotations

import pytest

from tests.acceptance.arms_in_turns import AgainstBest, Mean, against_best, mean, order

ARMS = ("off", "K=1", "K=2", "K=3", "K=4", "adaptive")


def test_every_arm_has_a_turn_in_each_round_and_two_rounds_are_a_palindrome() -> None:
    for pair in range(3):
        there, back = order(ARMS, 2 * pair), order(ARMS, 2 * pair + 1)
        assert sorted(there) == sorted(ARMS)
        assert back == there[::-1]


def test_no_arm_always_goes_first() -> None:
    places = [order(ARMS, number).index("adaptive") for number in (1, 3, 5)]
    assert len(set(places)) == 3


def test_the_best_arm_is_chosen_on_odd_rounds_and_compared_on_even_ones() -> None:
    rates = {"adaptive": [1.0, 95.0, 1.0, 95.0], "off": [90.0, 100.0, 90.0, 100.0], "K=1": [80.0, 300.0, 80.0, 300.0]}
    found = against_best(rates, "adaptive")
    assert found.best == "off"
    assert found.pairs == [0.95, 0.95]
    assert found.ratio.value == pytest.approx(0.95)


def test_an_arm_is_not_its_own_rival() -> None:
    assert against_best({"adaptive": [200.0, 200.0], "off": [100.0, 100.0]}, "adaptive").best == "off"


def test_one_block_alone_has_no_bounds_and_meets_nothing() -> None:
    alone = mean([2.0])
    assert alone == Mean(2.0, None, None)
    assert not AgainstBest("off", alone, [2.0]).met


@pytest.mark.parametrize(("value", "high", "met"), [(0.93, 0.97, True), (0.929, 1.2, False), (0.95, 0.969, False)])
def test_the_claim_holds_by_its_point_and_by_what_its_interval_reaches(value: float, high: float, met: bool) -> None:
    assert AgainstBest("off", Mean(value, 0.5, high), []).met is met
