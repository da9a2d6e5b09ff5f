"""The plan of demo traffic: the same for the same seed, drawn before anything is sent, and shaped like its profile."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.traffic.plan import PROFILES, Phase, Profile, make_plan
from console.traffic.prompts import TEMPERATURE, WORKLOADS, Workload, prompts

DEMO = PROFILES["demo"]


def test_the_same_seed_gives_the_same_requests_at_the_same_moments_and_another_seed_does_not() -> None:
    plans = [msgspec.json.encode(make_plan(DEMO, seed, 1.0)) for seed in (7, 7, 8)]
    assert plans[0] == plans[1] != plans[2]


def test_the_demo_lasts_three_minutes_and_is_quiet_then_busy_then_quiet() -> None:
    assert 150 <= DEMO.seconds <= 210
    assert [phase.name for phase in DEMO.phases] == ["quiet", "busy", "quiet"]
    assert [DEMO.phase_at(at) for at in (0, 60, 140, 500)] == ["quiet", "busy", "quiet", "ending"]
    plan = make_plan(DEMO, 7, 1.0)
    first, busy, last = (
        sum(begin <= request.at < end for request in plan) / (end - begin)
        for begin, end in ((0, 50), (50, 130), (130, 180))
    )
    assert busy > 2 * first
    assert busy > 2 * last


@given(seed=st.integers(0, 10_000), name=st.sampled_from(sorted(PROFILES)))
def test_every_workload_is_sent_within_the_first_ten_seconds_and_all_times_lie_in_the_profile(
    seed: int, name: str
) -> None:
    profile = PROFILES[name]
    plan = make_plan(profile, seed, 0.2)
    assert {request.workload for request in plan if request.at <= 10} == set(WORKLOADS)
    times = [request.at for request in plan]
    assert times == sorted(times)
    assert 0 <= times[0] <= times[-1] <= profile.seconds


@pytest.mark.parametrize("scale", [0.5, 1.0, 4.0])
def test_the_number_of_arrivals_follows_the_scale(scale: float) -> None:
    expected = scale * sum(phase.seconds * phase.rate for phase in DEMO.phases)
    counts = [len(make_plan(DEMO, seed, scale)) - len(WORKLOADS) for seed in range(50)]
    # The mean of 50 Poisson counts: six standard errors either side.
    assert abs(sum(counts) / 50 - expected) < 6 * (expected / 50) ** 0.5


def test_a_stretched_profile_keeps_its_shape() -> None:
    stretched = DEMO.lasting(36)
    assert stretched.seconds == pytest.approx(36)
    assert [phase.rate for phase in stretched.phases] == [phase.rate for phase in DEMO.phases]
    assert [phase.seconds for phase in stretched.phases] == pytest.approx([10, 16, 10])


def test_about_half_of_the_requests_stream_and_shares_and_temperatures_are_those_of_the_workload() -> None:
    long = Profile("long", (Phase("steady", 2000, 1.0),), DEMO.shares)
    plan = make_plan(long, 1, 1.0)
    assert 0.4 < sum(request.stream for request in plan) / len(plan) < 0.6
    for workload in WORKLOADS:
        mine = [request for request in plan if request.workload == workload]
        assert abs(len(mine) / len(plan) - DEMO.shares[workload]) < 0.06
        assert {request.temperature for request in mine} == {TEMPERATURE[workload]}
        assert all(32 <= request.max_tokens <= 160 for request in mine)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_each_workload_has_many_different_prompts_of_a_length_that_fits(workload: Workload) -> None:
    made = prompts(workload)
    assert len(set(made)) == len(made) >= 40
    words = [sum(len(message.content.split()) for message in prompt) for prompt in made]
    assert min(words) >= 5
    assert max(words) <= 700


@pytest.mark.parametrize("workload", ["code", "repeat"])
def test_some_prompts_reach_into_the_second_context_bucket(workload: Workload) -> None:
    # 2.6 characters a token is less than any of our texts has: such a prompt has more than 512 tokens for certain.
    long = [prompt for prompt in prompts(workload) if sum(len(message.content) for message in prompt) > 5 * 512 * 0.7]
    assert 0.1 < len(long) / len(prompts(workload)) < 0.4


def test_a_prompt_comes_again_only_after_all_others_of_its_workload() -> None:
    plan = [request for request in make_plan(DEMO, 3, 3.0) if request.workload == "code"]
    head = [request.prompt for request in plan[: len(prompts("code"))]]
    assert len(set(head)) == len(head)
