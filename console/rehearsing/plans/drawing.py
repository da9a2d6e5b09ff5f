"""A plan drawn into the requests of one repeat: the same for every arm, from independent streams of chance."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from console.rehearsing.plans.arrivals import MOST_REQUESTS, Arrival, arrivals, expected
from console.rehearsing.plans.chance import stream
from console.rehearsing.plans.errors import PlanError
from console.rehearsing.plans.lengths import of_length
from console.rehearsing.plans.prompt_files import Prompt
from console.rehearsing.plans.prompt_sets import prompt_set
from console.rehearsing.plans.traced_arrivals import stretch
from store.rehearsal.plan import Mix, Plan
from store.rehearsal.records import DrawnRequest

_SEEDS: Final = 2**31
"""Seeds of sampling are below it."""


def draw(plan: Plan, repeat: int, scale: float, max_model_len: int | None = None) -> list[DrawnRequest]:
    """The requests of a repeat (from 1) in order of time. Same arguments and same files, same requests.

    Args:
        scale: factor on the rates of the phases; a trace's own moments are left as they are.
        max_model_len: requests of a trace are clipped to it; None, or a plan without a trace: none is.

    Raises:
        PlanError: a file of the plan is not there or broken, or too many requests.
    """
    if plan.trace is not None:
        coming: Sequence[Arrival] = stretch(plan, plan.trace, max_model_len).arrivals
    else:
        due = expected(plan.phases, scale)
        if due > MOST_REQUESTS:
            raise PlanError(f"{due:,.0f} requests at scale {scale:g} are more than {MOST_REQUESTS:,}; lower the rates")
        coming = list(arrivals(plan, repeat, scale))
    mix = _Chooser(plan, repeat)
    sources = {one.name: _Source(plan.seed, repeat, one) for one in plan.mix}
    return [
        sources[mix.choose(arrival.phase)].request(f"r{repeat}-{number:05d}", arrival)
        for number, arrival in enumerate(coming, 1)
    ]


def trace_notes(plan: Plan, max_model_len: int | None) -> list[str]:
    """What of the plan's trace is clipped or left out, a sentence each; empty without a trace.

    Raises:
        PlanError: as `draw`.
    """
    return [] if plan.trace is None else stretch(plan, plan.trace, max_model_len).notes(max_model_len)


class _Chooser:
    """Draws whose request it is, by shares; a stream for each phase."""

    def __init__(self, plan: Plan, repeat: int) -> None:
        self._names = [one.name for one in plan.mix]
        self._ends = list(accumulate(one.share for one in plan.mix))
        self._streams = [stream(plan.seed, repeat, "workloads", phase.name) for phase in plan.phases]

    def choose(self, phase: int) -> str:
        drawn = self._streams[phase].random() * self._ends[-1]
        return self._names[min(bisect_right(self._ends, drawn), len(self._names) - 1)]


class _Source:
    """Makes the requests of one workload."""

    def __init__(self, seed: int, repeat: int, mix: Mix) -> None:
        self._mix = mix
        self._prompts = prompt_set(mix.prompts)
        self._deck = _Deck(len(self._prompts), stream(seed, repeat, "prompts", mix.name))
        self._lengths = stream(seed, repeat, "lengths", mix.name)
        self._sampling = stream(seed, repeat, "sampling", mix.name)

    def request(self, id: str, arrival: Arrival) -> DrawnRequest:
        place = self._deck.draw()
        prompt, lengths = self._prompts[place], arrival.lengths
        answer = self._answer(prompt)
        return DrawnRequest(
            id=id,
            at=arrival.at,
            phase=arrival.phase,
            workload=self._mix.name,
            messages=prompt.messages if lengths is None else of_length(self._prompts, place, lengths.prompt_tokens),
            max_tokens=answer if lengths is None else lengths.output_tokens,
            temperature=self._mix.temperature if prompt.temperature is None else prompt.temperature,
            seed=self._sampling.randrange(_SEEDS),
            exact=lengths is not None,
        )

    def _answer(self, prompt: Prompt) -> int:
        drawn = self._lengths.choice(self._mix.max_tokens) if self._mix.max_tokens else 1
        return drawn if prompt.max_tokens is None else prompt.max_tokens


class _Deck:
    """Draws places without one coming again before all were drawn."""

    def __init__(self, size: int, source: random.Random) -> None:
        self._size = size
        self._source = source
        self._left: list[int] = []

    def draw(self) -> int:
        if not self._left:
            self._left = list(range(self._size))
            self._source.shuffle(self._left)
        return self._left.pop()
