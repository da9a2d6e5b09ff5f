"""Whether an engine executed a draft schedule, from its steps alone: every K, every change of it, every level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from console.feed.protocol import StepView
from console.rehearsing.levels import Level
from engine.schedule import DraftSchedule, lookup

OTHERS: Final = frozenset({"hint", "lane", "fallback", "probe"})
"""Terms that set K of a step only where none of the rehearsal's own sequences ran, or that a measurement set."""

MOST_STEPS_LATE: Final = 1
"""A K is decided at the end of a step for the sequences of that step; one step later is still in time."""

_MOST_FAILURES: Final = 12


class Transition(msgspec.Struct, frozen=True, rename={"before": "from"}):
    """`step` drafts `to` where the one before drafted `before`, `from` in JSON. `delay`: steps since `running` crossed;
    None where no crossing explains it."""

    step: int
    running: int
    before: int
    to: int
    limit: str
    delay: int | None


class Held(NamedTuple):
    """Traffic held `level` over these step numbers."""

    level: Level
    first: int
    last: int


class LevelSeen(msgspec.Struct, frozen=True):
    """What was executed at a level that was held. `k`: the commonest K; None where no step was there."""

    concurrent: int
    running: tuple[int, int] | None
    """Fewest and most running sequences."""
    k: int | None
    steps: int


class Verdict(msgspec.Struct, frozen=True):
    """`steps` were judged; `others`: left out, since they tell of other clients' requests or of probes alone."""

    transitions: list[Transition]
    levels: list[LevelSeen]
    failures: list[str]
    steps: int
    others: int


class _Judged(NamedTuple):
    step: StepView
    due: int
    """K that the schedule gives for the step's own sequences."""
    due_before: int | None
    """The same of the step before it; None where that was not recorded."""

    @property
    def kept(self) -> bool:
        """A step after one that was not recorded may stand for that one's sequences: its K can't be held against it."""
        return self.step.k_draft == self.due or self.due_before is None or self.step.k_draft == self.due_before


def check(steps: Sequence[StepView], schedule: DraftSchedule, held: Sequence[Held], policy: int) -> Verdict:
    """Hold steps, in their order, against `schedule`, which is in force since policy version `policy`.

    Args:
        held: levels that the traffic was brought to, in their order.
    """
    stamped = [step for step in steps if step.policy >= policy]
    ours = [step for step in stamped if step.limit not in OTHERS and step.probe is None]
    before = {after.step: one for one, after in pairwise(steps) if one.step + 1 == after.step and one.policy >= policy}
    judged = [_judged(step, before.get(step.step), schedule) for step in ours]
    seen = [_seen(one, judged) for one in held]
    failures = [*_wrong(judged), *_not_held(held, seen)]
    if len(failures) > _MOST_FAILURES:
        failures[_MOST_FAILURES:] = [f"and {len(failures) - _MOST_FAILURES} more"]
    return Verdict(list(_transitions(judged)), seen, failures, len(judged), len(stamped) - len(ours))


def _judged(step: StepView, before: StepView | None, schedule: DraftSchedule) -> _Judged:
    due_before = None if before is None else lookup(schedule, max(before.running, 1))
    return _Judged(step, lookup(schedule, max(step.running, 1)), due_before)


def _transitions(judged: Sequence[_Judged]) -> Iterator[Transition]:
    for place, (one, after) in enumerate(pairwise(judged), 1):
        step = after.step
        if step.k_draft != one.step.k_draft:
            delay = _delay(judged, place)
            yield Transition(step.step, step.running, one.step.k_draft, step.k_draft, step.limit, delay)


def _delay(judged: Sequence[_Judged], place: int) -> int | None:
    """Steps from the one that crossed into the range of the K executed at `place`."""
    k = judged[place].step.k_draft
    at = place if judged[place].due == k else place - 1
    if judged[at].due != k:
        return None
    while at > 0 and judged[at - 1].due == k:
        at -= 1
    return judged[place].step.step - judged[at].step.step


def _wrong(judged: Sequence[_Judged]) -> Iterator[str]:
    """Stretches of steps that executed another K than due, or another term than the schedule's."""
    start = 0
    for end in range(1, len(judged) + 1):
        if end < len(judged) and _fault(judged[end]) == _fault(judged[start]):
            continue
        fault = _fault(judged[start])
        if fault is not None:
            yield f"{_span(judged[start].step.step, judged[end - 1].step.step)}: {fault}"
        start = end


def _fault(one: _Judged) -> str | None:
    step = one.step
    if step.limit != "schedule":
        return f"K {step.k_draft} was set by the term `{step.limit}`, not by the schedule"
    if not one.kept:
        return f"K {step.k_draft} where the schedule gives {one.due} (at {step.running} running)"
    return None


def _seen(held: Held, judged: Sequence[_Judged]) -> LevelSeen:
    there = [
        one.step for one in judged if held.first <= one.step.step <= held.last and held.level.holds(one.step.running)
    ]
    if not there:
        return LevelSeen(held.level.concurrent, None, None, 0)
    running = [step.running for step in there]
    ((k, _),) = Counter(step.k_draft for step in there).most_common(1)
    return LevelSeen(held.level.concurrent, (min(running), max(running)), k, len(there))


def _not_held(held: Sequence[Held], seen: Sequence[LevelSeen]) -> Iterator[str]:
    for one, found in zip(held, seen, strict=True):
        if found.k is None:
            yield f"{one.level.stretch} running: no step there was the rehearsal's to judge"
        elif found.k != one.level.k:
            yield f"{one.level.stretch} running: K {found.k} was executed, K {one.level.k} is due"


def _span(first: int, last: int) -> str:
    return f"step {first}" if first == last else f"steps {first} to {last}"
