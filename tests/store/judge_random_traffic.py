"""Random traffic for the judge: sequences of many kinds of buckets, as totals in 10-s cells. All that is true is known.

Sequences of a bucket differ (beta), have very unequal lengths (log-normal or geometric, 5 to 200 draft steps), and last
for a while.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from store.judge.inputs import Bools, Floats, Ints, SequenceCells

HOUR: Final = 3600.0
T0: Final = 1_790_000_000 // 21_600 * 21_600.0
HISTORY_HOURS: Final = 48
"""Before anything falls."""


@dataclass(frozen=True)
class Traffic:
    """What the buckets' sequences are like; arrays of one length. Acceptance is at depth K."""

    per_hour: Floats
    mean: Floats
    spread: Floats
    """Standard deviation between sequences."""
    k: Ints
    median_steps: Floats
    geometric: Bools
    """Whether lengths are geometric, else log-normal …"""
    length_spread: Floats
    """… with this standard deviation of the logarithm."""
    steps_a_second: float
    """Of one sequence."""
    fall: Floats
    """Taken off the mean …"""
    fall_at: Floats
    """… of sequences that start later; Unix seconds."""

    def __len__(self) -> int:
        return len(self.mean)


def steady(random: np.random.Generator, many: int) -> Traffic:
    """Buckets of all kinds, without a fall."""
    mean = random.uniform(0.15, 0.9, many)
    widest = 0.8 * np.sqrt(mean * (1 - mean))
    return Traffic(
        per_hour=np.exp(random.uniform(np.log(2), np.log(600), many)),
        mean=mean,
        spread=np.minimum(random.uniform(0, 0.2, many), widest),
        k=random.integers(1, 5, many),
        median_steps=random.uniform(20, 60, many),
        geometric=random.random(many) < 0.5,
        length_spread=np.full(many, 0.8),
        steps_a_second=5.0,
        fall=np.zeros(many),
        fall_at=np.full(many, np.inf),
    )


def long_lasting(random: np.random.Generator, many: int) -> Traffic:
    """Busy buckets whose sequences last for minutes, so that windows in a row share them, and differ as much as any."""
    traffic = steady(random, many)
    changed: dict[str, Any] = {
        "per_hour": np.exp(random.uniform(np.log(60), np.log(900), many)),
        "spread": np.minimum(0.2, 0.8 * np.sqrt(traffic.mean * (1 - traffic.mean))),
        "steps_a_second": 0.1,
    }
    return Traffic(**(traffic.__dict__ | changed))


def falling(
    random: np.random.Generator, many: int, points: float, spread: Floats | float, *, alike: bool = False
) -> Traffic:
    """Buckets of 200 sequences an hour whose acceptance falls by `points` at a random moment of the hour that follows
    the history. `alike`: their sequences have all the same length."""
    traffic = steady(random, many)
    mean = random.uniform(0.35, 0.8, many)
    changed: dict[str, Any] = {
        "per_hour": np.full(many, 200.0),
        "mean": mean,
        "spread": np.broadcast_to(np.asarray(spread, dtype=float), (many,)),
        "fall": np.full(many, points / 100),
        "fall_at": T0 + HISTORY_HOURS * HOUR + random.uniform(0, HOUR, many),
    }
    if alike:
        changed |= {"geometric": np.zeros(many, dtype=bool), "length_spread": np.zeros(many)}
    return Traffic(**(traffic.__dict__ | changed))


def cells(random: np.random.Generator, traffic: Traffic, start: float, hours: int) -> Iterator[SequenceCells]:
    """The cells of `hours` hours, in the order of time."""
    first, late = 0, None
    for hour in range(hours):
        entries, first = _hour(random, traffic, start + hour * HOUR, first)
        if late is not None:
            entries = {name: np.concatenate([late[name], column]) for name, column in entries.items()}
        later = entries["ts"] >= start + (hour + 1) * HOUR
        late = {name: column[later] for name, column in entries.items()}
        yield from _by_cell({name: column[~later] for name, column in entries.items()})


Columns = dict[str, np.ndarray[Any, Any]]
"""Entries of a (bucket, sequence) pair in a cell."""


