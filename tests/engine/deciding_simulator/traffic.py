"""Who asks for what, and how well each workload's drafts are accepted, as it may change over time."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from math import log
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FRIENDLY = (0.85, 0.80, 0.78, 0.75)
MIDDLING = (0.50, 0.45, 0.42, 0.40)
HOSTILE = (0.05, 0.05, 0.05, 0.05)


class From(NamedTuple):
    """What holds from a moment on."""

    ts: float
    value: tuple[float, ...]


@dataclass(frozen=True)
class Workload:
    name: str
    hazards: tuple[From, ...] = (From(0.0, FRIENDLY),)
    """g_1, g_2, … of a middling sequence; the first entry begins at 0."""
    running: tuple[From, ...] = (From(0.0, (1.0,)),)
    """Sequences kept running: each that ends is followed by another at once. Empty for random arrivals only."""
    arrivals: tuple[From, ...] = ()
    """Random arrivals, requests per second."""
    proposes: float = 1.0
    """Share of steps in which the drafter finds anything to propose."""
    spread: float = 0.4
    """Standard deviation between sequences, on the logit of every hazard."""
    tokens: float = 120.0
    """Median length of an answer."""
    length_spread: float = 0.6
    """Standard deviation of its logarithm."""
    prompt: int = 100

    def hazards_at(self, ts: float) -> Floats:
        return np.array(_at(self.hazards, ts))

    def running_at(self, ts: float) -> int:
        return int(_at(self.running, ts)[0]) if self.running else 0

    def rate_at(self, ts: float) -> float:
        return _at(self.arrivals, ts)[0] if self.arrivals else 0.0

    def changes(self) -> list[float]:
        """Moments at which anything of it changes."""
        return [entry.ts for entries in (self.hazards, self.running, self.arrivals) for entry in entries]


def steady(hazards: tuple[float, ...]) -> tuple[From, ...]:
    return (From(0.0, hazards),)


def kept(number: float) -> tuple[From, ...]:
    return (From(0.0, (number,)),)


def stepping(*levels: float, seconds: float, rounds: int = 1) -> tuple[From, ...]:
    """Levels that last for `seconds` each, again and again."""
    return tuple(From(place * seconds, (level,)) for place, level in enumerate(levels * rounds))


def flipping(*hazards: tuple[float, ...], seconds: float) -> tuple[From, ...]:
    return tuple(From(place * seconds, value) for place, value in enumerate(hazards))


def with_offset(hazards: Floats, offset: float) -> Floats:
    """The hazards of a sequence that lies `offset` from the middle on the logit."""
    held = np.clip(hazards, 1e-9, 1 - 1e-9)
    return np.asarray(1 / (1 + (1 / held - 1) * np.exp(-offset)))


def _at(entries: tuple[From, ...], ts: float) -> tuple[float, ...]:
    return entries[max(0, bisect_right(entries, ts, key=lambda entry: entry.ts) - 1)].value


def log_tokens(workload: Workload) -> float:
    return log(workload.tokens)
