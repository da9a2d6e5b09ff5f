"""Bands of load and bins of duration: the keys under which step times are kept.

Each function takes whole numbers of one shape and gives int64 of that shape; its docstring has the same rule in SQL.
Context and prefill bands are named by their lower edge, in tokens.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from engine.step_time.columns import Ints

CONTEXT_EDGES: Final = (0, 256, 1024, 4096, 16384, 65536)
PREFILL_EDGES: Final = (0, 1, 64, 256, 1024, 4096, 16384)

BIN_RATIO: Final = 1.02
"""Upper over lower edge of a bin of durations."""
SHORTEST_MS: Final = 0.001
"""A duration is recorded to the microsecond: a shorter one counts as this."""


def batch_band(batch: npt.ArrayLike) -> Ints:
    """The padded batch: the smallest power of two that is no smaller than `batch` decode rows; 0 for none.

    SQL: `CASE WHEN batch < 1 THEN 0 ELSE 1 << CAST(ceil(log2(batch)) AS BIGINT) END`
    """
    rows = np.asarray(batch, dtype=np.int64)
    _, bits = np.frexp(np.maximum(rows - 1, 0).astype(np.float64))  # exact where a logarithm may round
    return _whole(np.where(rows < 1, 0, np.left_shift(np.int64(1), bits.astype(np.int64))))


def context_band(context: npt.ArrayLike, batch: npt.ArrayLike) -> Ints:
    """The band of the mean context of a decode row; `context` is summed over the step's `batch` decode rows.

    SQL: `CASE WHEN batch < 1 OR context // batch < 256 THEN 0 WHEN context // batch < 1024 THEN 256
    WHEN context // batch < 4096 THEN 1024 WHEN context // batch < 16384 THEN 4096
    WHEN context // batch < 65536 THEN 16384 ELSE 65536 END` (multiplying instead would overflow a narrow column)
    """
    rows = np.asarray(batch, dtype=np.int64)
    mean = np.asarray(context, dtype=np.int64) // np.maximum(rows, 1)
    return _whole(np.where(rows < 1, 0, _lower_edge(CONTEXT_EDGES, mean)))


def prefill_band(prefill: npt.ArrayLike) -> Ints:
    """The band of the prompt tokens computed in a step.

    SQL: `CASE WHEN prefill < 1 THEN 0 WHEN prefill < 64 THEN 1 WHEN prefill < 256 THEN 64
    WHEN prefill < 1024 THEN 256 WHEN prefill < 4096 THEN 1024 WHEN prefill < 16384 THEN 4096 ELSE 16384 END`
    """
    return _lower_edge(PREFILL_EDGES, np.asarray(prefill, dtype=np.int64))


def duration_bin(duration_ms: npt.ArrayLike) -> Ints:
    """The bin of 2 % that a step's duration falls into: ⌊ln(ms) / ln(1.02)⌋.

    Two implementations of the logarithm may put a duration that lies on an edge into different bins. That is harmless:
    the bin only keys, the duration itself is summed beside it.

    SQL: `CAST(floor(ln(greatest(duration_ms, 0.001)) / ln(1.02)) AS INTEGER)`
    """
    shortest = np.maximum(np.asarray(duration_ms, dtype=np.float64), SHORTEST_MS)
    return _whole(np.floor(np.log(shortest) / np.log(BIN_RATIO)))


def _lower_edge(edges: tuple[int, ...], values: Ints) -> Ints:
    places = np.searchsorted(edges, values, side="right") - 1
    return _whole(np.asarray(edges)[np.maximum(places, 0)])


def _whole(values: npt.ArrayLike) -> Ints:
    return np.asarray(values).astype(np.int64)
