"""Runs a controller for each engine: what its steps say goes in, changes of the policy and probes come out."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from console.feed.messages import WorkloadView
from console.picturing.unconfirmed import with_workload
from console.station.controlled import Controlled, read_memory
from console.station.engines import KnownEngine
from console.station.marginals import Marginals
from console.station.policy_changes import PolicyChanges, Record
from console.station.roster import FORGET_AFTER_SECONDS
from engine.deciding.decisions import Decision, Score
from engine.deciding.memory import Memory
from engine.deciding.settings import DecidingSettings
from engine.deciding.view import acting
from engine.frames import Announcement, Frame
from engine.policy import PolicyState, ProbeOrder, WorkloadPolicy
from engine.records import ControlRecord
from engine.step_time.model import StepModel
from store.buckets import CALIBRATION, OTHER
from store.load import Runner

LOOK_SECONDS: Final = 1.0
KEEP_SECONDS: Final = 60.0
"""How often what the controller remembers is written to the store."""
ACTOR: Final = "adaptive"

Models = Callable[[], Mapping[Runner, StepModel]]


class Hands:
    """What the controller may do, bound to a station: change the policy, order a probe, record, remember."""

    def __init__(
        self,
        changes: PolicyChanges,
        order: Callable[[str, ProbeOrder], Any],
        record: Record,
        remember: Callable[[str, bytes], None],
        recall: Callable[[str], bytes | None],
    ) -> None:
        """`order` returns an awaitable."""
        self.changes = changes
        self.order = order
        self.record = record
        self.remember = remember
        self.recall = recall


class Deciding:
    """On the event loop.

    The policy's workloads are one for all engines: only `main()` acts by itself. Others are advised.
    """

    def __init__(
        self,
        hands: Hands,
        policy_of: Callable[[str], PolicyState],
        main: Callable[[], str],
        models: Models,
        settings: DecidingSettings | None = None,
    ) -> None:
        self._hands = hands
        self._policy_of = policy_of
        self._main = main
        self._models = models
        self._settings = settings or DecidingSettings()
        self._engines: dict[str, Controlled] = {}
        self._known: dict[str, KnownEngine] = {}
        self._kept_at = 0.0
        self.marginals = Marginals()
        self._said: dict[str, Decision] = {}
        """The last decision about each workload of the main engine."""

    def take(self, known: KnownEngine, message: Frame | Announcement) -> None:
        """What an engine said, as it comes."""
        if known.engine not in self._engines:
            self._engines[known.engine] = self._begin(known.engine)
        self._known[known.engine] = known
        controlled = self._engines[known.engine]
        if isinstance(message, Frame):
            controlled.take(message)
        else:
            controlled.announced(message)

    async def run(self) -> None:
        """For ever."""
        while True:
            await self.look(time.time())
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self, now: float) -> None:
        """One look at every engine, and whatever it leads to."""
        models = self._models()
        self._forget_gone(now)
        for engine, controlled in list(self._engines.items()):
            policy = self._policy_of(engine)
            if engine != self._main() and acting(policy):
                continue  # it follows what is decided for the main engine
            outcome = controlled.look(now, policy, models.get(Runner(engine, controlled.version)))
            if outcome is None:
                continue
            if engine == self._main() and self.marginals.due(now):
                self.marginals.note(now, controlled.gains())
            for decision in outcome.decisions:
                await self._carry_out(engine, decision)
            for score in outcome.scores:
                self._record_score(score)
            if outcome.probe is not None:
                await self._hands.order(engine, outcome.probe)
        self._keep(now)

    def views(self) -> list[WorkloadView]:
        """Every workload of the main engine of which anything holds or is known, by name."""
        engine = self._main()
        controlled = self._engines.get(engine)
        policy = self._policy_of(engine)
        memory = controlled.memory if controlled is not None else Memory()
        running = controlled.intake.running if controlled is not None else {}
        names = {*policy.workloads, *memory.workloads, *running} - {CALIBRATION}
        return [self._view(name, policy, memory, running.get(name, 0)) for name in sorted(names)]

    def _view(self, name: str, policy: PolicyState, memory: Memory, running: int) -> WorkloadView:
        own = policy.workloads.get(name, WorkloadPolicy())
        known, said = memory.workloads.get(name), self._said.get(name)
        fallback = own.fallback and acting(policy)
        return WorkloadView(
            name=name,
            lane=own.lane,
            k=own.k if policy.policy.mode == "adaptive" else None,
            fallback=fallback,
            since=said.ts if fallback and said is not None and said.action == "fallback" else None,
            next_try=known.next_try if fallback and known is not None else None,
            running=running,
            advice=_advice(memory.shadow.get(name)) if not acting(policy) else None,
            why=None if said is None else said.text,
        )

    async def _carry_out(self, engine: str, decision: Decision) -> None:
        if engine == self._main():
            self._said[decision.workload] = decision
        if not decision.executed or decision.workload == OTHER:
            # `other` gathers tags that have no place of their own: no policy can name them.
            self._hands.record(
                ControlRecord(
                    ts=decision.ts, actor=ACTOR, action="advice", workload=decision.workload, why=decision.text,
                    numbers=msgspec.to_builtins(decision),
                )
            )  # fmt: skip
            return
        state = self._hands.changes.state
        await self._hands.changes.make(
            _decided(state, decision.workload, decision.after),
            actor=ACTOR,
            action=decision.action,
            why=decision.text,
            numbers=msgspec.to_builtins(decision),
        )

    def _record_score(self, score: Score) -> None:
        self._hands.record(
            ControlRecord(
                ts=score.ts, actor=ACTOR, action="score", workload=score.workload, numbers=msgspec.to_builtins(score)
            )
        )

    def _begin(self, engine: str) -> Controlled:
        memory = read_memory(self._hands.recall(_name(engine)), random.getrandbits(31))
        return Controlled(self._settings, memory, (CALIBRATION,))

    def _forget_gone(self, now: float) -> None:
        for engine, known in list(self._known.items()):
            if engine != self._main() and known.heard is not None and now - known.heard > FORGET_AFTER_SECONDS:
                del self._engines[engine], self._known[engine]

    def _keep(self, now: float) -> None:
        if now - self._kept_at < KEEP_SECONDS:
            return
        self._kept_at = now
        main = self._engines.get(self._main())
        if main is not None and main.memory.workloads:
            self._hands.remember(_name(self._main()), msgspec.json.encode(main.memory))


def _decided(state: PolicyState, name: str, after: WorkloadPolicy) -> PolicyState:
    """The lane is the operator's and stays as it is."""
    lane = state.workloads.get(name, WorkloadPolicy()).lane
    workloads = with_workload(state.workloads, name, msgspec.structs.replace(after, lane=lane))
    return msgspec.structs.replace(state, workloads=workloads)


def _advice(own: WorkloadPolicy | None) -> str | None:
    if own is None or own == WorkloadPolicy():
        return None
    return "no speculation" if own.fallback else f"K {own.k}"


def _name(engine: str) -> str:
    return f"deciding {engine}"
