"""K under the asked policy, row by row: the mode alone, at the batch that was recorded.

Beside the mode only what the request itself says holds (its hint, its lane): the operator's cap and fallback,
workloads' own lanes and what adaptive had found belong to the policy that was in force.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from engine.policy import PolicyError, PolicyState, base_k, resolved_mode, validate
from engine.records import EngineRecord, PolicyMode
from store.counts import Ints
from store.whatif.chunk import Chunk
from store.whatif.figures import WhatIfError
from store.whatif.reading import Steps


class Lengths:
    """K of each row, under one mode, of engines as they would execute it."""

    def __init__(self, mode: PolicyMode, runs: Mapping[int, EngineRecord], steps: Steps) -> None:
        self._by_step = np.zeros(len(steps.id), dtype=np.int64)
        for place, run in enumerate(sorted(runs)):
            of = steps.run == place
            if not of.any():
                continue
            record = runs[run]
            resolved = resolved_mode(mode, record.max_k, record.data_parallel_size)
            sizes, which = np.unique(steps.asked_at[of], return_inverse=True)
            lengths = [min(base_k(resolved, int(size), record.max_k), record.max_k) for size in sizes.tolist()]
            self._by_step[of] = np.array(lengths, dtype=np.int64)[which]

    def of_rows(self, chunk: Chunk) -> Ints:
        """K where each row starts."""
        return np.where(chunk.rows.bars, 0, self._by_step[chunk.rows.step])

    def of_positions(self, chunk: Chunk) -> tuple[Ints, Ints]:
        """K of each position's sequence, and the batch K, in the order of the chunk's layout."""
        return self.of_rows(chunk)[chunk.row], self._by_step[chunk.rows.step[chunk.row]]


def checked(mode: PolicyMode) -> PolicyMode:
    """The mode, once it is sure that it can be meant.

    Raises:
        WhatIfError: it can't.
    """
    try:
        validate(PolicyState(version=0, policy=mode))
    except PolicyError as error:
        raise WhatIfError(str(error)) from error
    return mode


def acting(mode: PolicyMode) -> bool:
    """Whether a controller decides under this mode."""
    return mode.mode == "adaptive" and mode.act is not False


def clamped(mode: PolicyMode, records: Sequence[EngineRecord]) -> list[str]:
    """Why engines would not execute the mode as it is asked for, a sentence for each reason."""
    reasons = {
        f"{record.engine}: {found.reason}"
        for record in records
        if (found := resolved_mode(msgspec.structs.replace(mode, reason=None), record.max_k, record.data_parallel_size))
        and found.reason
    }
    return sorted(reasons)
