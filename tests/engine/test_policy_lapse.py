"""What a policy loses by itself: an unconfirmed raise its raise, a station that is gone adaptive's own K."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.policy import Base, LapsingPolicy, PolicyState, Resolver, WorkloadPolicy, standing
from engine.policy.lapse import SILENCE_SECONDS
from engine.records import PolicyMode
from tests.engine.test_resolver import ADAPTIVE, MAX_K

STATIC_4 = PolicyMode(mode="static", k=4)
BEFORE = Base(PolicyMode(mode="static", k=1), cap=2, workloads={"chat": WorkloadPolicy(lane="vanilla")})
RAISED = PolicyState(version=7, policy=STATIC_4, confirm_by=1000.0, revert=BEFORE)
CONFIRMED = PolicyState(version=8, policy=STATIC_4)
DECIDED = PolicyState(
    version=5,
    policy=ADAPTIVE,
    cap=3,
    workloads={
        "code": WorkloadPolicy(k=1),
        "chat": WorkloadPolicy(k=0, fallback=True),
        "sums": WorkloadPolicy(k=2, lane="vanilla"),
    },
)


class Clock:
    """Wall and steady time, both moved by hand."""

    def __init__(self) -> None:
        self.wall, self.steady = 940.0, 50.0

    def pass_(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


class Applied:
    """A lapsing policy with its clock, and the states that it applied."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.states: list[PolicyState] = []
        first = PolicyState(version=0, policy=PolicyMode(mode="static", k=4))
        self.policy = LapsingPolicy(
            first, self.states.append, now=lambda: self.clock.wall, steady=lambda: self.clock.steady
        )

    def after(self, seconds: float) -> bool:
        self.clock.pass_(seconds)
        return self.policy.look()


@pytest.fixture
def applied() -> Applied:
    return Applied()


def test_an_unconfirmed_raise_reverts_at_its_deadline_under_its_own_version(applied: Applied) -> None:
    applied.policy.hear(RAISED)
    assert not applied.after(59.9)
    assert applied.states == [RAISED]
    assert applied.after(0.1)
    reverted = applied.states[-1]
    assert (reverted.version, reverted.policy, reverted.cap) == (7, BEFORE.policy, 2)
    assert reverted.workloads == BEFORE.workloads
    assert applied.policy.reverted == 1000.0


def test_a_raise_that_is_reverted_stays_so_while_the_station_repeats_it(applied: Applied) -> None:
    for _ in range(60):
        applied.policy.hear(RAISED)
        applied.after(1)
    assert applied.policy.reverted == 1000.0
    for _ in range(3):
        applied.policy.hear(RAISED)
        assert not applied.after(1)
    assert [state.policy for state in applied.states] == [STATIC_4, BEFORE.policy]


def test_a_confirmation_in_time_keeps_the_raise(applied: Applied) -> None:
    applied.policy.hear(RAISED)
    applied.after(59)
    applied.policy.hear(CONFIRMED)
    assert not applied.after(50)
    assert applied.states[-1] == CONFIRMED
    assert applied.policy.reverted is None


def test_a_newer_state_after_the_revert_holds_and_the_revert_is_over(applied: Applied) -> None:
    applied.policy.hear(RAISED)
    applied.after(61)
    applied.policy.hear(CONFIRMED)
    assert applied.states[-1] == CONFIRMED
    assert applied.after(0)
    assert applied.policy.reverted is None


def test_a_raise_that_arrives_after_its_deadline_is_never_executed(applied: Applied) -> None:
    applied.clock.pass_(100)
    applied.policy.hear(RAISED)
    assert [state.policy for state in applied.states] == [BEFORE.policy]


def test_a_minute_without_a_station_drops_adaptives_own_k_and_nothing_else(applied: Applied) -> None:
    applied.policy.hear(DECIDED)
    assert not applied.after(SILENCE_SECONDS - 0.1)
    assert applied.after(0.1)
    left = applied.states[-1]
    assert (left.version, left.policy, left.cap) == (5, ADAPTIVE, 3)
    assert left.workloads == {
        "code": WorkloadPolicy(),
        "chat": WorkloadPolicy(fallback=True),
        "sums": WorkloadPolicy(lane="vanilla"),
    }
    assert applied.policy.orphaned == applied.clock.wall
    resolver = Resolver(left, MAX_K)
    assert resolver.draft_length(1, "code", False, "speculative") == (3, "cap")
    assert resolver.draft_length(1, "chat", False, "speculative") == (0, "fallback")
    assert resolver.draft_length(1, "sums", False, "speculative") == (0, "lane")
    assert resolver.draft_length(1, "code", True, "speculative") == (0, "hint")


def test_adaptives_k_is_back_when_a_station_speaks_again(applied: Applied) -> None:
    applied.policy.hear(DECIDED)
    applied.after(130)
    since = applied.policy.orphaned
    applied.after(1)
    assert applied.policy.orphaned == since
    applied.policy.hear(DECIDED)
    assert applied.states[-1] == DECIDED
    assert applied.after(0)
    assert applied.policy.orphaned is None


def test_a_station_that_speaks_every_second_never_loses_anything(applied: Applied) -> None:
    for _ in range(200):
        applied.policy.hear(DECIDED)
        assert not applied.after(1)
    assert applied.states == [DECIDED]


def test_an_engine_that_never_heard_a_station_misses_none(applied: Applied) -> None:
    assert not applied.after(10_000)
    assert applied.states == []
    assert applied.policy.orphaned is None


def test_the_wall_clock_does_not_make_a_station_gone(applied: Applied) -> None:
    applied.policy.hear(DECIDED)
    applied.clock.wall += 3600
    assert not applied.policy.look()


def test_both_may_lapse_at_once(applied: Applied) -> None:
    own = {"code": WorkloadPolicy(k=3)}
    raised = PolicyState(
        version=9, policy=STATIC_4, confirm_by=990.0, revert=Base(ADAPTIVE, fallback=True, workloads=own)
    )
    applied.policy.hear(raised)
    applied.after(70)
    assert applied.states[-1] == PolicyState(9, ADAPTIVE, fallback=True, workloads={"code": WorkloadPolicy()})


@given(st.floats(0, 2000), st.floats(0, 200))
def test_what_stands_is_never_more_than_what_was_sent_or_confirmed(now: float, silence: float) -> None:
    stands = standing(RAISED, now, silence)
    assert stands.state.version == RAISED.version
    assert stands.state.confirm_by in (None, RAISED.confirm_by)
    assert stands.reverted == (now >= 1000.0) == (stands.state.policy == BEFORE.policy)
