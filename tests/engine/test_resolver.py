"""Draft lengths term by term: each row of the table of "Deciding K", ties, and a slow reference written from it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.policy import DraftLength, PolicyState, ProbeOrder, Resolver, WorkloadPolicy
from engine.records import LIMITS, PolicyMode

MAX_K = 4
RUNNING = 3
LADDER = [(1, 2, 4), (3, 8, 3), (9, 32, 0)]

OFF = PolicyMode(mode="off")
STATIC = PolicyMode(mode="static", k=2)
SCHEDULE = PolicyMode(mode="schedule", schedule=LADDER)
ADAPTIVE = PolicyMode(mode="adaptive", schedule=LADDER, act=True)
ADVISE = PolicyMode(mode="adaptive", schedule=LADDER, act=False)
MODES = {"off": OFF, "static": STATIC, "schedule": SCHEDULE, "adaptive": ADAPTIVE, "advise": ADVISE}

NOTHING: dict[str, Any] = {}
CAP = {"cap": 1}
FALLEN = {"workloads": {"code": WorkloadPolicy(fallback=True)}}
OWN_1 = {"workloads": {"code": WorkloadPolicy(k=1)}}
OWN_4 = {"workloads": {"code": WorkloadPolicy(k=4)}}
OPERATOR = {"fallback": True}
LANE = {"workloads": {"code": WorkloadPolicy(lane="vanilla")}}


def length(mode: PolicyMode, state: dict[str, Any], **sequence: Any) -> DraftLength:
    resolver = Resolver(PolicyState(version=1, policy=mode, **state), MAX_K)
    given_ = {"running": RUNNING, "workload": "code", "disable_speculation": False, "lane": "speculative"}
    return resolver.draft_length(**(given_ | sequence))


TABLE = [
    # term, state, then what each mode makes of it: off, static 2, schedule, adaptive, advise
    ("base", NOTHING, ("0 off", "2 static", "3 schedule", "3 schedule", "3 schedule")),
    ("adaptive's K below", OWN_1, ("0 off", "2 static", "3 schedule", "1 adaptive", "3 schedule")),
    ("adaptive's K above", OWN_4, ("0 off", "2 static", "3 schedule", "3 schedule", "3 schedule")),
    ("cap", CAP, ("0 off", "1 cap", "1 cap", "1 cap", "1 cap")),
    ("automatic fallback", FALLEN, ("0 off", "2 static", "0 fallback", "0 fallback", "3 schedule")),
    ("operator's fallback", OPERATOR, ("0 off", "0 operator", "0 operator", "0 operator", "0 operator")),
    ("lane", LANE, ("0 off", "0 lane", "0 lane", "0 lane", "0 lane")),
]


@pytest.mark.parametrize(("term", "state", "expected"), TABLE, ids=[row[0] for row in TABLE])
def test_a_row_of_the_table(term: str, state: dict[str, Any], expected: tuple[str, ...]) -> None:
    found = [length(mode, state) for mode in MODES.values()]
    assert tuple(f"{k} {limit}" for k, limit in found) == expected


@pytest.mark.parametrize(("mode", "expected"), zip(MODES, ("off", *["hint"] * 4), strict=True))
def test_disable_speculation_wins_over_everything_but_mode_off(mode: str, expected: str) -> None:
    everything = OPERATOR | CAP | LANE
    assert length(MODES[mode], everything, disable_speculation=True) == (0, expected)


def test_a_request_may_come_with_its_lane() -> None:
    assert length(SCHEDULE, NOTHING, lane="vanilla") == (0, "lane")


def test_the_engines_maximum_bounds_every_mode() -> None:
    assert length(PolicyMode(mode="static", k=9), NOTHING) == (MAX_K, "max")
    assert length(PolicyMode(mode="schedule", schedule=[(1, 8, 9)]), NOTHING) == (MAX_K, "max")
    assert length(PolicyMode(mode="adaptive", act=True), NOTHING) == (MAX_K, "max")
    assert length(PolicyMode(mode="adaptive", act=True), OWN_1) == (1, "adaptive")


def test_what_holds_for_a_workload_holds_for_no_other_and_untagged_is_one() -> None:
    state = {"workloads": {"code": WorkloadPolicy(lane="vanilla"), "untagged": WorkloadPolicy(k=2)}}
    assert length(ADAPTIVE, state, workload="chat") == (3, "schedule")
    assert length(ADAPTIVE, state, workload=None) == (2, "adaptive")


def test_a_static_mode_that_carries_a_schedule_does_not_execute_it() -> None:
    assert length(PolicyMode(mode="static", k=4, schedule=[(1, 8, 1)]), NOTHING) == (4, "static")


def order(kind: str, k: int = 3, workload: str | None = "code") -> ProbeOrder:
    return ProbeOrder(id=1, kind=kind, workload=workload, k=k, steps=8, wait=0)  # type: ignore[arg-type]


def probed(mode: PolicyMode, state: dict[str, Any], order_: ProbeOrder, **sequence: Any) -> str:
    resolver = Resolver(PolicyState(version=1, policy=mode, **state), MAX_K)
    given_ = {"running": RUNNING, "workload": "code", "disable_speculation": False, "lane": "speculative"}
    k, limit = resolver.probed_length(order_, **(given_ | sequence))
    return f"{k} {limit}"


K0, DEEP, RECOVER = order("k0", 0, None), order("deep", 2), order("recover", 2)

PROBED = [
    ("k0", K0, NOTHING, ("0 off", "0 probe", "0 probe", "0 probe", "0 probe")),
    ("k0 of a fallen one", K0, FALLEN, ("0 off", "0 probe", "0 fallback", "0 fallback", "0 probe")),
    ("k0 under a cap", K0, CAP, ("0 off", "0 probe", "0 probe", "0 probe", "0 probe")),
    ("deep", DEEP, OWN_1, ("0 off", "2 static", "3 schedule", "2 probe", "3 schedule")),
    ("deep, capped", DEEP, OWN_1 | CAP, ("0 off", "1 cap", "1 cap", "1 probe", "1 cap")),
    ("deep of a fallen one", DEEP, FALLEN, ("0 off", "2 static", "0 fallback", "0 fallback", "3 schedule")),
    ("recover", RECOVER, FALLEN, ("0 off", "2 static", "2 probe", "2 probe", "3 schedule")),
    ("recover, not fallen", RECOVER, OWN_1, ("0 off", "2 static", "3 schedule", "1 adaptive", "3 schedule")),
    ("recover, capped at 0", RECOVER, FALLEN | {"cap": 0}, ("0 off", "0 cap", "0 fallback", "0 fallback", "0 cap")),
    ("recover, operator", RECOVER, FALLEN | OPERATOR, ("0 off", *["0 operator"] * 4)),
    ("deep, lane", DEEP, LANE, ("0 off", *["0 lane"] * 4)),
]


@pytest.mark.parametrize(("name", "order_", "state", "expected"), PROBED, ids=[row[0] for row in PROBED])
def test_a_probe_in_every_mode(name: str, order_: ProbeOrder, state: dict[str, Any], expected: tuple[str, ...]) -> None:
    assert tuple(probed(mode, state, order_) for mode in MODES.values()) == expected


def test_a_recovery_probe_asks_for_more_than_the_k_that_tier_2_left() -> None:
    state = {"workloads": {"code": WorkloadPolicy(k=0, fallback=True)}}
    assert probed(ADAPTIVE, state, RECOVER) == "2 probe"


def test_no_probe_exceeds_the_schedule_at_this_load() -> None:
    assert probed(ADAPTIVE, OWN_1, order("deep", 4)) == "3 probe"
    assert probed(ADAPTIVE, OWN_1, order("deep", 4), running=9) == "0 schedule"
    assert probed(ADAPTIVE, FALLEN, RECOVER, running=9) == "0 fallback"
    assert probed(ADAPTIVE, OWN_1, order("deep", 9), running=1) == "4 probe"


def test_a_probe_of_one_workload_leaves_its_neighbours_ordinary() -> None:
    assert probed(ADAPTIVE, OWN_1, order("deep", 2), workload="chat") == "3 schedule"
    assert probed(ADAPTIVE, FALLEN, order("recover", 2, "untagged"), workload=None) == "3 schedule"


# -- a slow reference, from the table alone --------------------------------------------------------------------------


def reference(state: PolicyState, sequence: dict[str, Any], probe: ProbeOrder | None) -> tuple[int, str]:
    """Write down every term that applies with its K; the smallest sets the length, the first of `LIMITS` at a tie."""
    column = state.policy.mode
    advising = column == "adaptive" and state.policy.act is False
    if advising:  # the schedule alone executes, no automatic fallback
        column = "schedule"
    name = sequence["workload"] or "untagged"
    own = state.workloads.get(name, WorkloadPolicy())
    terms: dict[str, int] = {}
    if column == "off":
        return 0, "off"
    if sequence["disable_speculation"]:
        terms["hint"] = 0
    if sequence["lane"] == "vanilla" or own.lane == "vanilla":
        terms["lane"] = 0
    if state.fallback:
        terms["operator"] = 0
    if state.cap is not None:
        terms["cap"] = state.cap
    if column == "static":
        assert state.policy.k is not None
        terms["static"] = state.policy.k
    if column in ("schedule", "adaptive") and state.policy.schedule is not None:
        terms["schedule"] = [k for first, _, k in state.policy.schedule if first <= sequence["running"]][-1]
    terms["max"] = MAX_K
    bound = min(terms.values())
    if column == "adaptive" and own.k is not None:
        terms["adaptive"] = own.k
    if own.fallback and column in ("schedule", "adaptive") and not advising:
        terms["fallback"] = 0
    if probe is not None and probe.kind == "k0":
        terms["probe"] = 0
    mine = probe is not None and probe.workload == name and bound > 0
    if probe is not None and mine and probe.kind == "deep" and column == "adaptive" and "fallback" not in terms:
        terms["adaptive"] = terms["probe"] = min(probe.k, bound)
    if probe is not None and mine and probe.kind == "recover" and "fallback" in terms:
        del terms["fallback"]
        terms["adaptive"] = terms["probe"] = min(probe.k, bound)
    k = min(terms.values())
    return k, next(limit for limit in LIMITS if terms.get(limit) == k)


_KS = st.integers(0, MAX_K + 1)
_SCHEDULES = st.lists(_KS, min_size=1, max_size=3).map(lambda ks: [(1 + 3 * i, 2 + 3 * i, k) for i, k in enumerate(ks)])
_MODES = (
    st.just(OFF)
    | st.builds(PolicyMode, mode=st.just("static"), k=_KS)
    | st.builds(PolicyMode, mode=st.just("schedule"), schedule=_SCHEDULES)
    | st.builds(
        PolicyMode,
        mode=st.just("adaptive"),
        schedule=st.none() | _SCHEDULES,
        act=st.sampled_from([True, True, False, None]),
    )
)
_NAMES = st.sampled_from(["code", "chat", "untagged"])
_OWN = st.builds(
    WorkloadPolicy,
    k=st.none() | _KS,
    lane=st.sampled_from(["speculative"] * 4 + ["vanilla"]),
    fallback=st.booleans(),
)
_STATES = st.builds(
    PolicyState,
    version=st.just(1),
    policy=_MODES,
    cap=st.none() | _KS,
    fallback=st.sampled_from([False] * 5 + [True]),
    workloads=st.dictionaries(_NAMES, _OWN),
)
_SEQUENCES = st.fixed_dictionaries(
    {
        "running": st.integers(1, 10),
        "workload": st.sampled_from(["code", "chat", None]),
        "disable_speculation": st.sampled_from([False] * 5 + [True]),
        "lane": st.sampled_from(["speculative"] * 5 + ["vanilla"]),
    }
)
_ORDERS = st.builds(
    order, st.sampled_from(["deep", "recover", "k0"]), st.integers(1, MAX_K + 2), st.sampled_from(["code", "untagged"])
)


@settings(max_examples=400)
@given(_STATES, _SEQUENCES, st.none() | _ORDERS)
def test_every_length_is_the_minimum_of_its_terms(
    state: PolicyState, sequence: dict[str, Any], probe: ProbeOrder | None
) -> None:
    resolver = Resolver(state, MAX_K)
    found = resolver.draft_length(**sequence) if probe is None else resolver.probed_length(probe, **sequence)
    assert found == reference(state, sequence, probe)


@settings(max_examples=400)
@given(_STATES, _SEQUENCES, _ORDERS)
def test_a_probe_lifts_nothing_that_the_operator_or_the_client_set(
    state: PolicyState, sequence: dict[str, Any], probe: ProbeOrder
) -> None:
    plain = Resolver(state, MAX_K).draft_length(**sequence)
    found = Resolver(state, MAX_K).probed_length(probe, **sequence)
    if plain.limit in ("off", "hint", "lane", "operator"):
        assert found == plain
    if plain.limit == "fallback" and found.k > 0:
        assert (probe.kind, found.limit) == ("recover", "probe")
    if state.cap is not None:
        assert found.k <= state.cap
    if found.limit != "probe":
        assert found == plain
