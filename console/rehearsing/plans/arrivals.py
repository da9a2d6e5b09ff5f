"""When requests come: in each phase a stationary renewal process, whose clock runs at the rate of the moment."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from console.rehearsing.plans.chance import stream
from console.rehearsing.plans.lengths import Lengths
from store.rehearsal.plan import Phase, Plan

MOST_REQUESTS: Final = 200_000
"""Of one pass: more are a mistake in a plan."""


class Arrival(NamedTuple):
    """`at`: seconds after the start; `phase`: from 0; `lengths`: as recorded, None where the workload has its own."""

    at: float
    phase: int
    lengths: Lengths | None = None


def expected(phases: Sequence[Phase], scale: float) -> float:
    """Requests that come in all of them, in the mean."""
    return sum(_due(phase, scale) for phase in phases)


def arrivals(plan: Plan, repeat: int, scale: float) -> Iterator[Arrival]:
    """Of all phases, in order of time. Each phase has a stream of chance by its name."""
    begin = 0.0
    for number, phase in enumerate(plan.phases):
        source = stream(plan.seed, repeat, "arrivals", phase.name)
        due = _due(phase, scale)
        for elapsed in renewals(phase.burstiness, due, source):
            within = min(_when(phase, scale, elapsed), math.nextafter(phase.seconds, 0.0))
            yield Arrival(begin + within, number)
        begin += phase.seconds


def renewals(burstiness: float, due: float, source: random.Random) -> Iterator[float]:
    """Points between 0 and `due` of a stationary process of one point per unit, with gamma pauses of that shape.

    The first pause is what is left of one that began before (its distribution in equilibrium: a uniform share of a
    pause drawn by its length; Cox, Renewal Theory, 1962, ch. 5): else bursty traffic would begin with too much. Shape 1
    is the Poisson process.
    """
    scale = 1.0 / burstiness
    at = source.random() * source.gammavariate(burstiness + 1.0, scale)
    while at < due:
        yield at
        at += source.gammavariate(burstiness, scale)


def phase_at(phases: Sequence[Phase], at: float) -> int:
    """Place of the phase in which a moment lies, the last one for what comes after all."""
    end = 0.0
    for number, phase in enumerate(phases):
        end += phase.seconds
        if at < end:
            return number
    return len(phases) - 1


def _due(phase: Phase, scale: float) -> float:
    last = phase.rate if phase.to is None else phase.to
    return scale * phase.seconds * (phase.rate + last) / 2.0


def _when(phase: Phase, scale: float, elapsed: float) -> float:
    """Seconds into the phase after which `elapsed` requests are due, with a rate that goes evenly from one to another.

    The inverse of the rate's integral, a t + c t², in the form that loses no digits where the ramp is flat.
    """
    first = scale * phase.rate
    last = first if phase.to is None else scale * phase.to
    slope = (last - first) / (2.0 * phase.seconds)
    root = math.sqrt(max(0.0, first * first + 4.0 * slope * elapsed))
    return 2.0 * elapsed / (first + root) if elapsed > 0.0 else 0.0
