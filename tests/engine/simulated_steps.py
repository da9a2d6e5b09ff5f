"""Steps of an engine whose costs are known, added up as a store keeps them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.step_time.bands import batch_band, context_band, duration_bin, prefill_band
from engine.step_time.cells import Cells
from engine.step_time.counts import KEYS, StepTimes
from engine.step_time.fit import Coefficients
from engine.step_time.model import StepModel

Array = npt.NDArray[Any]

TRUTH = Coefficients(constant=20.0, batch=1.5, tokens=0.8, context=0.002, prefill=0.12, passes=3.0)

EXACT = 1e-9
"""Relative error of a cell that is known as well as can be."""


class Steps(NamedTuple):
    """One entry a step. `context` is summed over the decode rows, `batch` of them."""

    cell: Array
    k_verify: Array
    k_draft: Array
    batch: Array
    tokens: Array
    context: Array
    prefill: Array
    ms: Array

    def take(self, where: Array) -> Steps:
        return Steps(*(column[where] for column in self))

    def slower(self, factor: npt.ArrayLike) -> Steps:
        return self._replace(ms=self.ms * factor)


def steps(batch: npt.ArrayLike, context: npt.ArrayLike = 400, ms: npt.ArrayLike | None = None, **columns: Any) -> Steps:
    """Steps one by one, 50 to a cell of time; vanilla, with 400 tokens of context a row, as long as TRUTH says."""
    shape = np.broadcast(batch, context, *columns.values()).shape or (1,)
    rows, mean, k, prefill = (
        np.broadcast_to(np.asarray(column), shape).astype(np.int64)
        for column in (batch, context, columns.get("k", 0), columns.get("prefill", 0))
    )
    tokens = rows * (1 + k)
    took = TRUTH.ms(rows, tokens, rows * mean, prefill, k) if ms is None else np.broadcast_to(np.asarray(ms), shape)
    cell = np.broadcast_to(columns.get("cell", np.arange(len(rows)) // 50), shape)
    return Steps(cell, k, k, rows, tokens, rows * mean, prefill, took.astype(float))


def traffic(seed: int, number: int, *, noise: float = 0.1, outliers: float = 0.01) -> Steps:
    """A day's mix: K 0, 2 and 4 by stretches of time, batches of 1 to 32, a prompt now and then, and steps that take 50
    times as long as they should."""
    random = np.random.default_rng(seed)
    cell = np.arange(number) // 50
    k = np.where(cell % 7 < 3, 0, np.where(cell % 7 < 5, 2, 4))
    loads = random.uniform(0, np.log(32), cell[-1] + 1)
    batch = np.clip(np.exp(loads[cell] + random.normal(0, 0.2, number)).round(), 1, 32)
    context = np.exp(random.uniform(np.log(50), np.log(6000), number))
    prefill = np.where(random.random(number) < 0.08, np.exp(random.uniform(1, 7, number)), 0)
    planned = steps(batch, context, k=k, prefill=prefill, cell=cell)
    late = np.where(random.random(number) < outliers, 50, 1)
    return planned.slower(np.exp(random.normal(0, noise, number)) * late)


def one_row_each(steps: Steps) -> StepTimes:
    return StepTimes.of(
        **dict(zip(KEYS, _keys(steps), strict=True)), count=np.ones(len(steps.ms)), duration_ms=steps.ms,
        tokens=steps.tokens, context=steps.context, prefill=steps.prefill,
    )  # fmt: skip


def added_up(steps: Steps) -> StepTimes:
    """One row a key."""
    keys, row = np.unique(np.stack(_keys(steps)), axis=1, return_inverse=True)
    sums = {
        name: np.bincount(row, weights=column)
        for name, column in (
            ("count", np.ones(len(steps.ms))), ("duration_ms", steps.ms), ("tokens", steps.tokens),
            ("context", steps.context), ("prefill", steps.prefill),
        )
    }  # fmt: skip
    return StepTimes.of(**dict(zip(KEYS, keys, strict=True)), **sums)


def known_model(
    coefficients: Coefficients,
    cells: dict[tuple[int, int], tuple[float, float]],
    error: float | None = 0.0,
    clean_steps: int = 1000,
) -> StepModel:
    """A model of given costs, with (factor, relative error) of the vanilla cells (batch band, context band)."""
    table = sorted((batch << 20 | context, values) for (batch, context), values in cells.items())
    return StepModel(
        coefficients,
        Cells(
            np.array([code for code, _ in table], dtype=np.int64),
            np.full(len(table), 1000.0),
            np.array([factor for _, (factor, _) in table]),
            np.array([error for _, (_, error) in table]),
        ),
        clean_steps,
        drafting_steps=1000,
        trimmed_steps=0,
        error=error,
    )


def _keys(steps: Steps) -> tuple[Array, ...]:
    return (
        steps.cell % 2, steps.k_verify, steps.k_draft, steps.batch, context_band(steps.context, steps.batch),
        prefill_band(steps.prefill), duration_bin(steps.ms),
    )  # fmt: skip


def band(batch: int, context: int) -> tuple[int, int]:
    """The cell of a load; `context` summed over the decode rows."""
    return int(batch_band(batch)), int(context_band(context, batch))
