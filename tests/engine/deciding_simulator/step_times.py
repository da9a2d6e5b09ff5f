"""The step-time model as a station keeps it: counts of all steps so far, fitted again from time to time."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from engine.step_time.bands import context_band, duration_bin, prefill_band
from engine.step_time.counts import KEYS, SUMS, StepTimes
from engine.step_time.model import StepModel, fit_step_model
from tests.engine.deciding_simulator.simulated import Stretch
from tests.engine.deciding_simulator.surface import Surface

Array = npt.NDArray[Any]

CALIBRATED: Final = (1, 2, 4, 8, 16, 32)


class KeptStepTimes:
    """Counts of steps by key. `fixed`: of an engine whose batch K can't move, keyed as the store does it."""

    def __init__(self, fixed: bool = False) -> None:
        self._fixed = fixed
        self._keys = np.empty((len(KEYS), 0), dtype=np.int64)
        self._sums = np.empty((len(SUMS), 0))
        self._fresh: list[tuple[Array, Array]] = []

    def add(self, stretch: Stretch) -> None:
        drafted, emitted = stretch.drafted, stretch.emitted
        steps, rows = drafted.shape
        context = stretch.context.sum() + np.concatenate(([0], emitted[:-1].sum(axis=1).cumsum()))
        k_verify = np.full(steps, stretch.k_verify)
        if self._fixed:
            k_verify = np.ceil(drafted.sum(axis=1) / max(rows, 1)).astype(np.int64)
        self._add(stretch.ts, k_verify, stretch.k_draft, np.full(steps, rows), drafted.sum(axis=1) + rows, context,
                  stretch.prefill, stretch.duration_ms)  # fmt: skip

    def calibrate(self, surface: Surface, max_k: int, seed: int, lengths: tuple[int, ...] | None = None) -> None:
        """A start-up calibration: 40 steps at each batch and K, in two halves of the time."""
        random = np.random.default_rng((seed, 3))
        for k in range(max_k + 1) if lengths is None else lengths:
            for batch in CALIBRATED:
                ones, ts = np.ones(40, dtype=np.int64), np.repeat([0.0, 10.0], 20)
                ms = surface.ms(batch, batch * (1 + k), k, 150 * batch) * np.exp(random.normal(0, surface.noise, 40))
                self._add(
                    ts, ones * k, ones * k, ones * batch, ones * batch * (1 + k), ones * 150 * batch, ones * 0, ms
                )

    def model(self) -> StepModel:
        self._merge()
        return fit_step_model(
            StepTimes.of(**dict(zip(KEYS, self._keys, strict=True)), **dict(zip(SUMS, self._sums, strict=True)))
        )

    def _add(
        self, ts: Array, k_verify: Array, k_draft: Array, batch: Array, tokens: Array, context: Array, prefill: Array,
        ms: Array,
    ) -> None:  # fmt: skip
        whole = context.astype(np.int64)
        keys = np.stack((
            (ts // 10).astype(np.int64) % 2, k_verify, k_draft, batch, context_band(whole, batch),
            prefill_band(prefill), duration_bin(ms),
        ))  # fmt: skip
        self._fresh.append((keys, np.stack((np.ones(len(ms)), ms, tokens, context, prefill)).astype(float)))

    def _merge(self) -> None:
        keys = np.concatenate([self._keys, *(keys for keys, _ in self._fresh)], axis=1)
        sums = np.concatenate([self._sums, *(sums for _, sums in self._fresh)], axis=1)
        self._fresh.clear()
        self._keys, of = np.unique(keys, axis=1, return_inverse=True)
        self._sums = np.stack([np.bincount(of, weights=column) for column in sums])
