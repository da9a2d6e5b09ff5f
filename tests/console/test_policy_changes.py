"""Changes of the policy: each is recorded field by field, and one that is to be confirmed falls back to what was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from console.feed.server import FeedError
from console.station.gateway_supervisor import GatewaySupervisor
from console.station.lanes import LaneKeeper, read_lanes
from engine.policy import PolicyState, WorkloadPolicy, validate
from engine.policy.raising import raises
from engine.records import PolicyMode
from store.database import Store
from tests.console.policy_desk import ADAPTIVE, OFF, STATIC, Desk, learn

VANILLA = WorkloadPolicy(lane="vanilla")


@pytest.fixture(scope="module")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("store") / "s.duckdb") as store:
        yield store


@pytest.fixture
def desk(tmp_path: Path, empty_store: Store) -> Desk:
    return Desk(tmp_path, empty_store, writes=False)


def test_each_field_that_a_change_changes_is_recorded_with_what_it_replaced(desk: Desk) -> None:
    result = desk.set(policy=OFF, cap=2, lanes={"code": "vanilla"}, why="night")
    assert [(one.action, one.workload, one.before, one.after) for one in desk.recorded] == [
        ("mode", None, {"mode": "static", "k": 4}, {"mode": "off"}),
        ("cap", None, {"cap": None}, {"cap": 2}),
        ("lane", "code", {}, {"lane": "vanilla"}),
    ]
    assert {(one.policy, one.why, one.actor) for one in desk.recorded} == {(result.version, "night", "operator")}


def test_adaptive_can_be_set(desk: Desk) -> None:
    assert desk.set(policy=ADAPTIVE).policy == ADAPTIVE


def test_a_workload_back_in_the_ordinary_lane_is_no_longer_named(desk: Desk) -> None:
    desk.set(lanes={"code": "vanilla", "chat": "vanilla"})
    desk.set(lanes={"code": "speculative"})
    assert desk.state.workloads == {"chat": VANILLA}


@pytest.mark.parametrize("name", ["", " code", "other", "x" * 300])
def test_a_lane_for_what_no_request_can_be_tagged_with_is_refused(desk: Desk, name: str) -> None:
    with pytest.raises(FeedError, match="lanes: "):
        desk.set(lanes={name: "vanilla"})


@pytest.mark.parametrize("seconds", [0.0, -1.0, 86401.0, float("nan")])
def test_a_time_to_confirm_that_cannot_be_meant_names_the_field(desk: Desk, seconds: float) -> None:
    with pytest.raises(FeedError, match="confirm: ") as caught:
        desk.set(cap=1, confirm=seconds)
    assert caught.value.code == "bad_params"
    assert not desk.recorded


def test_a_later_change_leaves_the_deadline_and_what_is_fallen_back_to(desk: Desk) -> None:
    by = desk.set(policy=PolicyMode(mode="static", k=8), confirm=300).confirm_by
    assert desk.set(cap=3).confirm_by == by
    base = desk.state.revert
    assert base is not None
    assert (base.policy, base.cap) == (STATIC, None)


def test_a_second_confirmation_moves_the_deadline_and_keeps_what_is_fallen_back_to(desk: Desk) -> None:
    first = desk.set(policy=PolicyMode(mode="static", k=8), confirm=60).confirm_by
    second = desk.set(policy=PolicyMode(mode="static", k=9), confirm=600).confirm_by
    assert first is not None
    assert second is not None
    assert second > first + 500
    assert desk.state.revert is not None
    assert desk.state.revert.policy == STATIC


def test_what_was_learnt_or_said_of_workloads_meanwhile_outlives_a_revert(desk: Desk) -> None:
    desk.set(policy=ADAPTIVE, confirm=60)
    learn(desk, "code", k=1)
    desk.set(lanes={"chat": "vanilla"})
    desk.skip(61)
    assert desk.state.policy == STATIC
    assert desk.state.workloads == {"code": WorkloadPolicy(k=1), "chat": VANILLA}


def test_a_lane_that_waits_to_be_confirmed_is_reverted_without_what_was_learnt(desk: Desk) -> None:
    desk.set(lanes={"code": "vanilla"})
    desk.set(lanes={"code": "speculative"}, confirm=60)
    learn(desk, "code", k=1)
    desk.skip(61)
    assert desk.state.workloads == {"code": WorkloadPolicy(k=1, lane="vanilla")}


def test_a_change_back_to_what_it_would_fall_back_to_has_nothing_to_confirm(desk: Desk) -> None:
    desk.set(cap=2)
    desk.set(cap=4, confirm=60)
    assert desk.set(cap=2).confirm_by is None
    assert desk.state.revert is None


def test_a_change_on_an_outdated_picture_is_refused_unless_only_the_controller_changed_it(desk: Desk) -> None:
    seen = desk.set(cap=3).version
    learn(desk, "code", k=1)
    later = desk.set(cap=2, expect=seen).version
    with pytest.raises(FeedError, match=f"version {later} by now, not {seen}"):
        desk.set(cap=1, expect=seen)


def test_whoever_only_confirms_has_chosen_no_mode_for_engines_of_others(desk: Desk) -> None:
    desk.set(cap=2, confirm=60)
    desk.set(confirm=90)
    desk.confirm()
    assert not desk.book.chosen


class Told:
    """In place of a gateway's supervisor and of the store."""

    def __init__(self) -> None:
        self.lanes: list[tuple[int, dict[str, str]]] = []
        self.kept: list[bytes] = []

    def work_by(self, version: int, lanes: dict[str, str]) -> None:
        self.lanes.append((version, lanes))

    def keep(self, name: str, value: bytes) -> None:
        assert name == "lanes"
        self.kept.append(value)


