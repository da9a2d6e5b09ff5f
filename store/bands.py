"""The bands of `engine.step_time.bands` in SQL, over the columns of `steps`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from engine.step_time.bands import BIN_RATIO, CONTEXT_EDGES, PREFILL_EDGES, SHORTEST_MS


def _lower_edge(edges: Sequence[int], value: str, unit: str) -> str:
    """The largest of `edges` that is no larger than `value` / `unit`."""
    cases = " ".join(f"WHEN {value} < {upper} * {unit} THEN {lower}" for lower, upper in pairwise(edges))
    return f"CASE {cases} ELSE {edges[-1]} END"


BATCH_BAND: Final = "CASE WHEN decode_rows < 1 THEN 0 ELSE 1 << CAST(ceil(log2(decode_rows)) AS BIGINT) END"
CONTEXT_BAND: Final = (
    f"CASE WHEN decode_rows < 1 THEN 0 ELSE {_lower_edge(CONTEXT_EDGES, 'context_tokens', 'decode_rows::UBIGINT')} END"
)
PREFILL_BAND: Final = _lower_edge(PREFILL_EDGES, "prefill_tokens", "1")
DURATION_BIN: Final = f"floor(ln(greatest(duration_ms, {SHORTEST_MS})) / ln({BIN_RATIO}))::INTEGER"
