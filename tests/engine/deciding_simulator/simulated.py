"""The engine: makes steps in stretches in which nobody comes or goes, with the real `Drafting` asked at every one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from engine.drafting import Asked, Drafting
from engine.frames import CAUSE_CODE, LIMIT_CODE
from engine.policy import PolicyState, Resolver
from engine.records import Probe
from engine.sequences import SequenceClass, sequence_class
from tests.engine.deciding_simulator.surface import Drift, Surface
from tests.engine.deciding_simulator.traffic import Workload, with_offset

Array = npt.NDArray[Any]

_STRETCH: Final = 48
_NONE, _FULL, _NO_PROPOSAL = (CAUSE_CODE[name] for name in ("none", "full", "no_proposal"))


@dataclass
class Running:
    """A sequence being served."""

    handle: int
    workload: int
    cls: SequenceClass
    remaining: int
    context: int
    offset: float
    hazards: Array


@dataclass(frozen=True)
class Stretch:
    """S steps of n sequences under the same draft lengths. Arrays (S,) or (n,) or (S, n)."""

    number: int
    """Of its first step."""
    ts: Array
    duration_ms: Array
    k_verify: int
    k_draft: Array
    probe: Probe | None
    prefill: Array
    sequence: Array
    workload: Array
    k_asked: Array
    limit: Array
    drafted: Array
    accepted: Array
    emitted: Array
    context: Array
    """(n,): at its beginning."""
    state: PolicyState
    """By which the lengths were resolved."""


@dataclass
class Simulated:
    """Deterministic for a seed. `now` in seconds; `step` is the number of steps so far."""

    workloads: Sequence[Workload]
    drafting: Drafting
    max_k: int
    surface: Surface = field(default_factory=Surface)
    seed: int = 0
    max_running: int = 64
    hints: bool = False
    """Every fifth sequence comes with the hint to speculate not at all."""
    now: float = 0.0
    step: int = 0
    running: list[Running] = field(default_factory=list)
    waiting: int = 0

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self._arriving = [np.random.default_rng((self.seed, 5, place)) for place in range(len(self.workloads))]
        self._drift = Drift(self.seed, self.surface.drift)
        self._changes = sorted({ts for one in self.workloads for ts in one.changes()})
        self._next_arrival = [self._draw_arrival(place, 0.0) for place in range(len(self.workloads))]
        self._handle = 0
        self._prefill = 0
        self._queue: list[Running] = []
        self._settled = -1.0
        self._classes: list[SequenceClass] = []

    def stretch(self, until: float) -> Stretch | None:
        """Make steps until about `until`, until somebody comes or goes, or until lengths change; None where there was
        nothing to do: then the time is `until`, or that of the next arrival."""
        self._arrive()
        end = min([until, *self._next_arrival, self._next_change()])
        if not self.running:
            self.now = max(end, self.now + 1e-6)
            return None
        return self._made(end)

    def _made(self, end: float) -> Stretch:
        running = self.running
        n = len(running)
        due = self.drafting.due()
        k, limit = self._lengths(due)
        hazards = np.array([one.hazards for one in running])
        remaining = np.array([one.remaining for one in running])
        context = np.array([one.context for one in running])
        prefill, self._prefill = self._prefill, 0
        steps = 1 if due.draws is not None else _STRETCH
        drafted, accepted = self._verified(steps, k, hazards)
        emitted = accepted + 1
        reached = emitted.cumsum(axis=0)
        over = (reached >= remaining).any(axis=1)
        if over.any():
            steps = int(over.argmax()) + 1
        noise = self._noise(steps)
        tokens = drafted[:steps].sum(axis=1) + n
        contexts = context.sum() + np.concatenate(([0], reached[: steps - 1].sum(axis=1)))
        ms = self.surface.ms(n, tokens, due.batch_k, contexts) * noise
        ms[0] += self.surface.prefill * prefill * noise[0]
        ends = self.now + ms.cumsum() / 1000
        steps = min(steps, int(np.searchsorted(ends, end)) + 1)
        asked, made = due, 0
        while made < steps:
            asked = self.drafting.ask(self._classes, n, False)
            made += 1
            if asked.batch_k != due.batch_k or asked.probe != due.probe or asked.lengths != due.lengths or asked.draws:
                break
        if asked.batch_k != due.batch_k:  # the passes at the end of a step are those for the next one
            rest = self.surface.ms(n, tokens[made - 1], asked.batch_k, contexts[made - 1])
            before = self.surface.ms(n, tokens[made - 1], due.batch_k, contexts[made - 1])
            ms[made - 1] += float(rest - before) * noise[made - 1]
        return self._booked(due, asked, made, k, limit, drafted, accepted, emitted, ms, prefill, remaining, context)

    def _booked(
        self, due: Asked, asked: Asked, made: int, k: Array, limit: Array, drafted: Array, accepted: Array,
        emitted: Array, ms: Array, prefill: int, remaining: Array, context: Array,
    ) -> Stretch:  # fmt: skip
        running = self.running
        drafted, accepted, emitted, ms = drafted[:made], accepted[:made], emitted[:made].copy(), ms[:made]
        taken = emitted.sum(axis=0)
        emitted[-1] -= np.maximum(taken - remaining, 0)
        k_draft = np.full(made, due.batch_k)
        k_draft[-1] = asked.batch_k
        fed = np.zeros(made, dtype=np.int64)
        fed[0] = prefill
        stretch = Stretch(
            self.step + 1, self.now + ms.cumsum() / 1000, ms, due.batch_k, k_draft, due.probe, fed,
            np.array([one.handle for one in running]), np.array([one.workload for one in running]), k, limit, drafted,
            accepted, emitted, context, due.resolver.state,
        )  # fmt: skip
        self.step += made
        self.now = float(stretch.ts[-1])
        left = []
        for one, tokens in zip(running, taken.tolist(), strict=True):
            one.remaining -= tokens
            one.context += tokens
            if one.remaining > 0:
                left.append(one)
        if len(left) != len(running):
            self.running = left
            self._settled = -1.0
        return stretch

    def _verified(self, steps: int, k: Array, hazards: Array) -> tuple[Array, Array]:
        """(steps, n) drafted and accepted tokens."""
        n = len(k)
        drafted = np.broadcast_to(k, (steps, n))
        proposes = np.array([self.workloads[one.workload].proposes for one in self.running])
        if (proposes < 1).any():
            drafted = np.where(self._random.random((steps, n)) < proposes, drafted, 0)
        longest = int(k.max(initial=0))
        if not longest:
            return drafted, np.zeros((steps, n), dtype=np.int64)
        passed = self._random.random((steps, n, longest)) < hazards[:, :longest]
        accepted = np.minimum.accumulate(passed, axis=2).sum(axis=2)
        return drafted, np.minimum(accepted, drafted)

    def _noise(self, steps: int) -> Array:
        noise = np.exp(self._random.normal(0, self.surface.noise, steps)) * self._drift.at(self.now)
        return np.asarray(np.where(self._random.random(steps) < self.surface.late, 5 * noise, noise))

    def _lengths(self, due: Asked) -> tuple[Array, Array]:
        """(n,) K and limit of each sequence."""
        found = []
        for one in self.running:
            length = self.drafting.length_for(due, one.cls)
            drawn = None if due.draws is None else due.draws.length(one.cls, one.handle, length.k)
            found.append((length.k, LIMIT_CODE[length.limit]) if drawn is None else (drawn, LIMIT_CODE["probe"]))
        table = np.array(found)
        return table[:, 0], table[:, 1]

    def _arrive(self) -> None:
        """Let come who is due, and fill the places of those who went."""
        if self._settled >= 0 and self.now < self._settled:
            return
        for place, workload in enumerate(self.workloads):
            here = sum(one.workload == place for one in self.running)
            for _ in range(workload.running_at(self.now) - here if workload.running else 0):
                self._queue.append(self._draw(place))
            while self._next_arrival[place] <= self.now:
                self._queue.append(self._draw(place))
                self._next_arrival[place] = self._draw_arrival(place, self._next_arrival[place])
        while self._queue and len(self.running) < self.max_running:
            one = self._queue.pop(0)
            self._prefill += one.context
            self.running.append(one)
        for one in self.running:
            workload = self.workloads[one.workload]
            one.hazards = with_offset(workload.hazards_at(self.now)[: self.max_k], one.offset)
        self.waiting = len(self._queue)
        self._classes = list({id(one.cls): one.cls for one in self.running}.values())
        self._settled = min([self._next_change(), *self._next_arrival])

    def _draw(self, place: int) -> Running:
        workload, random = self.workloads[place], self._arriving[place]
        self._handle += 1
        length = max(2, round(workload.tokens * float(np.exp(random.normal(0, workload.length_spread)))))
        offset = float(random.normal(0, workload.spread))
        hint = self.hints and self._handle % 5 == 0
        cls = sequence_class(workload.name, hint, "speculative")
        return Running(self._handle, place, cls, length, workload.prompt, offset, np.empty(0))

    def _draw_arrival(self, place: int, after: float) -> float:
        """The next random arrival after a moment; rates change from one to the next."""
        rate = self.workloads[place].rate_at(after)
        if not self.workloads[place].arrivals:
            return float("inf")
        return after + float(self._arriving[place].exponential(1 / rate)) if rate > 0 else self._next_change(after)

    def _next_change(self, after: float | None = None) -> float:
        after = self.now if after is None else after
        return next((ts for ts in self._changes if ts > after), float("inf"))


def drafting(state: PolicyState, max_k: int, fixed: bool = False, seed: int = 0) -> Drafting:
    return Drafting(Resolver(state, max_k), "fixed" if fixed else "free", seed)
