"""The order of a rehearsal's passes, as a function of the plan and of what is done; and how long the rest takes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from console.rehearsing.passes.arms import policy_of
from console.rehearsing.passes.order import FALLBACK_TEST, DuePass, engine_starts, passes, surveyed, to_do
from console.rehearsing.passes.pace import START_SECONDS, TEST_SECONDS, Pace
from engine.records import PolicyMode
from store.rehearsal.plan import ADAPTIVE, PROPOSED, WITHOUT, Mix, Phase, Plan

ARMS = (WITHOUT, "k0", "k2", PROPOSED, ADAPTIVE)
PLAN = Plan(
    name="p", arms=ARMS, mix=(Mix(name="chat", share=1.0, prompts="chat", max_tokens=(8,)),),
    phases=(Phase(name="busy", seconds=10.0, rate=1.0),), repeats=3,
)  # fmt: skip

plans = st.builds(
    lambda arms, repeats, survey: replace(PLAN, arms=tuple(arms), repeats=repeats, survey=min(survey, repeats)),
    st.lists(st.sampled_from(ARMS), min_size=1, unique=True),
    st.integers(1, 5),
    st.integers(0, 3),
)


def shown(plan: Plan) -> list[str]:
    return [f"{one.arm}{'' if one.stage == 'survey' else '*'}" for one in passes(plan)]


def test_arms_go_forwards_and_backwards_and_engine_starts_are_shared() -> None:
    assert shown(PLAN) == [
        "k0", "k2", "without",
        "without*", "adaptive*", "proposed*", "k2*", "k0*",
        "k0*", "k2*", "proposed*", "adaptive*", "without*",
    ]  # fmt: skip
    assert engine_starts(to_do(PLAN, ())) == 4  # with the drafter, without, with, without


@given(plans)
def test_each_arm_meets_each_repeat_that_is_its_own_once(plan: Plan) -> None:
    made = passes(plan)
    assert [one.number for one in made] == list(range(1, len(made) + 1))
    assert sorted((one.arm, one.repeat) for one in made) == sorted(
        (arm, repeat)
        for repeat in range(1, plan.repeats + 1)
        for arm in plan.arms
        if repeat > plan.survey or arm not in (PROPOSED, ADAPTIVE)
    )
    assert [one.repeat for one in made] == sorted(one.repeat for one in made)
    for repeat in range(plan.survey + 1, plan.repeats):
        one, after = ([step.arm for step in made if step.repeat == number] for number in (repeat, repeat + 1))
        assert after == one[::-1]


@given(plans, st.data())
def test_whatever_is_done_the_rest_is_made_in_the_same_order_with_one_test(plan: Plan, data: st.DataObject) -> None:
    done = data.draw(st.sets(st.integers(1, max(1, len(passes(plan))))))
    left = to_do(plan, done)
    due = [step for step in left if isinstance(step, DuePass)]
    assert due == [one for one in passes(plan) if one.number not in done]
    assert left.count(FALLBACK_TEST) == any(arm != WITHOUT for arm in plan.arms)
    if FALLBACK_TEST in left:
        after = left[left.index(FALLBACK_TEST) + 1 :]
        assert all(isinstance(step, DuePass) and step.arm == WITHOUT for step in after)
        assert engine_starts(left) == engine_starts(due)
    assert FALLBACK_TEST not in to_do(plan, done, tested=True)
    assert not any(isinstance(step, DuePass) and step.arm == PROPOSED for step in to_do(plan, done, proposable=False))


@given(plans)
def test_the_survey_is_over_before_anything_else_begins(plan: Plan) -> None:
    made = passes(plan)
    assert all((one.stage, after.stage) != ("comparison", "survey") for one, after in pairwise(made))
    survey = {one.number for one in made if one.stage == "survey"}
    assert surveyed(plan, survey)
    assert not survey or not surveyed(plan, survey - {max(survey)})


def test_the_time_left_follows_what_was_seen() -> None:
    pace = Pace(PLAN, starts_engines=True)
    left = to_do(PLAN, ())
    before = pace.seconds(left)
    assert before == 13 * (10.0 + 10.0) + TEST_SECONDS + 4 * START_SECONDS
    pace.started(5.0)
    pace.passed(12.0)
    assert pace.seconds(left) == 13 * 12.0 + TEST_SECONDS + 4 * 5.0
    assert pace.seconds(left, drafting=True) == 13 * 12.0 + TEST_SECONDS + 3 * 5.0
    assert Pace(PLAN, starts_engines=False).seconds(left[:1]) == 20.0


def test_an_arm_is_a_policy() -> None:
    schedule = [(1, 4, 2), (5, 32, 0)]
    assert policy_of("k12", None) == PolicyMode(mode="static", k=12)
    assert policy_of(PROPOSED, schedule) == PolicyMode(mode="schedule", schedule=schedule)
    assert policy_of(ADAPTIVE, None) == PolicyMode(mode="adaptive", act=True)
    assert policy_of(WITHOUT, None) is None
    for arm, proposal in (("k", schedule), (PROPOSED, None)):
        with pytest.raises(ValueError, match="no policy"):
            policy_of(arm, proposal)
