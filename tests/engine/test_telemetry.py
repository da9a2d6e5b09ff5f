"""The engine's end of the sockets: what it makes of policy messages, and when it announces itself unasked."""

from __future__ import annotations

import queue
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from engine import scheduler
from engine.frames import WIRE_VERSION, Announcement, decode
from engine.policy import (
    POLICY_WIRE_VERSION,
    Base,
    LapsingPolicy,
    PolicyMessage,
    PolicyState,
    ProbeOrder,
    encode_policy,
)
from engine.recorder import Limits
from engine.records import EngineRecord, PolicyMode
from engine.sockets import Sockets, ipc
from engine.telemetry import Telemetry

STATIC = PolicyMode(mode="static", k=1)
RECORD = EngineRecord(
    engine="e0", ts=1.0, vllm="0.32.0", target="t", drafter="ngram", method="ngram", max_k=4, batch_k="free",
    max_num_seqs=8, data_parallel_size=1, device="cpu", async_scheduling=False, configured=STATIC, resolved=STATIC,
)  # fmt: skip


class Ends:
    """Both ends: an engine's telemetry with a clock moved by hand, and the station's two sockets."""

    def __init__(self, folder: Path) -> None:
        self.now = 100.0
        self.applied: queue.Queue[PolicyState] = queue.Queue()
        self.probes: queue.Queue[tuple[str, ProbeOrder]] = queue.Queue()
        self.lapsing = LapsingPolicy(
            PolicyState(version=0, policy=STATIC), self.applied.put, now=lambda: self.now, steady=lambda: self.now
        )
        self.context = zmq.Context()
        sockets = Sockets(folder)
        self.pull = self.context.socket(zmq.PULL)
        self.pull.linger = 0
        self.pull.bind(ipc(sockets.telemetry))
        self.publish = self.context.socket(zmq.XPUB)
        self.publish.linger = 0
        self.publish.rcvtimeo = 5000
        self.publish.bind(ipc(sockets.policy))
        self.telemetry = Telemetry(
            sockets.telemetry,
            "e0",
            self.announcement,
            self.lapsing.hear,
            lambda station, order: self.probes.put((station, order)),
            self.lapsing.look,
        )
        assert self.publish.recv() == b"\x01e0"

    def announcement(self) -> Announcement:
        return Announcement(
            WIRE_VERSION, RECORD, "b", 0, [], 0, self.telemetry.policy_error, 0, self.lapsing.reverted,
            self.lapsing.orphaned,
        )  # fmt: skip

    def send(self, state: PolicyState, probe: ProbeOrder | None = None) -> None:
        message = PolicyMessage(POLICY_WIRE_VERSION, "s1", state, probe)
        self.publish.send_multipart([b"e0", encode_policy(message)])

    def next_announcement(self) -> Announcement:
        return _announced(self.pull)

    def close(self) -> None:
        self.telemetry.close()
        self.pull.close()
        self.publish.close()
        self.context.term()


@pytest.fixture
def ends() -> Iterator[Ends]:
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name:
        made = Ends(Path(name))
        made.next_announcement()  # the one it begins with
        yield made
        made.close()


def state(version: int, **changed: Any) -> PolicyState:
    return PolicyState(**({"version": version, "policy": STATIC} | changed))


def probe(**changed: Any) -> ProbeOrder:
    return ProbeOrder(**({"id": 4, "kind": "k0", "workload": None, "k": 0, "steps": 8, "wait": 5} | changed))


def test_a_policy_is_applied_with_its_probe_and_the_station_hears_so(ends: Ends) -> None:
    ends.send(state(3, cap=2), probe())
    assert ends.applied.get(timeout=5) == state(3, cap=2)
    assert ends.probes.get(timeout=5) == ("s1", probe())
    assert ends.next_announcement().policy_error is None


def test_a_bad_probe_is_said_and_the_policy_beside_it_holds(ends: Ends) -> None:
    ends.send(state(3, cap=2), probe(steps=1))
    assert ends.applied.get(timeout=5).cap == 2
    assert "probe.steps" in (ends.next_announcement().policy_error or "")
    ends.send(state(4))
    assert ends.next_announcement().policy_error is None
    assert ends.probes.empty()


def test_a_bad_policy_is_said_and_the_one_before_it_stays(ends: Ends) -> None:
    ends.send(state(3, cap=-2), probe())
    assert "cap" in (ends.next_announcement().policy_error or "")
    assert ends.applied.empty()
    assert ends.probes.empty()


def test_a_message_without_a_body_ends_nothing(ends: Ends) -> None:
    ends.publish.send_multipart([b"e0"])
    ends.send(state(3, cap=1))
    assert ends.applied.get(timeout=5).cap == 1


def test_a_failing_announcement_does_not_keep_a_policy_from_lapsing(ends: Ends) -> None:
    ends.telemetry._announce = lambda: 1 / 0  # type: ignore[assignment, return-value]
    raised = state(5, policy=PolicyMode(mode="static", k=4), confirm_by=160.0, revert=Base(STATIC))
    ends.send(raised)
    assert ends.applied.get(timeout=5) == raised
    ends.now = 161.0
    assert ends.applied.get(timeout=5) == state(5)


def test_the_scheduler_is_wired_to_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `build` does it, on the real clocks: policy, probe, and a raise that nobody confirms."""
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name:
        sockets = Sockets(Path(name))
        monkeypatch.setenv("SPECDECK_SOCKET", str(sockets.telemetry))
        context = zmq.Context()
        publish, pull = context.socket(zmq.XPUB), context.socket(zmq.PULL)
        publish.bind(ipc(sockets.policy))
        pull.bind(ipc(sockets.telemetry))
        recorder = scheduler._watch(RECORD, Limits(4, 512, 512, 512, 0, None, False))
        try:
            assert publish.poll(5000)
            publish.recv()
            deadline = time.time() + 0.4
            raised = state(5, policy=PolicyMode(mode="static", k=4), confirm_by=deadline, revert=Base(STATIC))
            message = PolicyMessage(POLICY_WIRE_VERSION, "s1", raised, probe())
            publish.send_multipart([b"e0", encode_policy(message)])
            _until(lambda: recorder.drafting.resolver.state == raised)
            _until(lambda: recorder.drafting.resolver.state == state(5))
            _until(lambda: _announced(pull).reverted == deadline)
            assert recorder.drafting.probing._ordered == ("s1", probe())
        finally:
            recorder.close()
            context.destroy(linger=0)


def _announced(pull: zmq.Socket[bytes]) -> Announcement:
    assert pull.poll(5000), "nothing was announced"
    message = decode(pull.recv())
    assert isinstance(message, Announcement)
    return message


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_unconfirmed_raise_reverts_with_no_station_to_do_it_and_is_announced(ends: Ends) -> None:
    raised = state(5, policy=PolicyMode(mode="static", k=4), confirm_by=160.0, revert=Base(STATIC))
    ends.send(raised)
    assert ends.applied.get(timeout=5) == raised
    assert ends.next_announcement().reverted is None
    ends.now = 160.5
    assert ends.applied.get(timeout=5) == state(5)
    assert ends.next_announcement().reverted == 160.0