def test_the_gateway_hears_of_each_change_and_the_store_of_each_confirmed_lane(desk: Desk) -> None:
    told = Told()
    keeper = LaneKeeper(lambda: desk.state, cast(GatewaySupervisor, told), told.keep)
    desk.changes.listeners.append(keeper.changed)
    first = desk.state.version
    desk.set(cap=1)
    desk.set(lanes={"code": "vanilla"})
    desk.set(lanes={"code": "speculative", "chat": "vanilla"}, confirm=60)
    assert told.lanes == [
        (first, {}),
        (first + 1, {}),
        (first + 2, {"code": "vanilla"}),
        (first + 3, {"chat": "vanilla"}),
    ]
    assert [read_lanes(kept) for kept in told.kept] == [{"code": VANILLA}]
    desk.confirm()
    assert read_lanes(told.kept[-1]) == {"chat": VANILLA}


@pytest.mark.parametrize("kept", [None, b"", b"{", b'{"code": "fast"}', b"[]"])
def test_lanes_that_cannot_be_read_are_none(kept: bytes | None) -> None:
    assert read_lanes(kept) == {}


def state(mode: PolicyMode = STATIC, **more: Any) -> PolicyState:
    return PolicyState(version=1, policy=mode, **more)


def schedule(*entries: tuple[int, int, int]) -> PolicyMode:
    return PolicyMode(mode="schedule", schedule=list(entries))


RAISES = {
    "static": (state(PolicyMode(mode="static", k=2)), state()),
    "on": (state(OFF), state()),
    "cap": (state(cap=2), state(cap=3)),
    "no cap": (state(cap=2), state()),
    "fallback off": (state(fallback=True), state()),
    "lane back": (state(workloads={"code": VANILLA}), state()),
    "at one size": (state(schedule((1, 8, 4), (9, 64, 0))), state(schedule((1, 8, 2), (9, 64, 1)))),
    "between": (state(schedule((1, 64, 2))), state(schedule((1, 15, 2), (16, 16, 3), (17, 64, 2)))),
    "to adaptive": (state(PolicyMode(mode="static", k=3)), state(ADAPTIVE, workloads={"code": WorkloadPolicy(k=1)})),
    "adaptive to its schedule": (
        state(ADAPTIVE, cap=2, workloads={"code": WorkloadPolicy(k=1)}),
        state(schedule((1, 64, 2)), workloads={"code": WorkloadPolicy(k=1)}),
    ),
}
LOWERS = {
    "off": (state(), state(OFF)),
    "cap": (state(), state(cap=3)),
    "lane": (state(), state(workloads={"code": VANILLA})),
    "above the maximum": (state(PolicyMode(mode="static", k=4)), state(PolicyMode(mode="static", k=9))),
    "under the fallback": (state(OFF, fallback=True), state(fallback=True)),
    "schedule": (state(schedule((1, 8, 4), (9, 64, 1))), state(schedule((1, 8, 4), (9, 64, 0)))),
}


@pytest.mark.parametrize("name", RAISES)
def test_a_change_that_lets_anybody_draft_more_is_a_raise(name: str) -> None:
    assert raises(*RAISES[name], max_k=4)


@pytest.mark.parametrize("name", LOWERS)
def test_a_change_that_lets_nobody_draft_more_is_none(name: str) -> None:
    assert not raises(*LOWERS[name], max_k=4)


def test_a_policy_that_waits_is_one_that_engines_take(desk: Desk) -> None:
    desk.set(policy=PolicyMode(mode="static", k=8), cap=9, lanes={"code": "vanilla"}, confirm=60)
    validate(msgspec.json.decode(msgspec.json.encode(desk.state), type=PolicyState))
