"""The policy as the station keeps and publishes it: versions only rise, and who starts an engine decides its first."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
import zmq
import zmq.asyncio

from console.station.policy import PolicyBook, PolicyPublisher
from engine.policy import PolicyError, PolicyState, decode_policy
from engine.records import PolicyMode
from engine.sockets import Sockets, ipc

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
