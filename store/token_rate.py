"""Tokens committed in each of the last seconds, for the rate of right now."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from store.metrics import divided
from store.rowbatch import EMITTED, RowBatch

_SECOND_BINS: Final = 120
RATE_SECONDS: Final = 10
"""The rate of right now is over so many whole seconds."""


class TokenRate:
    def __init__(self) -> None:
        self._seconds: dict[int, int] = {}

    def add(self, batch: RowBatch) -> None:
        seconds, place = np.unique(batch.raw.ts.astype(np.int64), return_inverse=True)
        emitted = np.bincount(place, weights=batch.raw.matrix[EMITTED])
        for second, tokens in zip(seconds.tolist(), emitted.tolist(), strict=True):
            self._seconds[second] = self._seconds.get(second, 0) + int(tokens)
        while len(self._seconds) > _SECOND_BINS:
            del self._seconds[min(self._seconds)]

    def restore(self, seconds: Mapping[int, int]) -> None:
        """Tokens by second, before anything is added."""
        self._seconds |= seconds

    def over(self, recorded_from: float, now: float, seconds: int) -> float | None:
        """Tokens a second of the last whole `seconds`, of those that were recorded; None before there is one."""
        end = math.floor(now)
        start = max(end - seconds, math.floor(recorded_from))
        emitted = sum(tokens for second, tokens in self._seconds.items() if start <= second < end)
        return divided(emitted, max(0, end - start))
