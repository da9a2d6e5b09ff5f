"""How long a step takes: the true surface t(n, tokens, K), after a 135M model with a small head on two cores.

Tokens/s without drafts and with K = 1, 2, 4 at batch 1, 4, 16 there: 31 38 45 39, 110 116 104 86, 275 241 200 145.
Steps vary by themselves, a few take far too long, and the whole machine is slower at some times than at others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_DRIFT_SECONDS = 60.0
_DRIFT_CELLS = 4096


@dataclass(frozen=True)
class Surface:
    """Milliseconds. The drafter's passes cost more in a large batch: no model of separate parts is exactly right."""

    constant: float = 29.0
    token: float = 1.85
    passing: float = 1.5
    passing_row: float = 0.15
    context: float = 0.0005
    prefill: float = 0.10
    noise: float = 0.08
    late: float = 0.002
    """Share of steps that take five times as long."""
    drift: float = 0.08
    """Standard deviation of the machine's slow changes, over half an hour."""

    def ms(self, batch: npt.ArrayLike, tokens: npt.ArrayLike, passes: npt.ArrayLike, context: npt.ArrayLike) -> Floats:
        n, k = np.asarray(batch, dtype=float), np.asarray(passes, dtype=float)
        decode = (
            self.constant + self.token * np.asarray(tokens, dtype=float) + k * (self.passing + self.passing_row * n)
        )
        return np.asarray(decode + self.context * np.asarray(context, dtype=float))


class Drift:
    """The machine's speed over time, as a factor: equal for all runs of one seed."""

    def __init__(self, seed: int, size: float) -> None:
        random = np.random.default_rng((seed, 77))
        keep = np.exp(-_DRIFT_SECONDS / 1800)
        steps = random.normal(0, size * np.sqrt(1 - keep**2), _DRIFT_CELLS)
        level, levels = 0.0, []
        for step in steps:
            level = keep * level + step
            levels.append(level)
        self._factors = np.exp(levels).tolist()

    def at(self, ts: float) -> float:
        return float(self._factors[int(ts // _DRIFT_SECONDS) % _DRIFT_CELLS])
