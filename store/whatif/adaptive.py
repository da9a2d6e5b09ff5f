"""Mode adaptive: the real controller over the record, simulated step by step, for the K that each token would have had.

The engine is simulated: its sequences with their recorded texts, unknown positions drawn once with a fixed seed by the
chances of `hazards`; steps that take what the record's own step-time model says; the real `Drafting`, probes included;
and once a simulated second the real controller on what it has seen since. It begins knowing nothing but the step times.

A sequence comes when as many have ended as had ended in the record when it came, so the concurrency is the recorded
one; where nobody is running the next one comes after the recorded pause. Of the simulation only the K of each position
is kept: with these the policy is walked like any other, bounds included.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import msgspec
import numpy as np

from engine.deciding.decide import decide
from engine.deciding.memory import Memory
from engine.deciding.observer import ObservedRows, ObservedSteps, Observer
from engine.deciding.settings import DecidingSettings
from engine.drafting import Asked, Drafting
from engine.frames import CAUSE_CODE, LIMIT_CODE
from engine.policy import PolicyState, Resolver
from engine.records import EngineRecord, PolicyMode, Probe
from engine.sequences import SequenceClass, sequence_class
from engine.step_time.bands import batch_band, context_band
from engine.step_time.cells import cell_code
from engine.step_time.model import StepModel
from store.counts import Ints
from store.whatif.factors import Factors
from store.whatif.texts import Texts

SEED: Final = 0
LOOK_SECONDS: Final = 1.0
"""How often the controller looks, as a station's does."""

_NONE, _FULL, _NO_PROPOSAL = (CAUSE_CODE[name] for name in ("none", "full", "no_proposal"))
_PROBE: Final = LIMIT_CODE["probe"]


@dataclass
class Seen:
    """What was observed since the controller's last look, a row of numbers a step and a column of arrays a row."""

    steps: list[tuple[int, float, float, Probe | None]] = field(default_factory=list)
    rows: list[tuple[Ints, ...]] = field(default_factory=list)

    def drain(self) -> tuple[ObservedSteps, ObservedRows]:
        number, ts, duration, probe = zip(*self.steps, strict=True)
        columns = (np.concatenate(parts) for parts in zip(*self.rows, strict=True))
        observed = (
            ObservedSteps(np.array(number), np.array(ts), np.array(duration), list(probe)),
            ObservedRows(*columns),
        )
        self.steps.clear()
        self.rows.clear()
        return observed


