"""What an engine counted between two moments, and the differencing of counters that gives it.

Counters only rise while an engine lives. One that fell, or was created anew, says that the engine restarted: what it
shows then counts from 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from store.imports.times import written


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What one engine counted in (since, ts], Unix seconds. Counts are tokens unless said; None is unknown."""

    engine: str
    since: float
    ts: float
    drafts: int
    """Draft steps as vLLM counts them: those whose every draft token a grammar struck are among them."""
    draft_tokens: int
    accepted_tokens: int
    accepted_per_position: list[int] = []
    """Draft steps that accepted position 1, 2, …; empty where unknown."""
    generation_tokens: int | None = None
    prompt_tokens: int | None = None
    running: int | None = None
    """Requests, at `ts`."""
    waiting: int | None = None
    model: str | None = None
    restarted: bool = False
    """The engine restarted in this stretch: what it counted before the restart and after `since` is lost."""
    approximate: bool = False
    """All but the draft and accepted tokens was derived from rounded figures."""
    source: str = ""
    """File or address it was read from."""


class Observed(NamedTuple):
    """Observations in the order of their `ts`, and what an operator should know of them."""

    observations: list[Observation]
    notes: list[str]


class CounterSample(msgspec.Struct, frozen=True, kw_only=True):
    """What the counters of one engine showed at `ts`, since that engine began. Counts are tokens unless said."""

    engine: str
    ts: float
    drafts: int = 0
    draft_tokens: int = 0
    accepted_tokens: int = 0
    accepted_per_position: list[int] = []
    generation_tokens: int | None = None
    prompt_tokens: int | None = None
    running: int | None = None
    waiting: int | None = None
    model: str | None = None
    created: float | None = None
    """When the counters were created, Unix seconds of the engine's own clock."""
    speculative: bool = True
    """It shows draft counters at all."""
    source: str = ""


class CounterDifferences:
    """Takes samples as they come and gives what was counted between each and the one before it, engine by engine."""

    def __init__(self) -> None:
        self._before: dict[str, CounterSample] = {}

    def take(self, samples: Iterable[CounterSample]) -> Observed:
        """The observations that end with these samples. The first sample of an engine gives none.

        A stretch whose counts can't be (more accepted than drafted) is left out with a note; so is one over which the
        clock did not move forward.
        """
        observations, notes = [], []
        for sample in samples:
            before, self._before[sample.engine] = self._before.get(sample.engine), sample
            if before is None:
                continue
            if sample.ts <= before.ts:
                notes.append(
                    f"{sample.engine}: the clock went back to {written(sample.ts)}: counting starts anew there"
                )
                continue
            observation = _difference(before, sample)
            stretch = f"between {written(before.ts)} and {written(sample.ts)}"
            if observation.restarted:
                notes.append(f"{sample.engine} restarted {stretch}")
            if _possible(observation):
                observations.append(observation)
            else:
                notes.append(f"{sample.engine} {stretch}: left out, its counts can't be ({_counts(observation)})")
        return Observed(observations, notes)


def _difference(before: CounterSample, after: CounterSample) -> Observation:
    restarted = _has_restarted(before, after)
    base = _nothing_counted(after, before.ts) if restarted else before
    return Observation(
        engine=after.engine,
        since=before.ts,
        ts=after.ts,
        drafts=after.drafts - base.drafts,
        draft_tokens=after.draft_tokens - base.draft_tokens,
        accepted_tokens=after.accepted_tokens - base.accepted_tokens,
        accepted_per_position=_less_each(after.accepted_per_position, base.accepted_per_position),
        generation_tokens=_less(after.generation_tokens, base.generation_tokens),
        prompt_tokens=_less(after.prompt_tokens, base.prompt_tokens),
        running=after.running,
        waiting=after.waiting,
        model=after.model,
        restarted=restarted,
        source=after.source,
    )


def _nothing_counted(after: CounterSample, ts: float) -> CounterSample:
    positions = [0] * len(after.accepted_per_position)
    return CounterSample(
        engine=after.engine, ts=ts, accepted_per_position=positions, generation_tokens=0, prompt_tokens=0
    )


def _has_restarted(before: CounterSample, after: CounterSample) -> bool:
    """A counter fell, fewer positions are counted, or the counters were created after the sample before."""
    pairs = [
        (before.drafts, after.drafts),
        (before.draft_tokens, after.draft_tokens),
        (before.accepted_tokens, after.accepted_tokens),
        (before.generation_tokens, after.generation_tokens),
        (before.prompt_tokens, after.prompt_tokens),
        *zip(before.accepted_per_position, after.accepted_per_position, strict=False),
    ]
    if any(then is not None and now is not None and now < then for then, now in pairs):
        return True
    if 0 < len(after.accepted_per_position) < len(before.accepted_per_position):
        return True
    if before.created is None or after.created is None:
        return False
    return before.created != after.created and before.ts < after.created <= after.ts


def _possible(observation: Observation) -> bool:
    """Whether draft steps could have counted this: each drafts something, and accepts no more than it drafted."""
    drafts, positions = observation.drafts, observation.accepted_per_position
    return observation.accepted_tokens <= observation.draft_tokens and (
        drafts > 0 or not (observation.draft_tokens or any(positions))
    )


def _counts(observation: Observation) -> str:
    return (
        f"{observation.drafts} drafts, {observation.draft_tokens} draft tokens, {observation.accepted_tokens} accepted"
    )


def _less_each(now: list[int], then: list[int]) -> list[int]:
    """Empty where either side is unknown; a position that was not counted before stood at 0."""
    if not then:
        return []
    return [value - earlier for value, earlier in zip(now, [*then, *[0] * len(now)], strict=False)]


def _less(now: int | None, then: int | None) -> int | None:
    return None if now is None or then is None else now - then