def _hour(random: np.random.Generator, traffic: Traffic, start: float, first: int) -> tuple[Columns, int]:
    """Entries of the sequences that begin in one hour; one for each cell that a sequence touches."""
    counts = random.poisson(traffic.per_hour)
    bucket = np.repeat(np.arange(len(traffic)), counts)
    begins = start + random.uniform(0, HOUR, len(bucket))
    sequence = first + np.arange(len(bucket))
    median, geometric = traffic.median_steps[bucket], traffic.geometric[bucket]
    wide = np.exp(random.normal(np.log(median), traffic.length_spread[bucket]))
    steps = np.clip(np.where(geometric, random.geometric(1 / median), wide), 5, 200).astype(np.int64)
    mean = traffic.mean[bucket] - np.where(begins >= traffic.fall_at[bucket], traffic.fall[bucket], 0)
    hazard = _hazard(_beta(random, mean, traffic.spread[bucket]), traffic.k[bucket])

    # The steps of a sequence are spread evenly over the cells it touches.
    pace = traffic.steps_a_second
    parts = np.ceil((begins % 10 + steps / pace) / 10).astype(np.int64)
    of = np.repeat(np.arange(len(bucket)), parts)
    place = np.arange(len(of)) - np.repeat(parts.cumsum() - parts, parts)
    cell = begins[of] // 10 * 10 + 10 * place
    until = np.clip((cell + 10 - begins[of]) * pace, 0, steps[of]).astype(np.int64)
    until[place == parts[of] - 1] = steps[of][place == parts[of] - 1]
    done = np.where(place > 0, np.r_[0, until[:-1]], 0)
    here = until - done
    reached, matched = _accepted(random, here, hazard[of], traffic.k[bucket[of]])
    entries = {
        "ts": cell, "bucket": bucket[of], "sequence": sequence[of], "steps": here, "reached": reached,
        "matched": matched,
    }  # fmt: skip
    return entries, first + len(bucket)


def _by_cell(entries: Columns) -> Iterator[SequenceCells]:
    order = np.lexsort((entries["sequence"], entries["bucket"], entries["ts"]))
    sorted_ = {name: column[order] for name, column in entries.items()}
    ts = sorted_["ts"]
    edges = np.flatnonzero(np.r_[True, ts[1:] != ts[:-1], True])
    for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        here = slice(begin, end)
        nothing = np.zeros(end - begin, dtype=np.int64)
        yield SequenceCells(
            ts=float(ts[begin]),
            bucket=sorted_["bucket"][here],
            sequence=sorted_["sequence"][here],
            decode_rows=sorted_["steps"][here],
            reached=sorted_["reached"][here],
            matched=sorted_["matched"][here],
            resumed_steps=nothing,
            resumed_ratio=nothing.astype(float),
        )


def _accepted(random: np.random.Generator, steps: Ints, hazard: Floats, k: Ints) -> tuple[Ints, Ints]:
    """Σ over the steps of [d ≥ m] and of min(a, m), m = 1 …: each position is accepted with the sequence's hazard,
    once those before it were."""
    deepest = int(k.max())
    reached = np.zeros((len(steps), deepest), dtype=np.int64)
    matched = np.zeros_like(reached)
    passed, total = steps, np.zeros_like(steps)
    for depth in range(1, deepest + 1):
        deep = k >= depth
        passed = np.where(deep, random.binomial(passed, hazard), 0)
        total = total + passed
        reached[:, depth - 1] = np.where(deep, steps, 0)
        matched[:, depth - 1] = np.where(deep, total, 0)
    return reached, matched


def _beta(random: np.random.Generator, mean: Floats, spread: Floats) -> Floats:
    """Sequences' acceptance with this mean and standard deviation."""
    size = mean * (1 - mean) / np.maximum(spread, 1e-3) ** 2 - 1
    return random.beta(mean * size, (1 - mean) * size)


def _hazard(acceptance: Floats, k: Ints) -> Floats:
    """The chance of each position that gives this acceptance at depth K: (h + h² + … + h^K) / K."""
    grid = np.linspace(0, 1, 2001)
    found = np.empty_like(acceptance)
    for depth in np.unique(k).tolist():
        here = k == depth
        gives = sum(grid**power for power in range(1, depth + 1)) / depth
        found[here] = np.interp(acceptance[here], gives, grid)
    return found
