"""The station's controller between a simulated engine's frames and the policy: nothing here is about vLLM."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from console.station.deciding import Deciding, Hands
from console.station.engines import KnownEngine
from console.station.policy_changes import changed
from engine.deciding.settings import DecidingSettings
from engine.frames import WIRE_VERSION, Announcement, ArrivedSequence, Frame, PackedStep, pack_columns
from engine.policy import PolicyState, ProbeOrder, Resolver
from engine.records import LIMITS, ControlRecord, EngineRecord, PolicyMode
from store.buckets import model_version
from store.load import Runner
from tests.engine.deciding_simulator.run import ADVISE, ANY_LOAD, MAX_K, state
from tests.engine.deciding_simulator.simulated import Simulated, Stretch, drafting
from tests.engine.deciding_simulator.station import _causes
from tests.engine.deciding_simulator.step_times import KeptStepTimes
from tests.engine.deciding_simulator.surface import Surface
from tests.engine.deciding_simulator.traffic import FRIENDLY, HOSTILE, Workload, kept, steady

BRISK = DecidingSettings(window_s=40.0, recent_s=20.0, shortest_pause_s=20.0)
RECORD = EngineRecord(
    engine="e0", ts=0.0, vllm="0.32.0", target="simulated", drafter="simulated", method="eagle3", max_k=MAX_K,
    batch_k="free", max_num_seqs=64, data_parallel_size=1, device="cpu", async_scheduling=False,
    configured=PolicyMode(mode="adaptive"), resolved=PolicyMode(mode="adaptive"), boot="b1",
)  # fmt: skip


@dataclass
class Changes:
    """`PolicyChanges` without sockets."""

    engine: Simulated
    actions: list[tuple[str, str | None, dict[str, Any] | None]] = field(default_factory=list)

    @property
    def state(self) -> PolicyState:
        return self.engine.drafting.resolver.state

    async def make(self, wanted: PolicyState, *, action: str, numbers: dict[str, Any], **_: Any) -> PolicyState:
        after = msgspec.structs.replace(wanted, version=self.state.version + 1)
        self.actions += [(action, one.workload, numbers) for one in changed(self.state, after)]
        self.engine.drafting.resolver = Resolver(after, MAX_K)
        return after


class Rig:
    """A simulated engine whose frames reach the real `Deciding`, once a simulated second."""

    def __init__(self, *workloads: Workload, mode: PolicyMode = ANY_LOAD, remembered: bytes | None = None) -> None:
        self.engine = Simulated(workloads, drafting(state(mode), MAX_K), MAX_K, Surface())
        times = KeptStepTimes()
        times.calibrate(Surface(), MAX_K, 0)
        models = {Runner("e0", model_version(RECORD)): times.model()}
        self.changes = Changes(self.engine)
        self.records: list[ControlRecord] = []
        self.orders: list[ProbeOrder] = []
        self.kept: dict[str, bytes] = {}
        hands = Hands(
            self.changes,  # type: ignore[arg-type]
            self._order, self.records.append, self.kept.__setitem__, lambda name: remembered,
        )  # fmt: skip
        self.deciding = Deciding(hands, lambda engine: self.changes.state, lambda: "e0", lambda: models, BRISK)
        self.known = KnownEngine("e0", owned=True)
        self._met: set[int] = set()
        self._frame = 0
        self.rows: list[Stretch] = []
        self.announce()

    def announce(self) -> None:
        message = Announcement(
            v=WIRE_VERSION, record=RECORD, boot="b1", frame=self._frame, sequences=self._sequences(), policy=1,
            policy_error=None, frames_dropped=0,
        )  # fmt: skip
        self.deciding.take(self.known, message)

    def run(self, seconds: float) -> None:
        asyncio.run(self._run(self.engine.now + seconds))

    async def _run(self, until: float) -> None:
        look = self.engine.now + 1.0
        while self.engine.now < until:
            stretch = self.engine.stretch(look)
            if stretch is not None:
                self.rows.append(stretch)
                for frame in self._frames(stretch):
                    self.deciding.take(self.known, frame)
            if self.engine.now >= look:
                await self.deciding.look(self.engine.now)
                look = self.engine.now + 1.0

    async def _order(self, engine: str, order: ProbeOrder) -> None:
        self.orders.append(order)
        self.engine.drafting.probing.give("station", order)

    def _frames(self, stretch: Stretch) -> Iterator[Frame]:
        context = stretch.context.copy()
        for place in range(len(stretch.ts)):
            new = [seq for seq in stretch.sequence.tolist() if seq not in self._met]
            self._met |= set(new)
            self._frame += 1
            yield Frame(
                v=WIRE_VERSION, engine="e0", boot="b1", frame=self._frame,
                step=_step(stretch, place, context), sequences=[self._arrived(stretch, seq) for seq in new],
                finishes=[],
            )  # fmt: skip
            context = context + stretch.emitted[place]

    def _arrived(self, stretch: Stretch, seq: int) -> ArrivedSequence:
        workload = int(stretch.workload[stretch.sequence.tolist().index(seq)])
        return _arrived(seq, self.engine.workloads[workload].name)

    def _sequences(self) -> list[ArrivedSequence]:
        return [_arrived(one.handle, self.engine.workloads[one.workload].name) for one in self.engine.running]

    def asked(self, name: str, since: float) -> set[tuple[int, str]]:
        """(K, limit) of all rows of a workload since then."""
        number = [one.name for one in self.engine.workloads].index(name)
        return {
            (int(k), LIMITS[int(limit)])
            for one in self.rows
            if one.ts[-1] > since
            for k, limit in zip(one.k_asked[one.workload == number], one.limit[one.workload == number], strict=True)
        }


def _arrived(seq: int, workload: str) -> ArrivedSequence:
    return ArrivedSequence(
        seq=seq, request=f"r{seq}", ts=0.0, workload=workload, temperature=0.0, prompt_tokens=9,
        disable_speculation=False, lane="speculative",
    )  # fmt: skip


def _step(stretch: Stretch, place: int, context: np.ndarray[Any, Any]) -> PackedStep:
    count = len(stretch.sequence)
    columns = (
        stretch.sequence, stretch.k_asked, stretch.limit, stretch.drafted[place], stretch.drafted[place],
        np.zeros(count, dtype=int), stretch.accepted[place], stretch.emitted[place], context, _causes(stretch)[place],
    )  # fmt: skip
    return PackedStep(
        step=stretch.number + place, ts=float(stretch.ts[place]), duration_ms=float(stretch.duration_ms[place]),
        k_verify=stretch.k_verify, k_draft=int(stretch.k_draft[place]), running=count, waiting=0,
        prefill_tokens=int(stretch.prefill[place]), probe=stretch.probe, policy=stretch.state.version,
        limit_draft="adaptive", count=count, columns=pack_columns([column.tolist() for column in columns]),
    )  # fmt: skip


def hostile_beside_friendly(**fields: Any) -> Rig:
    return Rig(
        Workload("hostile", steady(HOSTILE), kept(2), spread=0.0),
        Workload("friendly", steady(FRIENDLY), kept(2), spread=0.0),
        **fields,
    )


def test_a_hostile_workload_goes_to_no_drafts_by_itself_while_its_friendly_neighbour_keeps_its_own() -> None:
    rig = hostile_beside_friendly()
    rig.run(150)
    own = {view.name: view for view in rig.deciding.views()}
    assert own["hostile"].fallback or own["hostile"].k == 0
    assert not own["friendly"].fallback
    assert own["friendly"].k is None or own["friendly"].k >= 2
    later = rig.engine.now
    rig.run(20)
    assert {k for k, limit in rig.asked("hostile", later) if limit != "probe"} == {0}
    assert max(k for k, _ in rig.asked("friendly", later)) >= 2
    assert own["hostile"].why, "the last decision is told as a sentence"
    gains = {name: rig.deciding.marginals.of(name) for name in ("friendly", "hostile")}
    friendly = gains["friendly"][-1]
    assert friendly.low is not None
    assert 1.03 < friendly.low < friendly.gain
    assert friendly.k >= 2
    assert all(one.gain < 1 and one.ts < later - 60 for one in gains["hostile"]), "at K = 0 none can be told"


def test_every_decision_is_recorded_with_its_numbers_and_later_scored() -> None:
    rig = hostile_beside_friendly()
    rig.run(150)
    assert rig.changes.actions
    for action, workload, numbers in rig.changes.actions:
        assert action in ("k", "fallback", "recover")
        assert workload in ("hostile", "friendly")
        assert numbers is not None
        assert numbers["predicted"] is not None
    scores = [record for record in rig.records if record.action == "score"]
    made = {numbers["id"] for _, _, numbers in rig.changes.actions if numbers is not None}
    assert scores
    assert {record.numbers["decision"] for record in scores if record.numbers is not None} <= made


def test_one_that_only_advises_changes_nothing_and_says_what_it_would_do() -> None:
    rig = hostile_beside_friendly(mode=ADVISE)
    rig.run(150)
    assert rig.changes.actions == []
    assert not rig.changes.state.workloads
    assert [record.action for record in rig.records if record.workload == "hostile"].count("advice") >= 1
    assert {view.name: view.advice for view in rig.deciding.views()}["hostile"] in ("K 0", "no speculation")


def test_what_was_learnt_outlives_the_station() -> None:
    rig = hostile_beside_friendly()
    rig.run(150)
    again = hostile_beside_friendly(remembered=rig.kept["deciding e0"])
    again.changes.engine.drafting.resolver = rig.engine.drafting.resolver
    again.run(5)
    assert again.changes.actions == [], "nothing has to be found out anew"


def test_a_broken_memory_is_begun_anew_and_ends_nothing() -> None:
    rig = hostile_beside_friendly(remembered=b"{")
    rig.run(3)
    assert {view.name for view in rig.deciding.views()} == {"hostile", "friendly"}


def test_rows_of_sequences_that_nobody_introduced_are_left_out_until_they_are() -> None:
    rig = hostile_beside_friendly()
    rig.run(2)
    rig._met |= set(range(10_000))  # arrivals from now on are never told
    for one in rig.engine.running:
        one.remaining = 1
    rig.run(1)
    assert sum(view.running for view in rig.deciding.views()) == 0
    rig.announce()
    rig._met = {one.handle for one in rig.engine.running}
    rig.run(1)
    assert sum(view.running for view in rig.deciding.views()) == 4
