"""What vanilla would have needed for the tokens of a bucket, held against the time they took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from engine.step_time.columns import Floats, Groups, Ints, widened
from engine.step_time.model import StepModel

KEYS: Final = ("cell", "batch_band", "context_band")
SUMS: Final = ("rows", "emitted", "duration_ms", "emitted_batch", "emitted_context", "prefill")


@dataclass(frozen=True)
class LoadSums:
    """Sums over decode rows of one engine, by time and load. Rows of equal key add up: several buckets of an engine are
    pooled by putting their rows one after the other. Arrays of one length: keys int64, sums float64."""

    cell: Ints
    """Stretch of time: the rows of a step share its duration, so a stretch counts as one observation."""
    batch_band: Ints
    context_band: Ints
    rows: Floats
    """Decode rows."""
    emitted: Floats
    """Σ e."""
    duration_ms: Floats
    """Σ of the duration of the row's step."""
    emitted_batch: Floats
    """Σ e · decode rows of the step."""
    emitted_context: Floats
    """Σ e · tokens already computed, summed over the decode rows of the step."""
    prefill: Floats
    """Σ of the prompt tokens computed in the row's step."""

    @classmethod
    def of(cls, **columns: npt.ArrayLike) -> LoadSums:
        """From columns of any numeric type, as a query gives them.

        Raises:
            ValueError: a column is missing, unknown or of another length.
        """
        return cls(*widened(columns, KEYS, SUMS))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Account:
    """Gained and taken by one engine: one entry for each stretch of time, ascending; none while the engine's model
    knows nothing of vanilla."""

    cell: Ints
    gained_ms: Floats
    """Σ (e·v + p): what vanilla would have needed for the same tokens."""
    taken_ms: Floats
    """Σ t."""
    rows: int
    """Decode rows."""
    total_ms: float
    """Σ t, whether or not anything is known of vanilla."""
    measured_ms: float
    """The part of `total_ms` at loads whose vanilla-equivalent can be trusted."""
    error_ms: float
    """Standard error of Σ gained that the calibration of v leaves."""


def account(sums: LoadSums, model: StepModel | None) -> Account:
    """Hold rows of one engine against its model (None: there is none yet)."""
    rows, total = int(sums.rows.sum()), float(sums.duration_ms.sum())
    vanilla = None if model is None else model.vanilla_totals(
        sums.batch_band, sums.context_band, sums.emitted, sums.emitted_batch, sums.emitted_context
    )  # fmt: skip
    if model is None or vanilla is None:
        return Account(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0), rows, total, 0.0, 0.0)
    cell, of = np.unique(sums.cell, return_inverse=True)
    stretches, gained = Groups(of, len(cell)), vanilla + model.prefill_ms(sums.prefill)
    return Account(
        cell,
        stretches.sums(gained),
        stretches.sums(sums.duration_ms),
        rows,
        total,
        model.measured_time(sums.batch_band, sums.context_band, sums.duration_ms),
        model.vanilla_error(sums.batch_band, sums.context_band, vanilla),
    )
