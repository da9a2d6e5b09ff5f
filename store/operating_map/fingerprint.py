"""What an operating map is of: another model, drafter, machine or setting has another map."""

from __future__ import annotations

from typing import Final

import msgspec


class Fingerprint(msgspec.Struct, frozen=True, kw_only=True):
    """`model_version`: target, drafter, method and vLLM, as buckets have it."""

    model_version: str
    vllm: str
    hardware: str
    """Processor or GPUs, and how many threads."""
    topology: str
    """Data, tensor and pipeline parallel sizes, `1/1/1`."""
    max_k: int
    max_num_seqs: int
    max_model_len: int | None = None
    max_num_batched_tokens: int | None = None
    runner: str | None = None
    graph_mode: str | None = None
    async_scheduling: bool = False


_NAMES: Final = {
    "model_version": "model", "vllm": "vLLM", "hardware": "hardware", "topology": "topology",
    "max_k": "largest K", "max_num_seqs": "largest batch", "max_model_len": "longest context",
    "max_num_batched_tokens": "token budget", "runner": "runner", "graph_mode": "graph mode",
    "async_scheduling": "async scheduling",
}  # fmt: skip


def differences(of_map: Fingerprint, now: Fingerprint) -> list[str]:
    """What is not as it was when the map was made, a phrase each; empty: the map is of this engine."""
    return [
        f"{name}: {_shown(getattr(of_map, field))} then, {_shown(getattr(now, field))} now"
        for field, name in _NAMES.items()
        if getattr(of_map, field) != getattr(now, field)
    ]


def _shown(value: object) -> str:
    return "unknown" if value is None else str(value)
