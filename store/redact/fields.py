"""What a field of a record, a report or a configuration holds, by its name."""

from __future__ import annotations

from typing import Final, get_args

from engine.records import LIMITS, Record

ACTORS: Final = frozenset(("actor", "acknowledged"))
OUR_ACTORS: Final = frozenset(
    ("operator", "policy", "station", "engine", "gateway", "judge", "adaptive", "fallback", "rehearsal", "drill")
)
MODELS: Final = frozenset(("target", "drafter", "model", "model_version", "tokenizer"))
OUR_WORDS: Final = frozenset((
    *LIMITS, "schedule", "free", "fixed", "speculative", "vanilla", "live",
    *(str(kind.__struct_config__.tag) for kind in get_args(Record)),
))  # fmt: skip
"""Values of closed lists, which are left alone even where a tag has the same name."""
KEYED_BY_TAG: Final = frozenset(("workloads", "others"))
"""Objects whose keys are workloads."""
VOCABULARY: Final = frozenset((
    "type", "mode", "limit", "batch_k", "lane", "action", "method", "device", "vllm", "runner", "graph_mode", "boot",
    "kind", "severity", "state", "speedup_state", "context", "temperature", "role", "cause",
))  # fmt: skip
"""Fields with short words of ours or of vLLM's: neither a name nor a tag is looked for in them."""
