"""Probe blocks as the scheduler executes them: when one begins, what it changes, when it ends, and what it may not."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from engine.drafting import Asked, Drafting
from engine.policy import DraftLength, PolicyState, ProbeOrder, Resolver, WorkloadPolicy
from engine.probing import QUIET_STEPS, Draws, drawn
from engine.records import PolicyMode
from engine.sequences import SequenceClass, sequence_class

MAX_K = 4
CODE = sequence_class("code", False, "speculative")
CHAT = sequence_class("chat", False, "speculative")
HINTED = sequence_class("code", True, "speculative")

ADAPTIVE = PolicyMode(mode="adaptive", schedule=[(1, 4, 4), (5, 8, 2), (9, 9, 0)], act=True)
CODE_1 = {"code": WorkloadPolicy(k=1)}
CODE_FALLEN = {"code": WorkloadPolicy(fallback=True)}


def order(kind: str = "k0", *, id: int = 1, k: int = 3, steps: int = 5, wait: int = 0) -> ProbeOrder:
    workload = None if kind == "k0" else "code"
    return ProbeOrder(id=id, kind=kind, workload=workload, k=k, steps=steps, wait=wait)  # type: ignore[arg-type]


class Engine:
    """A `Drafting` and what it asked, step by step."""

    def __init__(self, workloads: dict[str, WorkloadPolicy] | None = None, batch_k: Literal["free", "fixed"] = "free"):
        self.version = 0
        self.drafting = Drafting(self._resolver(ADAPTIVE, workloads), batch_k, seed=7)
        self.asked: list[Asked] = []

    def _resolver(self, mode: PolicyMode, workloads: dict[str, WorkloadPolicy] | None) -> Resolver:
        self.version += 1
        return Resolver(PolicyState(version=self.version, policy=mode, workloads=workloads or {}), MAX_K)

    def policy(self, mode: PolicyMode = ADAPTIVE, workloads: dict[str, WorkloadPolicy] | None = None) -> None:
        self.drafting.resolver = self._resolver(mode, workloads)

    def give(self, order_: ProbeOrder, station: str = "a") -> None:
        self.drafting.probing.give(station, order_)

    def steps(self, number: int, *classes: SequenceClass, running: int = 2) -> list[Asked]:
        done = [self.drafting.ask(classes or (CODE, CHAT), running, False) for _ in range(number)]
        self.asked += done
        return done

    def settle(self) -> None:
        self.steps(QUIET_STEPS + 1)
        self.asked.clear()

    @property
    def probes(self) -> list[str | None]:
        return [asked.probe for asked in self.asked]

    @property
    def ks(self) -> list[int]:
        return [asked.batch_k for asked in self.asked]


def settled(workloads: dict[str, WorkloadPolicy] | None = None, **engine: Any) -> Engine:
    made = Engine(workloads, **engine)
    made.settle()
    return made


def test_a_block_waits_its_steps_lasts_its_steps_and_leaves_everything_as_it_was() -> None:
    engine = settled()
    before = engine.drafting.asked.lengths
    engine.give(order(wait=3, steps=5))
    engine.steps(12)
    assert engine.ks == [4] * 3 + [0] * 5 + [4] * 4
    assert engine.probes == [None] * 3 + ["k0"] * 5 + [None] * 4
    assert engine.asked[-1].lengths == before
    assert engine.asked[4].lengths == {CODE: DraftLength(0, "probe"), CHAT: DraftLength(0, "probe")}
    assert engine.asked[4].limit == "probe"


def test_an_order_is_executed_once_however_often_it_is_sent() -> None:
    engine = settled()
    for _ in range(100):
        engine.give(order(steps=4))
        engine.steps(1)
    assert Counter(engine.probes)["k0"] == 4


def test_another_station_counts_its_orders_anew() -> None:
    engine = settled()
    for station in ("a", "b", "a"):
        engine.give(order(steps=4), station)
        engine.steps(40)
    assert Counter(engine.probes)["k0"] == 8


def test_no_block_begins_within_20_steps_of_a_change_of_k() -> None:
    engine = settled()
    engine.steps(1, running=6)  # the schedule lowers K: a transition
    engine.give(order(steps=4))
    engine.steps(30, running=6)
    assert engine.probes.index("k0") == QUIET_STEPS + 1
    second = settled()
    second.give(order(id=1, steps=4))
    second.steps(5)
    second.give(order(id=2, steps=4))
    second.steps(40)
    first_end, next_begin = 3, second.probes.index("k0", 4)
    assert next_begin - first_end > QUIET_STEPS


def test_a_starting_engine_is_not_probed_at_once() -> None:
    engine = Engine()
    engine.give(order(steps=4))
    engine.steps(30)
    assert engine.probes.index("k0") == QUIET_STEPS + 1


def test_a_newer_order_takes_the_place_of_one_that_waits_but_not_of_a_block_under_way() -> None:
    engine = settled(CODE_1)
    engine.give(order("k0", id=1, wait=50))
    engine.steps(2)
    engine.give(order("deep", id=2, steps=6))
    engine.steps(3)
    engine.give(order("k0", id=3, steps=4))
    engine.steps(60)
    blocks = [
        probe for probe, before in zip(engine.probes, [None, *engine.probes], strict=False) if probe and not before
    ]
    assert blocks == ["deep", "k0"]
    assert Counter(engine.probes) == {None: 55, "deep": 6, "k0": 4}


@pytest.mark.parametrize("what", ["load", "policy", "gone"])
def test_a_block_ends_where_something_changes_inside_it(what: str) -> None:
    engine = settled()
    engine.give(order(steps=10))
    engine.steps(3)
    assert engine.ks == [0] * 3
    if what == "load":
        engine.steps(40, running=6)
        assert engine.ks[3:] == [2] * 40
    elif what == "policy":
        engine.policy(PolicyMode(mode="static", k=3))
        engine.steps(40)
        assert engine.ks[3:] == [3] * 40
    else:
        engine.steps(1, HINTED)
        engine.steps(40)
        assert engine.ks[4:] == [4] * 40
    assert engine.probes[3:] == [None] * 40 + [None] * (what == "gone")


def test_a_block_ends_with_the_policy_it_began_under_even_where_no_length_differs() -> None:
    engine = settled()
    engine.give(order(steps=10))
    engine.steps(3)
    engine.policy()
    engine.steps(2)
    assert engine.probes == ["k0"] * 3 + [None] * 2


def test_a_block_ends_when_the_sequences_it_is_about_are_gone() -> None:
    engine = settled(CODE_1)
    engine.give(order("deep", k=2, steps=10))
    engine.steps(3)
    engine.steps(2, CHAT)  # the executed K is chat's, before and after
    engine.steps(2)
    assert engine.ks == [4] * 7
    assert engine.probes == ["deep"] * 3 + [None] * 4


def test_a_policy_of_the_same_version_is_another_policy_too() -> None:
    """As when an unconfirmed raise is taken back."""
    engine = settled()
    engine.give(order(steps=10))
    engine.steps(3)
    state = PolicyState(version=engine.drafting.resolver.version, policy=PolicyMode(mode="static", k=1))
    engine.drafting.resolver = Resolver(state, MAX_K)
    engine.steps(2)
    assert engine.probes[3:] == [None, None]
    assert engine.ks[3:] == [1, 1]


def test_an_order_waits_for_somebody_whom_it_touches() -> None:
    engine = settled({"code": WorkloadPolicy(k=1)})
    engine.give(order("deep", steps=4))
    engine.steps(50, CHAT)
    assert set(engine.probes) == {None}
    engine.steps(30)
    assert Counter(engine.probes)["deep"] == 4


def test_deep_asks_its_workload_for_up_to_its_k_and_nobody_else() -> None:
    engine = settled({"code": WorkloadPolicy(k=1), "chat": WorkloadPolicy(k=2)})
    engine.give(order("deep", k=3, steps=4))
    (asked,) = engine.steps(1)
    assert asked.lengths == {CODE: DraftLength(3, "probe"), CHAT: DraftLength(2, "adaptive")}
    assert (asked.batch_k, asked.limit, asked.probe) == (3, "probe", "deep")
    assert asked.draws is not None
    assert asked.draws.length(CHAT, 1, 2) is None
    assert {asked.draws.length(CODE, handle, 3) for handle in range(60)} == {1, 2, 3}


def test_deep_is_drawn_anew_at_every_step() -> None:
    engine = settled(CODE_1)
    engine.give(order("deep", k=4, steps=8))
    lengths = [a.draws.length(CODE, 1, 4) for a in engine.steps(8) if a.draws is not None]
    assert len(lengths) == 8
    assert len(set(lengths)) > 1


def test_recover_lets_its_fallen_workload_draft_for_the_block_only() -> None:
    engine = settled(CODE_FALLEN)
    engine.give(order("recover", k=2, steps=4))
    engine.steps(8)
    lengths = [asked.lengths[CODE] for asked in engine.asked]
    assert lengths == [DraftLength(2, "probe")] * 4 + [DraftLength(0, "fallback")] * 4
    assert {asked.lengths[CHAT] for asked in engine.asked} == {DraftLength(4, "schedule")}
    assert engine.asked[0].draws is None


@pytest.mark.parametrize("kind", ["k0", "deep", "recover"])
def test_where_the_batch_k_cannot_move_trimming_does_it_all(kind: str) -> None:
    own = {"k0": {}, "deep": CODE_1, "recover": CODE_FALLEN}[kind]
    engine = settled(own, batch_k="fixed")
    engine.give(order(kind, k=2, steps=4))
    engine.steps(8, CODE)
    assert engine.ks == [MAX_K] * 8
    expected = {"k0": [0] * 4 + [4] * 4, "deep": [2] * 4 + [1] * 4, "recover": [2] * 4 + [0] * 4}[kind]
    assert [asked.lengths[CODE].k for asked in engine.asked] == expected
    assert engine.probes == [kind] * 4 + [None] * 4


def test_a_fixed_batch_k_has_transitions_too() -> None:
    engine = settled(batch_k="fixed")
    engine.steps(1, running=6)
    engine.give(order(steps=4))
    engine.steps(30, running=6)
    assert engine.probes.index("k0") == QUIET_STEPS + 1


def test_a_policy_that_changes_before_the_verification_lowers_probed_lengths_too() -> None:
    engine = settled(CODE_1)
    engine.give(order("deep", k=4, steps=6))
    asked = engine.steps(1)[0]
    engine.policy(workloads=CODE_1)
    due = engine.drafting.due()
    assert (due.lengths[CODE], due.batch_k) == (DraftLength(1, "adaptive"), asked.batch_k)
    assert due.draws is not None
    standing = {due.draws.length(CODE, handle, 1) for handle in range(40)}
    assert standing == {None, 1}
    recovering = settled(CODE_FALLEN)
    recovering.give(order("recover", steps=6))
    recovering.steps(1)
    recovering.policy(PolicyMode(mode="off"))
    assert recovering.drafting.due().lengths[CODE] == (0, "off")


def test_a_revert_under_the_same_version_trims_what_was_already_asked_for() -> None:
    engine = Engine()
    engine.policy(PolicyMode(mode="static", k=4))
    engine.steps(1)
    state = PolicyState(version=engine.version, policy=PolicyMode(mode="static", k=1))
    engine.drafting.resolver = Resolver(state, MAX_K)
    assert engine.drafting.due().lengths[CODE] == (1, "static")


def test_drawn_lengths_are_equally_likely_and_know_nothing_of_each_other() -> None:
    for longest in (1, 2, 3, 4, 8):
        counts = Counter(drawn(seed * 0x1234567, handle, longest) for seed in range(80) for handle in range(1, 101))
        assert set(counts) == set(range(1, longest + 1))
        expected = 8000 / longest
        # 99.99 % of the chi-square distribution with 7 degrees of freedom, the widest of these.
        assert sum((count - expected) ** 2 / expected for count in counts.values()) < 29.9
    pairs = Counter((drawn(seed, 5, 4), drawn(seed, 6, 4)) for seed in range(8000))
    assert sum((count - 500) ** 2 / 500 for count in pairs.values()) < 45
    assert Draws(9, {CODE: 4}).length(CODE, 3, 4) == Draws(9, {CODE: 4}).length(CODE, 3, 4)


class AnyOrders(RuleBasedStateMachine):
    """Any orders, policies, loads and arrivals: whatever comes, the rules of probes hold at every step."""

    @initialize(batch_k=st.sampled_from(["free", "fixed"]))
    def start(self, batch_k: Literal["free", "fixed"]) -> None:
        self.engine = Engine(batch_k=batch_k)
        self.classes: tuple[SequenceClass, ...] = (CODE, CHAT)
        self.running = 2
        self.ids = 0

    @rule(
        kind=st.sampled_from(["k0", "deep", "recover"]), k=st.integers(1, 5), steps=st.integers(4, 7), new=st.booleans()
    )
    def orders(self, kind: str, k: int, steps: int, new: bool) -> None:
        self.ids += new
        self.engine.give(order(kind, id=self.ids, k=k, steps=steps, wait=k))

    @rule(
        mode=st.sampled_from([ADAPTIVE, PolicyMode(mode="off"), PolicyMode(mode="adaptive", act=False)]),
        own=st.sampled_from([{}, CODE_1, CODE_FALLEN]),
    )
    def changes_policy(self, mode: PolicyMode, own: dict[str, WorkloadPolicy]) -> None:
        self.engine.policy(mode, own)

    @rule(running=st.sampled_from([1, 2, 6, 9]), classes=st.sampled_from([(CODE,), (CODE, CHAT), (HINTED, CHAT)]))
    def changes_load(self, running: int, classes: tuple[SequenceClass, ...]) -> None:
        self.running, self.classes = running, classes

    @rule(number=st.integers(1, 30))
    def steps(self, number: int) -> None:
        resolver = self.engine.drafting.resolver
        for asked in self.engine.steps(number, *self.classes, running=self.running):
            self.check(asked, resolver)

    def check(self, asked: Asked, resolver: Resolver) -> None:
        for cls, length in asked.lengths.items():
            plain = resolver.draft_length(self.running, cls.workload, cls.disable_speculation, cls.lane)
            if asked.probe is None or length.limit != "probe":
                assert length == plain
            if plain.limit in ("off", "hint", "lane", "operator"):
                assert length == plain
            if plain.limit == "fallback" and length.k:
                assert asked.probe == "recover"
            assert length.k <= asked.batch_k
        if asked.probe is not None:
            assert any(length.limit == "probe" for length in asked.lengths.values())
        assert (asked.draws is not None) == (asked.probe == "deep")

    @invariant()
    def blocks_are_short_and_far_from_every_transition(self) -> None:
        if not hasattr(self, "engine"):
            return
        asked = self.engine.asked
        executed = [max(length.k for length in a.lengths.values()) for a in asked]
        begins = [n for n, a in enumerate(asked) if a.probe and (n == 0 or asked[n - 1].probe is None)]
        for begin in begins:
            assert begin >= QUIET_STEPS
            before = slice(begin - QUIET_STEPS, begin)
            assert {a.probe for a in asked[before]} == {None}
            assert len(set(executed[before])) == 1
            block = [a for a in asked[begin : begin + 9] if a.probe]
            assert len(block) <= 7
            assert len({a.probe for a in asked[begin : begin + 9]} - {None}) == 1


AnyOrders.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
test_any_orders_policies_and_loads = AnyOrders.TestCase
