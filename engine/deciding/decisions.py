"""What comes out: decisions with their numbers, and later what became of them. One sentence of each for the history."""

from __future__ import annotations

from typing import Literal

import msgspec

from engine.intervals import Interval
from engine.policy import WorkloadPolicy

Action = Literal["k", "fallback", "recover", "reset"]
Basis = Literal["measured", "remembered", "expected"]
"""What is known of the new K: drafted lately; drafted a while ago; never, or too long ago: to be found out."""


class Decision(msgspec.Struct, frozen=True):
    """A change of one workload. Gains are relative: 0.06 is 6 % more tokens per busy second."""

    id: int
    ts: float
    workload: str
    action: Action
    """`k`: tier 1. `fallback`, `recover`: tier 2. `reset`: what was decided for another model version is dropped."""
    executed: bool
    """False: advice; the policy stays as it is."""
    before: WorkloadPolicy
    after: WorkloadPolicy
    k_before: int
    """K in effect at the commonest batch, schedule and cap applied, …"""
    k_after: int
    """… and what it becomes."""
    predicted: float | None = None
    """Gain of the plan that this change is part of: R after / R before − 1. None for `reset`."""
    basis: Basis = "measured"
    marginal: float | None = None
    """Marginal gain that tier 2 judged: R with the workload's drafts / R without."""
    low: float | None = None
    high: float | None = None
    """Bounds of the marginal gain."""
    rows: float = 0.0
    """n_w: its mean rows a step."""
    batch: float = 0.0
    """n: mean decode rows of a step."""
    hazards: tuple[float, ...] = ()
    """g_1, g_2, … that were used."""
    sequences: int = 0
    """Sequences behind them."""
    others: dict[str, int] = {}
    """K of the other workloads in the plan, where it differs from now."""

    @property
    def text(self) -> str:
        """One sentence: `code K 4→2, predicted +6 %`."""
        name, change = self.workload, f"K {self.k_before}→{self.k_after}"
        verb = "" if self.executed else "advice: "
        if self.action == "reset":
            return f"{verb}{name} starts again: another model version"
        bounds = f"{_times(self.marginal)} ({_times(self.low)} to {_times(self.high)})"
        if self.action == "fallback":
            return f"{verb}{name} {change}, its drafts bring {bounds} at K=1"
        if self.action == "recover":
            return f"{verb}{name} {change}, its drafts bring {bounds} again"
        trial = ", to find out" if self.basis == "expected" else ""
        return f"{verb}{name} {change}, predicted {_percent(self.predicted)}{trial}"


class Score(msgspec.Struct, frozen=True):
    """A decision held against what happened."""

    decision: int
    ts: float
    workload: str
    predicted: float
    observed: float
    """Gain, as `Decision.predicted`."""
    basis: Literal["executed", "estimated"]
    """`executed`: tokens per busy second after over before, at the load of after. `estimated`: what the acceptance and
    step times measured since say it would have been."""
    steps: int
    """Steps since the decision."""


class Bounded(msgspec.Struct, frozen=True):
    """A marginal gain with its interval; None for the interval where too little was seen."""

    value: float
    interval: Interval | None


def _percent(gain: float | None) -> str:
    return "—" if gain is None else f"{100 * gain:+.0f} %"


def _times(ratio: float | None) -> str:
    return "—" if ratio is None else f"×{ratio:.2f}"
