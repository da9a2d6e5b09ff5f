"""What vLLM writes, built from counts: answers of /metrics, log lines, answers to requests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

Steps = Sequence[tuple[int, int]]
"""Draft steps as (drafted, accepted)."""


def exposition(*engines: str) -> str:
    """An answer of /metrics that holds what `counters` gives for some engines."""
    return "\n".join(("# HELP vllm:other Something else.", "# TYPE vllm:other gauge", *engines, ""))


def counters(
    engine: str,
    drafts: int,
    draft_tokens: int,
    accepted: int,
    *,
    positions: Sequence[int] = (),
    created: float = 1.7e9,
    **others: float,
) -> str:
    """The series of one engine. `others`: names without `vllm:`, such as `generation_tokens_total`."""
    labels = f'engine="{engine}",model_name="m"'
    lines = [f"vllm:other{{{labels}}} 3.5"]
    values = {"num_drafts": drafts, "num_draft_tokens": draft_tokens, "num_accepted_tokens": accepted}
    for name, value in values.items():
        lines.append(f"vllm:spec_decode_{name}_total{{{labels}}} {float(value)!r}")
        lines.append(f"vllm:spec_decode_{name}_created{{{labels}}} {created!r}")
    lines += [
        f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{{labels},position="{place}"}} {value}'
        for place, value in enumerate(positions)
    ]
    return "\n".join([*lines, *(f"vllm:{name}{{{labels}}} {value}" for name, value in others.items())])


def dump(folder: Path, second: int, text: str) -> Path:
    """A file of /metrics whose name says that it was taken `second` seconds after 1790000000."""
    path = folder / f"metrics-{1_790_000_000 + second}.prom"
    path.write_text(text)
    return path


def draft_line(steps: Steps, k: int, seconds: float = 10.0) -> str:
    """What vLLM logs of these draft steps of at most `k` tokens (formulas of vllm/v1/spec_decode/metrics.py)."""
    drafted, accepted = sum(d for d, _ in steps), sum(a for _, a in steps)
    rates = ", ".join(f"{sum(a > place for _, a in steps) / len(steps):.3f}" for place in range(k))
    acceptance = accepted / drafted * 100 if drafted else float("nan")
    return (
        f"SpecDecoding metrics: Mean acceptance length: {1 + accepted / len(steps):.2f}, "
        f"Accepted throughput: {accepted / seconds:.2f} tokens/s, "
        f"Drafted throughput: {drafted / seconds:.2f} tokens/s, "
        f"Accepted: {accepted} tokens, Drafted: {drafted} tokens, "
        f"Per-position acceptance rate: {rates}, Avg Draft acceptance rate: {acceptance:.1f}%"
    )


def engine_line(engine: int | str = 0, generation: float = 50.0, running: int = 2, waiting: int = 0) -> str:
    """What vLLM logs of an engine's load in each round."""
    name = engine if isinstance(engine, str) else f"Engine {engine:03d}"
    return (
        f"{name}: Avg prompt throughput: 12.5 tokens/s, Avg generation throughput: {generation:.1f} tokens/s, "
        f"Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%"
    )


def logged(stamp: str, message: str, pid: int = 7) -> str:
    """A line of vLLM's log."""
    return f"(APIServer pid={pid}) INFO {stamp} [metrics.py:120] {message}"


def response(steps: Steps, completion_tokens: int | None = None, **changed: Any) -> dict[str, Any]:
    """An answer to a request whose draft steps were these; all their tokens and the prefill's, unless said."""
    tokens = 1 + sum(a + 1 for _, a in steps) if completion_tokens is None else completion_tokens
    speculation: dict[str, Any] = {"num_spec_tokens": 4, "num_spec_steps": len(steps)}
    if steps:
        drafted, accepted = zip(*steps, strict=True)
        speculation |= {"per_step_drafted": list(drafted), "per_step_accepted": list(accepted)}
    fields: dict[str, Any] = {
        "id": "cmpl-1", "object": "text_completion", "created": 1_790_000_000, "model": "SmolLM2",
        "choices": [{"index": 0, "text": "x", "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": tokens, "total_tokens": 100 + tokens},
        "metrics": {"speculative_decoding": speculation},
    }  # fmt: skip
    return fields | changed
