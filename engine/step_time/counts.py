"""Step times as they are kept: counts and sums of the steps of one engine under one key. Rows of equal key add up."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from engine.step_time.bands import SHORTEST_MS, batch_band
from engine.step_time.columns import Bools, Floats, Ints, widened

KEYS: Final = ("half", "k_verify", "k_draft", "batch", "context_band", "prefill_band", "duration_bin")
SUMS: Final = ("count", "duration_ms", "tokens", "context", "prefill")


@dataclass(frozen=True)
class StepTimes:
    """Steps of one engine and model version. Arrays of one length: keys int64, sums float64."""

    half: Ints
    """Parity of the 10-s cell that the step ended in, 0 or 1: one half is held against a model of the other."""
    k_verify: Ints
    k_draft: Ints
    batch: Ints
    """Decode rows in the step."""
    context_band: Ints
    prefill_band: Ints
    duration_bin: Ints
    """With the other keys, makes the rows a histogram of durations: medians can be taken from it."""
    count: Floats
    """Steps."""
    duration_ms: Floats
    tokens: Floats
    """Σ over the decode rows of drafted + 1: what the target verified."""
    context: Floats
    """Σ over the decode rows of tokens already computed."""
    prefill: Floats
    """Prompt tokens computed."""

    @classmethod
    def of(cls, **columns: npt.ArrayLike) -> StepTimes:
        """From columns of any numeric type, as a query gives them.

        Raises:
            ValueError: a column is missing, unknown or of another length.
        """
        return cls(*widened(columns, KEYS, SUMS))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.count)

    def take(self, where: Bools) -> StepTimes:
        return StepTimes(*(getattr(self, field.name)[where] for field in fields(self)))

    def usable(self) -> StepTimes:
        """Without rows that hold no step or no time: a clock that stood still tells nothing."""
        timed = (self.duration_ms >= SHORTEST_MS * self.count) & np.isfinite(self.duration_ms)
        return self.take(timed & (self.count > 0))

    @cached_property
    def mean_ms(self) -> Floats:
        """Duration of one step of the row."""
        return self.duration_ms / self.count

    @cached_property
    def batch_band(self) -> Ints:
        return batch_band(self.batch)

    @cached_property
    def steady(self) -> Bools:
        """Decoding only, and as many drafts verified as asked for: no transition, no prefill."""
        return np.asarray((self.k_verify == self.k_draft) & (self.prefill_band == 0) & (self.batch > 0))

    @cached_property
    def trimmed(self) -> Bools:
        """Decoding only and nothing verified, by an engine that drafts all the same."""
        return np.asarray((self.k_verify == 0) & (self.k_draft > 0) & (self.prefill_band == 0) & (self.batch > 0))

    @cached_property
    def clean(self) -> Bools:
        """Vanilla decoding and nothing else: nothing verified, nothing drafted, no prefill."""
        return np.asarray(self.steady & (self.k_draft == 0))
