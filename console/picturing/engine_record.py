"""What an engine's own record says of it, as the feed tells it: of a station's engines and of a replay's alike."""

from __future__ import annotations

from typing import Any, Final

from engine.records import EngineRecord

_SAME: Final = (
    "target", "drafter", "method", "vllm", "device", "max_k", "max_num_seqs", "batch_k", "async_scheduling",
    "data_parallel_size", "max_model_len",
)  # fmt: skip
"""Fields that an `EngineView` has by the same name."""


def told_by(record: EngineRecord) -> dict[str, Any]:
    """Fields of an `EngineView`."""
    return {"started": record.ts} | {name: getattr(record, name) for name in _SAME}
