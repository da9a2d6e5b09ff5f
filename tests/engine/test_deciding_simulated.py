"""In the simulator the controller does what it must, and never what it must not."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.deciding.memory import Memory
from engine.frames import LIMIT_CODE
from engine.policy import WorkloadPolicy
from engine.records import PolicyMode
from tests.engine.deciding_simulator.run import ADVISE, ANY_LOAD, MAX_K, against_best, run_adaptive, run_fixed, state
from tests.engine.deciding_simulator.simulated import Stretch
from tests.engine.deciding_simulator.station import Station
from tests.engine.deciding_simulator.traffic import (
    FRIENDLY,
    HOSTILE,
    MIDDLING,
    Workload,
    flipping,
    kept,
    steady,
)

PROBE = LIMIT_CODE["probe"]
LONGEST_PAUSE = 600.0

KINDS = st.sampled_from((FRIENDLY, MIDDLING, HOSTILE))


def two(first: tuple[float, ...], second: tuple[float, ...], running: int, flips: bool) -> list[Workload]:
    return [
        Workload(
            "code", hazards=flipping(first, second, seconds=500) if flips else steady(first), running=kept(running)
        ),
        Workload(
            "chat", hazards=flipping(second, first, seconds=500) if flips else steady(second), running=kept(running)
        ),
    ]


def keeps_its_dwell(station: Station) -> bool:
    last: dict[str, int] = {}
    for made in station.journal.decisions:
        steps = station.journal.steps_at[made.id]
        if steps - last.get(made.workload, -(10**9)) < station.settings.dwell_steps:
            return False
        last[made.workload] = steps
    return True


@given(KINDS, KINDS, st.integers(1, 6), st.booleans(), st.integers(0, 99))
@settings(max_examples=3, deadline=None, derandomize=True)
def test_dwell_fallback_and_probe_budget_hold_on_any_traffic(
    first: tuple[float, ...], second: tuple[float, ...], running: int, flips: bool, seed: int
) -> None:
    wrong: list[float] = []

    def seen(stretch: Stretch) -> None:
        off = [place for place, name in enumerate(("code", "chat")) if _off(stretch, name)]
        rows = np.isin(stretch.workload, off) & (stretch.k_asked > 0)
        if (rows & (stretch.limit != PROBE)).any() or (rows.any() and stretch.probe != "recover"):
            wrong.append(float(stretch.ts[0]))

    station, _ = run_adaptive(two(first, second, running, flips), 1000.0, seed=seed, seen=seen, through_bytes=True)
    assert not wrong
    assert keeps_its_dwell(station)
    totals = station.estimates.totals if station.estimates else None
    assert totals is not None
    assert totals.probe_ms <= 1.1 * station.settings.probe_share * totals.busy_ms


def _off(stretch: Stretch, name: str) -> bool:
    return stretch.state.workloads.get(name, WorkloadPolicy()).fallback


def test_a_hostile_workload_goes_to_nothing_by_itself_and_the_friendly_one_keeps_its_k() -> None:
    station, _ = run_adaptive(two(FRIENDLY, HOSTILE, 2, False), 420.0)
    workloads = station.engine.drafting.resolver.state.workloads
    assert workloads["chat"].fallback
    assert workloads.get("code", WorkloadPolicy()).k in (None, 3, 4)


@pytest.mark.parametrize("neighbour", [True, False], ids=["beside", "alone"])
def test_one_that_turns_friendly_recovers_within_the_longest_pause(neighbour: bool) -> None:
    hazards = flipping(HOSTILE, FRIENDLY, seconds=900)
    chat = Workload("chat", hazards=hazards, running=kept(2))
    workloads = [Workload("code", running=kept(2)), chat] if neighbour else [chat]
    drafted: list[float] = []

    def seen(stretch: Stretch) -> None:
        mine = (stretch.workload == len(workloads) - 1) & (stretch.limit != PROBE)
        if stretch.k_asked[mine].max(initial=0) >= 2 and stretch.ts[0] > 900:
            drafted.append(float(stretch.ts[0]))

    run_adaptive(workloads, 900 + LONGEST_PAUSE, seen=seen)
    assert drafted
    assert drafted[0] <= 900 + LONGEST_PAUSE


@pytest.mark.parametrize(
    "policy",
    [
        state(PolicyMode(mode="off")),
        state(ANY_LOAD, fallback=True),
        state(ANY_LOAD, workloads={"code": WorkloadPolicy(lane="vanilla")}),
    ],
    ids=["off", "operator", "lane"],
)
def test_nothing_is_drafted_and_nothing_decided_where_nobody_may_draft(policy) -> None:  # type: ignore[no-untyped-def]
    asked: list[int] = []
    station, _ = run_adaptive(
        [Workload("code")], 400.0, policy=policy, seen=lambda one: asked.append(int(one.k_asked.max()))
    )
    assert max(asked) == 0
    assert not station.journal.decisions
    assert not station.journal.orders


def test_advice_changes_nothing_and_is_held_against_what_was_measured_later() -> None:
    asked: set[int] = set()
    station, _ = run_adaptive(
        [Workload("chat", hazards=steady(HOSTILE), running=kept(4))], 400.0, policy=state(ADVISE),
        seen=lambda one: asked.update(one.k_asked.tolist()),
    )  # fmt: skip
    assert asked <= {0, MAX_K}
    assert station.journal.decisions
    assert not any(made.executed for made in station.journal.decisions)
    first = station.journal.scores[0]
    assert first.basis == "estimated"
    assert first.observed == pytest.approx(first.predicted, rel=0.3)


def test_adaptive_comes_close_to_the_best_fixed_length() -> None:
    workloads = [Workload("chat", hazards=steady(MIDDLING), running=kept(4))]
    _, mine = run_adaptive(workloads, 1200.0, block_s=150)
    best, ratios = against_best(mine, {k: run_fixed(workloads, k, 1200.0, block_s=150) for k in (0, 1, 2, 4)})
    assert best in (1, 2)
    assert np.mean(ratios[1:]) >= 0.97


def test_the_same_seed_decides_the_same() -> None:
    first, second = (run_adaptive(two(MIDDLING, HOSTILE, 2, False), 200.0)[0].memory for _ in range(2))
    assert first == second
    assert msgspec.json.decode(msgspec.json.encode(first), type=Memory) == first


@pytest.mark.parametrize(("mode", "probes"), [(ADVISE, False), (PolicyMode(mode="static", k=MAX_K), True)])
def test_step_times_without_drafts_are_probed_but_not_where_it_only_advises(mode: PolicyMode, probes: bool) -> None:
    station, _ = run_adaptive(
        two(MIDDLING, FRIENDLY, 2, flips=False), 300.0, policy=state(mode), calibrated=False, refit_s=30.0
    )
    assert bool(station.journal.orders) is probes
