"""The policy as the station keeps and publishes it: versions only rise, and who starts an engine decides its first."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
import zmq
import zmq.asyncio
from msgspec.structs import replace

from console.station.policy import PolicyBook, PolicyPublisher, advised, unchosen
from engine.policy import Base, PolicyError, PolicyState, Resolver, WorkloadPolicy, decode_policy, standing
from engine.records import PolicyMode
from engine.sockets import Sockets, ipc
from tests.store.builders import engine

STATIC = PolicyMode(mode="static", k=4)
OFF = PolicyMode(mode="off")


def book(folder: Path, *, resume: bool = False, owned: str | None = "e0", floor: int = 0) -> PolicyBook:
    return PolicyBook(folder / "policy.json", STATIC, owned=owned, resume=resume, floor=floor)


def test_a_change_is_a_new_state_with_the_next_version(tmp_path: Path) -> None:
    policies = book(tmp_path)
    before = policies.state
    after = policies.change(PolicyState(version=0, policy=OFF))
    assert after.version == before.version + 1
    assert after.policy == OFF
    assert policies.at(before.version, "e0") == before


def test_a_state_that_cannot_be_executed_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    policies = book(tmp_path)
    before = policies.state
    with pytest.raises(PolicyError, match=r"policy\.k"):
        policies.change(PolicyState(version=0, policy=PolicyMode(mode="static")))
    assert policies.state == before


def test_a_station_that_adopts_an_engine_keeps_its_policy_under_a_higher_version(tmp_path: Path) -> None:
    left = book(tmp_path).change(PolicyState(version=0, policy=OFF, cap=2))
    adopted = book(tmp_path, resume=True).state
    assert (adopted.policy, adopted.cap) == (OFF, 2)
    assert adopted.version > left.version


def test_a_station_that_starts_an_engine_begins_with_its_own_policy_above_all_versions(tmp_path: Path) -> None:
    left = book(tmp_path).change(PolicyState(version=0, policy=OFF))
    fresh = book(tmp_path, floor=40).state
    assert fresh.policy == STATIC
    assert fresh.version > max(left.version, 40)


def test_a_broken_policy_file_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "policy.json").write_text("{")
    assert book(tmp_path, resume=True).state.policy == STATIC


def test_a_version_that_an_engine_has_from_elsewhere_is_risen_above(tmp_path: Path) -> None:
    policies = book(tmp_path)
    assert policies.raise_above(17)
    assert policies.state.version == 18
    assert not policies.raise_above(18)


def test_an_engine_of_somebody_else_keeps_its_policy_until_the_operator_chooses(tmp_path: Path) -> None:
    policies = book(tmp_path)
    assert not policies.ready_for("mine")
    policies.leave_own("mine", PolicyMode(mode="static", k=2))
    assert policies.ready_for("mine")
    assert policies.for_engine("mine").policy.k == 2
    assert policies.for_engine("e0").policy.k == 4
    policies.change(PolicyState(version=0, policy=OFF))
    assert policies.for_engine("mine").policy == OFF


async def test_an_engine_hears_the_policy_when_it_subscribes_and_when_it_changes(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name:
        context = zmq.asyncio.Context()
        policies = book(tmp_path)
        publisher = PolicyPublisher(context, Sockets(Path(name)), "station-1", policies)
        watching = asyncio.create_task(publisher.watch_subscriptions())
        engine = context.socket(zmq.SUB)
        engine.setsockopt(zmq.LINGER, 0)
        engine.subscribe(b"e0")
        engine.connect(ipc(Sockets(Path(name)).policy))
        async with asyncio.timeout(30):
            topic, first = await engine.recv_multipart()
            assert topic == b"e0"
            assert decode_policy(first).station == "station-1"
            policies.change(PolicyState(version=0, policy=OFF))
            await publisher.send_all()
            _, second = await engine.recv_multipart()
        assert decode_policy(second).state == policies.state
        watching.cancel()
        engine.close()
        publisher.close()
        context.term()


# Engines with a mode of their own


def test_what_an_engine_came_with_is_advised_and_executed_as_before() -> None:
    def advice(configured: PolicyMode) -> PolicyMode:
        return advised(engine(configured=configured))

    launched = PolicyMode(mode="schedule", schedule=[(1, 4, 4), (5, 32, 1)])
    assert advice(STATIC) == PolicyMode(mode="adaptive", schedule=[(1, 32, 4)], act=False)
    assert advice(launched) == PolicyMode(mode="adaptive", schedule=launched.schedule, act=False)
    assert advice(OFF) == OFF
    for configured in (STATIC, PolicyMode(mode="static", k=0), launched, OFF):
        for running in (1, 4, 5, 32, 500):
            state = PolicyState(version=1, policy=advice(configured), workloads={"code": WorkloadPolicy(k=1)})
            before = Resolver(PolicyState(version=1, policy=configured), 4)
            after = Resolver(state, 4)
            args = (running, "code", False, "speculative")
            assert after.draft_length(*args).k == before.draft_length(*args).k  # type: ignore[arg-type]


def test_adaptive_acts_in_engines_of_others_once_it_was_chosen(tmp_path: Path) -> None:
    acting = PolicyMode(mode="adaptive", act=True)
    policies = PolicyBook(tmp_path / "policy.json", unchosen(acting), owned=None, resume=True)
    policies.leave_own("mine", advised(engine()))
    policies.change(replace(policies.state, workloads={"code": WorkloadPolicy(k=1)}), chosen=False)
    assert policies.for_engine("mine").policy == advised(engine())
    policies.change(replace(policies.state, policy=acting))
    assert policies.for_engine("mine").policy == acting
    assert unchosen(STATIC) == STATIC


def test_a_lane_or_a_cap_is_no_choice_of_a_mode_for_engines_of_others(tmp_path: Path) -> None:
    policies = book(tmp_path)
    own = PolicyMode(mode="adaptive", schedule=[(1, 8, 2)], act=False)
    policies.leave_own("mine", own)
    policies.change(replace(policies.state, cap=1))
    assert (policies.for_engine("mine").policy, policies.for_engine("mine").cap) == (own, 1)
    policies.change(policies.state)
    assert policies.for_engine("mine").policy == STATIC, "whoever sets the mode that holds means it for all"


@pytest.mark.parametrize("chosen", [False, True])
def test_an_engine_without_a_drafter_is_off_whatever_is_chosen_also_after_a_revert(
    tmp_path: Path, chosen: bool
) -> None:
    policies = PolicyBook(tmp_path / "policy.json", STATIC, owned="e0", resume=False, fixed={"v0": OFF})
    assert policies.ready_for("v0")
    raised = replace(policies.state, policy=PolicyMode(mode="static", k=8)) if chosen else policies.state
    policies.change(replace(raised, cap=3, confirm_by=10.0, revert=Base(policy=STATIC)))
    sent = policies.for_engine("v0")
    assert (sent.policy, sent.cap, sent.version) == (OFF, 3, policies.state.version)
    assert standing(sent, now=11.0, silence=0.0).state.policy == OFF
    assert policies.at(sent.version, "v0") == sent


def test_what_was_kept_of_workloads_holds_where_no_policy_is_gone_on_with(tmp_path: Path) -> None:
    lanes = {"code": WorkloadPolicy(lane="vanilla")}
    begun = PolicyBook(tmp_path / "policy.json", STATIC, owned="e0", resume=False, workloads=lanes)
    assert begun.state.workloads == lanes
    resumed = PolicyBook(tmp_path / "policy.json", STATIC, owned="e0", resume=True, workloads={})
    assert resumed.state.workloads == lanes


def test_an_engine_of_somebody_else_falls_back_to_the_mode_that_it_came_with(tmp_path: Path) -> None:
    policies, mine = book(tmp_path), PolicyMode(mode="static", k=2)
    policies.leave_own("mine", mine)
    waiting = PolicyState(version=0, policy=OFF, confirm_by=1.0, revert=Base(STATIC))
    policies.change(waiting)
    sent = policies.for_engine("mine")
    assert sent.revert is not None
    assert (sent.policy, sent.revert.policy) == (OFF, mine)
    policies = book(tmp_path, resume=True)
    assert not policies.base_chosen
    policies.leave_own("mine", mine)
    policies.change(PolicyState(version=0, policy=STATIC), chosen=False, unchoose=True)
    assert policies.for_engine("mine").policy == mine
