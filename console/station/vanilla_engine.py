"""The engine without speculation that may run beside the first one: what both are started with, so that they share."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from engine.launch import EngineSpec

GPU_MEMORY: Final = 0.45
"""Share of each GPU's memory for each of two engines: half of what vLLM takes when it is alone there."""

_NEEDS_SPECULATION: Final = "--per-request-spec-decode-metrics"
"""vLLM refuses it in an engine that does not draft."""


def halved(spec: EngineSpec) -> EngineSpec:
    """`spec` for an engine that shares its machine with another: half the cores and half the memory of a GPU."""
    return msgspec.structs.replace(spec, threads=half_the_cores(), gpu_memory=GPU_MEMORY)


def without_speculation(spec: EngineSpec, engine: str) -> EngineSpec:
    """The same target under the id `engine`, with our scheduler and no drafter: its steps are recorded too."""
    return msgspec.structs.replace(
        spec,
        engine=engine,
        drafter="none",
        method=None,
        max_k=0,
        per_request_metrics="none",
        speculative_extra={},
        extra_args=tuple(arguments_without_speculation(spec.extra_args)),
    )


def arguments_without_speculation(arguments: Iterable[str]) -> list[str]:
    """Arguments for vLLM, but for what it refuses in an engine that does not draft."""
    return list(_without_option(arguments, _NEEDS_SPECULATION))


def half_the_cores() -> int:
    """OpenMP threads for each of two engines on the cores that this process may use; at least 1."""
    return max(1, len(os.sched_getaffinity(0)) // 2)


def _without_option(arguments: Iterable[str], name: str) -> Iterator[str]:
    """`arguments` without the option `name` and its value, in either spelling."""
    value_follows = False
    for argument in arguments:
        option, equals, _ = argument.partition("=")
        if value_follows:
            value_follows = False
        elif option.replace("_", "-") == name:
            value_follows = not equals
        else:
            yield argument
