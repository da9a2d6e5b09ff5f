"""The way back: one change is undone as it was made, or it is said what stands in the way; the history tells both."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from msgspec.structs import replace

from console.feed.server import FeedError
from engine.deciding.decisions import Decision, Score
from engine.policy import PolicyState, WorkloadPolicy
from engine.records import ControlRecord, PolicyMode
from store.database import Store
from tests.console.policy_desk import ADAPTIVE, OFF, STATIC, Desk, learn


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("store") / "s.duckdb") as store:
        yield store


@pytest.fixture
def store(opened: Store) -> Store:
    """One in which nothing was done yet."""
    opened.connection.execute("DELETE FROM controls")
    return opened


@pytest.fixture
def desk(tmp_path: Path, store: Store) -> Desk:
    return Desk(tmp_path, store)


def test_undo_puts_back_all_that_one_change_changed_and_says_so(desk: Desk) -> None:
    made = desk.set(policy=OFF, cap=2, lanes={"code": "vanilla"}).version
    back = desk.undo()
    assert (back.policy, back.cap, desk.state.workloads) == (STATIC, None, {})
    assert back.version > made
    assert {(one.action, one.why) for one in desk.recorded[3:]} == {("undo", f"undo of policy {made}")}


def test_asked_again_undo_goes_further_back_and_ends(desk: Desk) -> None:
    for cap in (3, 2, 1):
        desk.set(cap=cap)
    assert [desk.undo().cap for _ in range(3)] == [2, 3, None]
    with pytest.raises(FeedError, match="nothing to undo"):
        desk.undo()


def test_an_undo_can_be_undone_by_its_version(desk: Desk) -> None:
    made = desk.set(cap=2).version
    undone = desk.undo().version
    with pytest.raises(FeedError, match=f"undone already, by policy {undone}"):
        desk.undo(made)
    assert desk.undo(undone).cap == 2
    assert desk.undo(made).cap is None


def test_what_was_changed_since_is_named_and_nothing_is_undone(desk: Desk) -> None:
    first = desk.set(cap=3, fallback=True).version
    second = desk.set(cap=1).version
    with pytest.raises(FeedError, match=f"made cap 3, and it is 1 by now, since policy {second}") as caught:
        desk.undo(first)
    assert caught.value.code == "refused"
    assert desk.state.fallback


def test_a_lane_is_undone_though_the_controller_has_learnt_since(desk: Desk) -> None:
    desk.set(lanes={"code": "vanilla"})
    learn(desk, "code", k=1)
    desk.undo()
    assert desk.state.workloads == {"code": WorkloadPolicy(k=1)}


def test_the_controllers_own_changes_are_undone_by_their_version_alone(desk: Desk) -> None:
    desk.set(cap=3)
    learn(desk, "code", k=1)
    learnt = desk.state.version
    assert desk.undo().cap is None
    desk.undo(learnt)
    assert desk.state.workloads == {}


def test_undo_of_a_change_that_waits_leaves_nothing_to_confirm(desk: Desk) -> None:
    desk.set(policy=PolicyMode(mode="static", k=8), confirm=60)
    assert desk.undo().confirm_by is None
    with pytest.raises(FeedError, match="nothing waits to be confirmed"):
        desk.confirm()


def test_undo_and_revert_of_the_first_mode_chosen_leave_engines_of_others_their_own(desk: Desk) -> None:
    desk.set(policy=OFF)
    assert desk.book.chosen
    desk.undo()
    assert not desk.book.chosen
    desk.set(policy=OFF, confirm=60)
    desk.skip(61)
    assert not desk.book.chosen


def test_an_unknown_version_is_no_change(desk: Desk) -> None:
    with pytest.raises(FeedError, match="no change to policy 999 is known"):
        desk.undo(999)


def test_a_station_that_came_later_can_undo_what_one_before_it_changed(tmp_path: Path, store: Store) -> None:
    earlier = Desk(tmp_path, store)
    made = earlier.set(policy=OFF, cap=2).version
    earlier.flush_and_wait()
    later = Desk(tmp_path, store, resume=True)
    assert later.state.policy == OFF
    back = later.undo(made)
    assert (back.policy, back.cap) == (STATIC, None)


def test_a_disk_that_takes_nothing_does_not_bar_the_way_back(tmp_path: Path, store: Store) -> None:
    desk = Desk(tmp_path, store, writes=False)
    desk.set(cap=2)
    desk.set(cap=1)
    assert desk.undo().cap == 2
    assert [entry.undoable for entry in desk.history().entries] == [True, False, True]


def test_confirming_ends_the_wait_and_is_recorded(desk: Desk) -> None:
    seen = desk.set(cap=2, confirm=60).version
    learn(desk, "code", k=1)
    result = desk.confirm(seen)
    assert (result.cap, result.confirm_by) == (2, None)
    assert desk.recorded[-1].action == "confirm"
    assert desk.history().entries[0].text.endswith("operator: confirmed what waited for it")


def test_another_policy_than_was_seen_is_not_confirmed(desk: Desk) -> None:
    seen = desk.set(cap=2, confirm=60).version
    desk.set(cap=4)
    with pytest.raises(FeedError, match=f"not {seen}"):
        desk.confirm(seen)


DECISION = Decision(
    id=3, ts=0.0, workload="code", action="k", executed=True, before=WorkloadPolicy(), after=WorkloadPolicy(k=2),
    k_before=4, k_after=2, predicted=0.06,
)  # fmt: skip


def decide(desk: Desk) -> None:
    workloads = {"code": DECISION.after}
    numbers = msgspec.to_builtins(DECISION)
    desk.make(replace(desk.state, workloads=workloads), "adaptive", action="k", why=DECISION.text, numbers=numbers)


def score(desk: Desk, **changes: Any) -> None:
    told = replace(Score(3, 0.0, "code", 0.06, 0.05, "executed", 400), **changes)
    last = desk.recorded[-1].ts
    desk.record(ControlRecord(last + 1, "adaptive", "score", told.workload, numbers=msgspec.to_builtins(told)))


def test_a_decision_tells_what_was_predicted_and_what_was_seen(desk: Desk) -> None:
    decide(desk)
    assert desk.history().entries[0].text.endswith("adaptive: code K 4→2, predicted +6 %")
    score(desk, workload="chat", observed=0.9)
    score(desk)
    (entry,) = desk.history(workload="code").entries
    assert entry.text[5:] == " adaptive: code K 4→2, predicted +6 %, saw +5 %"
    assert entry.undoable


def test_a_score_is_of_the_nearest_decision_of_that_number(desk: Desk) -> None:
    decide(desk)
    desk.set(lanes={"code": "speculative"})
    learn(desk, "code", k=None)
    decide(desk)
    score(desk)
    texts = [entry.text for entry in desk.history(workload="code").entries]
    assert ["saw" in text for text in texts] == [True, False, False]


def test_the_history_reads_as_sentences_newest_first(desk: Desk) -> None:
    desk.set(policy=OFF, why="too slow")
    desk.set(lanes={"code": "vanilla"})
    version = desk.set(cap=3, confirm=300).version
    desk.skip(301)
    desk.undo(desk.recorded[0].policy)
    told = [entry.text[5:] for entry in desk.history().entries]
    assert told[0] == f" operator: undo of policy {desk.recorded[0].policy}: mode off → static:4"
    assert told[1] == " station: takes back: cap 3 → none; not confirmed within 5 min"
    assert told[2].startswith(" operator: cap none → 3, to be confirmed by ")
    assert told[3:] == [" operator: code's lane speculative → vanilla", " operator: mode static:4 → off (too slow)"]
    assert [entry.policy for entry in desk.history(limit=2).entries] == [version + 2, version + 1]


def test_only_what_undo_would_take_is_marked(desk: Desk) -> None:
    desk.set(cap=2)
    desk.set(fallback=True)
    desk.set(cap=3)
    assert [(entry.action, entry.undoable) for entry in desk.history().entries] == [
        ("cap", True),
        ("fallback", True),
        ("cap", False),
    ]


CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "policy": st.sampled_from([OFF, STATIC, ADAPTIVE, PolicyMode(mode="schedule", schedule=[(1, 8, 2)])]),
        "cap": st.none() | st.integers(0, 3),
        "fallback": st.booleans(),
        "lanes": st.dictionaries(st.sampled_from(["code", "chat"]), st.sampled_from(["vanilla", "speculative"])),
        "confirm": st.sampled_from([10.0, 100.0]),
    },
)


def part(policy: Any) -> tuple[Any, ...]:
    return policy.policy, policy.cap, policy.fallback


class Changing(RuleBasedStateMachine):
    """Whatever is asked of it in whatever order."""

    store: Store

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="sd-")
        self.desk = Desk(Path(self.folder.name), self.store, writes=False)
        self.version = self.desk.state.version - 1
        self.confirmed = {repr(part(self.desk.state))}
        self.last: PolicyState | None = None
        """What held before the last change of the operator, where nothing came since."""

    def teardown(self) -> None:
        self.folder.cleanup()

    @rule(params=CHANGES)
    def change(self, params: dict[str, Any]) -> None:
        before = self.desk.state
        self.desk.set(**params)
        self.last = before

    @rule(k=st.none() | st.integers(0, 4), fallback=st.booleans())
    def learnt(self, k: int | None, fallback: bool) -> None:
        waiting = self.desk.state.revert
        learn(self.desk, "code", k=k, fallback=fallback)
        after = self.desk.state
        if waiting is not None and after.revert is not None:
            base = after.revert.workloads.get("code", WorkloadPolicy())
            own = after.workloads.get("code", WorkloadPolicy())
            assert (base.k, base.fallback) == (own.k, own.fallback)
        self.last = None

    @precondition(lambda self: self.desk.state.revert is not None)
    @rule()
    def confirm(self) -> None:
        self.desk.confirm()
        self.last = None

    @precondition(lambda self: self.desk.state.revert is not None)
    @rule()
    def expire(self) -> None:
        base = self.desk.state.revert
        self.desk.skip(101.0)
        assert base is not None
        assert part(self.desk.state) == part(base)
        assert self.desk.state.workloads == base.workloads
        assert self.desk.state.revert is None
        self.last = None

    @precondition(lambda self: self.last is not None)
    @rule()
    def undo_the_last_change(self) -> None:
        before, now = self.last, self.desk.state
        assert before is not None
        changed = part(before) != part(now) or before.workloads != now.workloads
        if changed:
            self.desk.undo(now.version)
            assert part(self.desk.state) == part(before)
            assert self.desk.state.workloads == before.workloads
        else:
            with pytest.raises(FeedError, match="changed nothing"):
                self.desk.undo(now.version)
        self.last = None

    @invariant()
    def versions_rise_and_what_is_fallen_back_to_was_confirmed(self) -> None:
        state = self.desk.state
        assert state.version >= self.version
        self.version = state.version
        assert (state.revert is None) == (state.confirm_by is None)
        if state.revert is None:
            self.confirmed.add(repr(part(state)))
        else:
            assert repr(part(state.revert)) in self.confirmed


def test_versions_rise_and_the_way_back_holds_whatever_is_done(store: Store) -> None:
    machine = type("Machine", (Changing,), {"store": store})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=20, stateful_step_count=10, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