class Simulation:
    """One run of one engine.

    Args:
        texts: of its sequences, in the order in which they came.
        k, batch_k: (positions of all texts,), filled in: K of the step that met each position, and its batch's.
    """

    def __init__(
        self,
        mode: PolicyMode,
        record: EngineRecord,
        version: str,
        model: StepModel,
        texts: Texts,
        k: Ints,
        batch_k: Ints,
    ) -> None:
        state = PolicyState(version=1, policy=mode)
        fixed = record.batch_k == "fixed" or record.data_parallel_size > 1
        self._drafting = Drafting(Resolver(state, record.max_k), "fixed" if fixed else "free", SEED)
        self._observer = Observer("simulated", version, record.max_k, fixed)
        self._settings, self._memory = DecidingSettings(), Memory(seed=SEED)
        self._model, self._factors = model, Factors(model.cells)
        self._factor: dict[int, float] = {}
        self._texts, self._k, self._batch_k = texts, k, batch_k
        self._classes: list[SequenceClass] = [
            sequence_class(texts.names[workload], barred, "speculative")
            for workload, barred in zip(texts.workload.tolist(), texts.barred.tolist(), strict=True)
        ]
        self._seen = Seen()
        self._step = 0
        self._now = float(texts.came[0]) if len(texts.came) else 0.0

    def run(self) -> None:
        """To the end of all sequences."""
        texts, at = self._texts, self._texts.first.copy()
        running = np.empty(0, dtype=np.int64)
        ended = come = 0
        look = self._now + LOOK_SECONDS
        while come < len(texts.first) or len(running):
            arrived = self._arriving(come, ended, idle=not len(running))
            if not len(running) and len(arrived):
                self._now += max(float(texts.pause[arrived[0]]), 0.0)
                look = max(look, self._now)
            come += len(arrived)
            running = np.concatenate((running, arrived))
            at[running] += self._make_step(running, at[running], int(texts.context[texts.first[arrived]].sum()))
            over = at[running] >= texts.last[running]
            ended += int(over.sum())
            running = running[~over]
            if self._now >= look:
                self._look()
                look = self._now + LOOK_SECONDS

    def _arriving(self, come: int, ended: int, idle: bool) -> Ints:
        """Sequences that come now: all whose turn it is."""
        until = come
        while until < len(self._texts.first) and (self._texts.after[until] <= ended or (idle and until == come)):
            until += 1
        return np.arange(come, until)

    def _make_step(self, running: Ints, at: Ints, prefill: int) -> Ints:
        """One step of these sequences; the tokens that each commits."""
        texts = self._texts
        due = self._drafting.due()
        k, limit = self._lengths(due, running)
        drafted = np.minimum(k, texts.offered[at])
        accepted = np.minimum(drafted, texts.run[at])
        emitted = np.minimum(accepted + 1, texts.last[running] - at)
        asked = self._drafting.ask(dict.fromkeys(self._classes[one] for one in running.tolist()), len(running), False)
        context = texts.context[at]
        ms = self._step_ms(len(running), int(drafted.sum()), int(context.sum()), asked.batch_k, prefill)
        self._step += 1
        self._now += ms / 1000
        for place, length, tokens in zip(at.tolist(), k.tolist(), emitted.tolist(), strict=True):
            self._k[place : place + tokens] = length
            self._batch_k[place : place + tokens] = asked.batch_k
        cause = np.where(k == 0, _NONE, np.where(drafted < k, _NO_PROPOSAL, _FULL))
        step = np.full(len(running), len(self._seen.steps))
        self._seen.steps.append((self._step, self._now, ms, due.probe))
        self._seen.rows.append(
            (step, texts.workload[running], running, k, limit, drafted, accepted, emitted, context, cause)
        )
        return np.asarray(emitted)

    def _lengths(self, due: Asked, running: Ints) -> tuple[Ints, Ints]:
        found = []
        for handle in running.tolist():
            cls = self._classes[handle]
            length = self._drafting.length_for(due, cls)
            drawn = None if due.draws is None else due.draws.length(cls, handle, length.k)
            found.append((length.k, LIMIT_CODE[length.limit]) if drawn is None else (drawn, _PROBE))
        table = np.array(found, dtype=np.int64)
        return table[:, 0], table[:, 1]

    def _step_ms(self, batch: int, drafts: int, context: int, k: int, prefill: int) -> float:
        costs = self._model.coefficients
        code = int(cell_code(k, batch_band(batch), context_band(context, batch)))
        factor = self._factor.get(code)
        if factor is None:
            factor = self._factor[code] = self._factors.of(code).value
        decode = (
            costs.constant + (costs.batch + costs.tokens) * batch + costs.tokens * drafts
            + costs.context * context + costs.passes * k
        )  # fmt: skip
        return max(decode * factor + costs.prefill * prefill, 0.001)

    def _look(self) -> None:
        """What a station does once a second: observe, decide, carry out."""
        self._observer.add(*self._seen.drain(), self._texts.names)
        state = self._drafting.resolver.state
        outcome = decide(self._settings, self._memory, self._observer.estimates(self._now, state, self._model))
        self._memory = outcome.memory
        for made in outcome.decisions:
            if made.executed:
                workloads = {**state.workloads, made.workload: made.after}
                state = msgspec.structs.replace(state, version=state.version + 1, workloads=workloads)
        if state is not self._drafting.resolver.state:
            self._drafting.resolver = Resolver(state, self._drafting.resolver.max_k)
        if outcome.probe is not None:
            self._drafting.probing.give("simulated", outcome.probe)
