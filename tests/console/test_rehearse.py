"""`specdeck rehearse --fallback-test`: it passes where the engine follows the schedule, fails where it does not, and
leaves the policy as it was. The checker itself is held against step sequences made up here."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.feed.messages import CalibrationView, UnconfirmedView, WorkloadView
from console.feed.protocol import StepView
from console.rehearsing.checking import Held, check
from console.rehearsing.levels import FULL, default_schedule, levels, up_and_down
from console.rehearsing.obstacles import obstacles
from engine.records import PolicyMode
from engine.schedule import ScheduleError, lookup, parse_schedule
from tests.console.rehearsing_station import RehearsingStation, rehearsing_station
from tests.console.scenes import engine, live
from tests.console.station_harness import until

SCHEDULE = parse_schedule(FULL)
PLAN = levels(SCHEDULE, 4, 32)


def made(running: Sequence[int], lag: int = 0, **changed: Any) -> list[StepView]:
    """Steps of an engine that executes the schedule `lag` steps late."""
    late = [running[max(0, place - lag)] for place in range(len(running))]
    fields = {"limit": "schedule", "policy": 7, "probe": None} | changed
    return [
        StepView(number, float(number), now, lookup(SCHEDULE, then), **fields)
        for number, (now, then) in enumerate(zip(running, late, strict=True), 100)
    ]


UP_AND_DOWN = [1] * 5 + [5] * 5 + [12] * 10 + [5] * 5 + [1] * 5


def held_over(running: Sequence[int]) -> list[Held]:
    places = [(0, 5), (5, 10), (10, 15), (15, 20), (20, 25), (25, 30)]
    return [Held(level, 100 + a, 99 + b) for level, (a, b) in zip(up_and_down(PLAN), places, strict=True)]


@pytest.mark.parametrize("lag", [0, 1])
def test_an_engine_that_follows_at_once_or_a_step_later_passes(lag: int) -> None:
    verdict = check(made(UP_AND_DOWN, lag), SCHEDULE, held_over(UP_AND_DOWN), 7)
    assert verdict.failures == []
    assert [level.k for level in verdict.levels] == [4, 1, 0, 0, 1, 4]
    assert [(one.before, one.to, one.delay) for one in verdict.transitions] == [
        (4, 1, lag), (1, 0, lag), (0, 1, lag), (1, 4, lag),
    ]  # fmt: skip


def test_three_steps_late_fails_and_says_where() -> None:
    verdict = check(made(UP_AND_DOWN, 3), SCHEDULE, held_over(UP_AND_DOWN), 7)
    assert {one.delay for one in verdict.transitions} == {3}
    assert verdict.failures[0] == "steps 106 to 107: K 4 where the schedule gives 1 (at 5 running)"
    assert sum(failure.startswith("steps") for failure in verdict.failures) == 4


def test_an_engine_that_ignores_the_schedule_fails_at_every_other_level() -> None:
    steps = [StepView(step.step, step.ts, step.running, 4, "schedule", 7, None) for step in made(UP_AND_DOWN)]
    verdict = check(steps, SCHEDULE, held_over(UP_AND_DOWN), 7)
    assert verdict.transitions == []
    assert [level.k for level in verdict.levels] == [4] * 6
    assert "9 or more running: K 4 was executed, K 0 is due" in verdict.failures


def test_a_right_k_from_another_term_is_no_proof() -> None:
    verdict = check(made(UP_AND_DOWN, limit="cap"), SCHEDULE, held_over(UP_AND_DOWN), 7)
    assert "was set by the term `cap`, not by the schedule" in verdict.failures[0]


def test_steps_of_other_clients_alone_and_of_probes_prove_nothing_and_fail_nothing() -> None:
    own = made(UP_AND_DOWN)
    others = [StepView(130, 0.0, 2, 0, "hint", 7, None), StepView(131, 0.0, 2, 3, "probe", 7, None)]
    verdict = check([*own, *others, StepView(132, 0.0, 2, 3, "schedule", 7, "recover")], SCHEDULE, [], 7)
    assert (verdict.failures, verdict.steps, verdict.others) == ([], 30, 3)
    only_hinted = check(made(UP_AND_DOWN, limit="hint"), SCHEDULE, held_over(UP_AND_DOWN), 7)
    assert len(only_hinted.failures) == 6


def test_steps_under_the_policy_before_are_not_judged() -> None:
    before = [StepView(99 - back, 0.0, 12, 4, "static", 6, None) for back in range(5)][::-1]
    assert check([*before, *made(UP_AND_DOWN)], SCHEDULE, held_over(UP_AND_DOWN), 7).failures == []


RUNNING = st.lists(st.tuples(st.integers(1, 20), st.integers(1, 8)), min_size=1, max_size=12).map(
    lambda stretches: [running for running, steps in stretches for _ in range(steps)]
)


@given(RUNNING, st.integers(0, 1))
def test_whatever_runs_a_lag_of_one_step_passes(running: list[int], lag: int) -> None:
    verdict = check(made(running, lag), SCHEDULE, [], 7)
    assert verdict.failures == []
    assert all(one.delay is not None and one.delay <= 1 for one in verdict.transitions)


@given(RUNNING, st.data())
def test_one_wrong_k_anywhere_is_found(running: list[int], data: st.DataObject) -> None:
    steps = made(running)
    place = data.draw(st.integers(0, len(steps) - 1))
    one = steps[place]
    right = {lookup(SCHEDULE, running[place]), lookup(SCHEDULE, running[max(0, place - 1)])}
    wrong = data.draw(st.integers(0, 9).filter(lambda k: k not in right))
    steps[place] = StepView(one.step, one.ts, one.running, wrong, one.limit, one.policy, None)
    # Before the first step one may have run that was not recorded, and whose K it executes.
    assert bool(check(steps, SCHEDULE, [], 7).failures) == (place > 0)


@given(st.integers(1, 8), st.integers(3, 400))
def test_the_schedule_fits_every_engine_that_can_have_one(max_k: int, most: int) -> None:
    plan = levels(default_schedule(max_k, most), max_k, most)
    assert len(plan) == min(3, max_k + 1)
    assert plan[-1].k == 0
    assert all(level.holds(level.concurrent) and level.concurrent <= most for level in plan)
    assert [level.k for level in plan] == sorted((level.k for level in plan), reverse=True)


@pytest.mark.parametrize(
    ("entries", "most", "why"),
    [
        ([(1, 4, 2), (5, 32, 1)], 32, "must have K 0"),
        ([(1, 32, 0)], 32, "nothing to fall back from"),
        ([(1, 40, 2), (41, 64, 0)], 32, "at most 32"),
    ],
)
def test_a_schedule_that_shows_no_fallback_is_refused(entries: list[Any], most: int, why: str) -> None:
    with pytest.raises(ScheduleError, match=why):
        levels(parse_schedule(entries), 4, most)


STATIC = PolicyMode(mode="static", k=4)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"cap": 3}, "cap is 3"),
        ({"fallback": True}, "fallback is on"),
        ({"policy": PolicyMode(mode="off")}, "mode is off"),
        ({"unconfirmed": UnconfirmedView(confirm_by=1.0, reverts_to=STATIC)}, "waits to be confirmed"),
        ({"calibration": CalibrationView(engine="e0", state="running")}, "being calibrated"),
        (
            {"engines": [engine(engine="own-1", owned=False, configured=PolicyMode(mode="off"))]},
            "engine own-1 still has",
        ),
        ({"workloads": [WorkloadView(name="rehearsal", lane="vanilla")]}, "vanilla lane"),
        ({"workloads": [WorkloadView(name="rehearsal", fallback=True)]}, "automatic fallback"),
    ],
)
def test_what_would_hold_in_place_of_the_schedule_is_said(changes: dict[str, Any], why: str) -> None:
    calm = {"policy": STATIC, "cap": None, "fallback": False, "unconfirmed": None, "calibration": None, "workloads": []}
    (said,) = obstacles(live(**(calm | changes)), engine(batch_k="free", data_parallel_size=1), 4, "rehearsal")
    assert why in said


@pytest.mark.parametrize("changes", [{"batch_k": "fixed"}, {"data_parallel_size": 2}])
def test_an_engine_whose_batch_k_stays_is_not_tested_by_it(changes: dict[str, Any]) -> None:
    calm = live(policy=STATIC, cap=None, fallback=False, unconfirmed=None, calibration=None, workloads=[])
    assert len(obstacles(calm, engine(**({"batch_k": "free", "data_parallel_size": 1} | changes)), 4, "rehearsal")) == 1


@pytest.fixture(scope="module")
def station() -> Iterator[RehearsingStation]:
    with rehearsing_station() as running:
        yield running


def test_the_engine_follows_and_the_policy_is_as_before(station: RehearsingStation) -> None:
    before = PolicyMode(mode="adaptive", act=True)
    station.policy(policy=before)
    done = station.run("rehearse", "--fallback-test", "--json")
    assert done.code == 0, done
    assert done.json["passed"] is True
    assert done.json["acceptance_before"] == done.json["acceptance_after"] is not None
    assert done.json["prompts"] == 8
    assert done.json["schedule"] == [[1, 2, 4], [3, 8, 1], [9, 32, 0]]
    assert [level["k"] for level in done.json["levels"]] == [4, 1, 0, 0, 1, 4]
    assert all(level["steps"] >= 60 for level in done.json["levels"])
    assert [(one["from"], one["to"]) for one in done.json["transitions"]] == [(4, 1), (1, 0), (0, 1), (1, 4)]
    assert all(one["delay"] <= 1 for one in done.json["transitions"])
    after = station.snapshot()
    assert (after.policy, after.cap, after.fallback, after.unconfirmed) == (before, None, False, None)
    station.policy(policy=STATIC)


@pytest.mark.parametrize(
    ("behaviour", "why"), [("ignores", "K 4 where the schedule gives 1"), ("lags", "where the schedule gives")]
)
def test_a_broken_switch_exits_1_and_the_policy_is_as_before(
    station: RehearsingStation, behaviour: str, why: str
) -> None:
    with station.behaving(behaviour):
        done = station.run("rehearse", "--fallback-test")
    assert done.code == 1
    assert why in done.stderr
    assert "FAILED" in done.stdout
    after = station.snapshot()
    assert (after.policy, after.unconfirmed) == (STATIC, None)


def test_a_cap_that_would_hide_the_schedule_exits_1_and_nothing_is_changed(station: RehearsingStation) -> None:
    station.policy(cap=2)
    try:
        done = station.run("rehearse", "--fallback-test", "--json")
        assert (done.code, done.json["transitions"]) == (1, [])
        assert "cap is 2" in done.json["failures"][0]
        assert station.snapshot().policy == STATIC
    finally:
        station.policy(cap=None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_gives_the_policy_back_first(station: RehearsingStation, number: signal.Signals) -> None:
    process = station.spawn("rehearse", "--fallback-test")
    until(lambda: station.snapshot().policy != STATIC, "the schedule of the rehearsal")
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130, said
    after = station.snapshot()
    assert (after.policy, after.unconfirmed) == (STATIC, None)


def test_what_the_operator_sets_meanwhile_is_left_and_the_test_fails(station: RehearsingStation) -> None:
    other = PolicyMode(mode="static", k=2)
    process = station.spawn("rehearse", "--fallback-test")
    until(lambda: station.snapshot().policy != STATIC, "the schedule of the rehearsal")
    station.policy(policy=other)
    _, said = process.communicate(timeout=60)
    try:
        assert process.returncode == 1
        assert "was changed to static:2 by somebody else meanwhile" in said
        after = station.snapshot()
        assert (after.policy, after.unconfirmed) == (other, None)
    finally:
        station.policy(policy=STATIC)


def test_a_killed_rehearsal_leaves_a_change_that_the_station_takes_back(station: RehearsingStation) -> None:
    process = station.spawn("rehearse", "--fallback-test")
    until(lambda: station.snapshot().policy != STATIC, "the schedule of the rehearsal")
    process.kill()
    process.communicate()
    waits = station.snapshot().unconfirmed
    assert waits is not None
    assert waits.reverts_to == STATIC
    station.policy(policy=STATIC)
    station.confirm()


def test_a_schedule_without_a_fallback_is_refused(station: RehearsingStation) -> None:
    wrong = station.run("rehearse", "--fallback-test", "--schedule", "[[1,4,2]]")
    assert wrong.code == 2
    assert "must have K 0" in wrong.stderr


def test_without_a_station_it_exits_3(place: object) -> None:
    from tests.console.rehearsing_station import invoked

    assert invoked("rehearse", "--fallback-test").code == 3
