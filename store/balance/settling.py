"""Settles steps between the workloads that were in them: who saved what, and who paid for whose drafts. Arithmetic.

A step lasted t; of that its prompt tokens took p, and one token for each of its B decode rows would have taken v
(definitions.md, "Vanilla-equivalent decode time"). Its decode rows share it alike: each used t/B of the engine. Vanilla
would have needed (e·v + p)/B for the e tokens of a row, so the row

    saved  ((e·v + p) − t)/B  =  (e − 1)·v/B  −  x/B        with x = t − v − p, the extra time of the step.

The first part is what its drafts brought it. The second it pays, as all rows do: x is due to those whose tokens were
drafted, in proportion to them, whoever sat beside them. `paid[w][u]` = Σ x · (rows of w / B) · (drafted for u / all
drafted). A token counts as drafted for the row that asked for it, whether or not it was submitted: what a row was
drafted beyond its own K, because a neighbour's was larger, is not at its wish.

Worked example: code drafted 4 and committed 3, chat drafted nothing and committed 1; t = 50 ms, v = 30 ms, p = 0. Each
used 25 ms. Vanilla needs 45 ms for code's tokens and 15 ms for chat's: code saved 20 ms, chat −10 ms, both together
10 ms = 4 tokens × 15 ms − 50 ms. Code's drafts brought it 2 × 15 = 30 ms and cost x = 20 ms, of which it paid 10 ms and
chat 10 ms.

x may be negative: durations scatter about v. Each is taken with its sign, so that sums are not biased and add up. In a
step without drafts x has no cause among the drafts; it stays apart, unexplained.

Saved is neither the realised speedup, in which every row counts alike however many shared its step, nor the marginal
gain of a workload's own K, nor the speedup at equal arrivals.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from engine.step_time.columns import Floats


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps that count: at least one decode row each, all of them known. Times in ms, one value a step; rows and tokens
    steps × workloads."""

    duration: Floats
    vanilla: Floats
    prefill: Floats
    rows: Floats
    """Decode rows."""
    emitted: Floats
    """Tokens committed by them."""
    drafted: Floats
    """Tokens drafted at their wish."""

    def take(self, places: slice) -> Steps:
        return Steps(*(getattr(self, column.name)[places] for column in fields(self)))


@dataclass(frozen=True, eq=False)
class Settlement:
    """Sums in ms, one value a workload; `paid`: workloads that paid × workloads that drafted."""

    used: Floats
    vanilla: Floats
    brought: Floats
    unexplained: Floats
    paid: Floats

    @classmethod
    def nothing(cls, workloads: int) -> Self:
        used, vanilla, brought, unexplained = (np.zeros(workloads) for _ in range(4))
        return cls(used, vanilla, brought, unexplained, np.zeros((workloads, workloads)))

    def __add__(self, other: Settlement) -> Settlement:
        return Settlement(*(getattr(self, column.name) + getattr(other, column.name) for column in fields(self)))


def settle(steps: Steps) -> Settlement:
    batch = steps.rows.sum(axis=1)
    extra = (steps.duration - steps.vanilla - steps.prefill) / batch
    together = steps.drafted.sum(axis=1)
    drafting = together > 0
    for_a_token = np.where(drafting, extra / np.where(drafting, together, 1.0), 0.0)
    token = steps.vanilla / batch
    return Settlement(
        used=(steps.duration / batch) @ steps.rows,
        vanilla=token @ steps.emitted + (steps.prefill / batch) @ steps.rows,
        brought=token @ (steps.emitted - steps.rows),
        unexplained=np.where(drafting, 0.0, extra) @ steps.rows,
        paid=steps.rows.T @ (steps.drafted * for_a_token[:, None]),
    )
