"""vLLM's own scheduler objects, driven by fabricated model outputs: no weights are loaded and nothing is computed.

The asynchronous loop cannot run on a CPU (the platform switches it off), so its scheduler class is driven by hand as
vLLM's own tests do: two steps are scheduled before the first one's output comes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.frames import CAUSES, COLUMNS, LIMITS, UNKNOWN, Frame
from engine.policy import PolicyState, Resolver
from engine.records import PolicyMode


class Driver:
    """One scheduler with its recorder, and what it sent."""

    def __init__(self, model: Path, *, async_scheduling: bool = False, max_k: int = 4, **engine_args: Any) -> None:
        import torch
        from vllm.engine.arg_utils import EngineArgs
        from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
        from vllm.v1.structured_output import StructuredOutputManager

        from engine.scheduler import build

        speculative = {"method": "draft_model", "model": str(model), "num_speculative_tokens": max_k}
        settings: dict[str, Any] = {
            "max_model_len": 256,
            "max_num_seqs": 300,
            "max_num_batched_tokens": 2048,
            "speculative_config": speculative,
            "per_request_spec_decode_metrics": "detailed",
        } | engine_args
        config = EngineArgs(model=str(model), **settings).create_engine_config()
        config.scheduler_config.async_scheduling = async_scheduling
        config.cache_config.num_gpu_blocks = 20_000
        attention = FullAttentionSpec(block_size=16, num_kv_heads=1, head_size=1, dtype=torch.float32)
        self.scheduler = build(
            vllm_config=config,
            kv_cache_config=KVCacheConfig(
                num_blocks=20_000, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["layer"], attention)]
            ),
            structured_output_manager=StructuredOutputManager(config),
            block_size=16,
            log_stats=True,
        )
        self.frames: list[Frame] = []
        self.scheduler.recorder._send = self.frames.append
        self.max_k = max_k
        self.requests: dict[str, Any] = {}

    def policy(self, mode: PolicyMode, version: int, **state: Any) -> None:
        drafting = self.scheduler.recorder.drafting
        drafting.resolver = Resolver(PolicyState(version=version, policy=mode, **state), self.max_k)

    def add(self, name: str, prompt: int = 5, max_tokens: int = 100, **extra_args: Any) -> Any:
        from vllm import SamplingParams
        from vllm.utils.hashing import sha256
        from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
        from vllm.v1.request import Request

        init_none_hash(sha256)
        sampling = SamplingParams(temperature=0.0, max_tokens=max_tokens, extra_args=extra_args or None)
        request = Request(
            request_id=name,
            prompt_token_ids=list(range(10, 10 + prompt)),
            sampling_params=sampling,
            pooling_params=None,
            block_hasher=get_request_block_hasher(16, sha256),
        )
        self.scheduler.add_request(request)
        self.requests[name] = request
        return request

    def schedule(self) -> Any:
        return self.scheduler.schedule()

    def update(self, output: Any, accepted: dict[str, int] | None = None) -> None:
        """Return `output` as if the target had accepted so many drafts of each request (default: all)."""
        from vllm.v1.outputs import ModelRunnerOutput

        ids = list(output.num_scheduled_tokens)
        sampled = []
        for request_id in ids:
            request = self.scheduler.requests.get(request_id)
            drafts = len(output.scheduled_spec_decode_tokens.get(request_id, ()))
            prefilling = request is not None and self._is_chunk(request, output)
            sampled.append([] if prefilling else [7] * (min((accepted or {}).get(request_id, drafts), drafts) + 1))
        self.scheduler.update_from_output(
            output,
            ModelRunnerOutput(
                req_ids=ids,
                req_id_to_index={request_id: place for place, request_id in enumerate(ids)},
                sampled_token_ids=sampled,
            ),
        )

    def propose(self, drafts: dict[str, Sequence[int]]) -> None:
        from vllm.v1.outputs import DraftTokenIds

        self.scheduler.update_draft_token_ids(DraftTokenIds(list(drafts), [list(tokens) for tokens in drafts.values()]))

    def step(self, drafts: dict[str, Sequence[int]] | None = None, accepted: dict[str, int] | None = None) -> Any:
        """One synchronous step; afterwards the drafter proposes `drafts` (default: the batch K for everybody)."""
        output = self.schedule()
        self.update(output, accepted)
        if drafts is None:
            k = output.num_spec_tokens_to_schedule
            drafts = {name: [3] * k for name in output.num_scheduled_tokens if name in self.scheduler.requests}
        self.propose(drafts)
        return output

    @staticmethod
    def _is_chunk(request: Any, output: Any) -> bool:
        del output
        return bool(request.is_prefill_chunk)

    def rows(self, name: str | None = None) -> list[dict[str, Any]]:
        """All rows sent so far, as dictionaries with the step's own figures beside them."""
        handles = {sequence.seq: sequence.request for frame in self.frames for sequence in frame.sequences}
        found = []
        for frame in self.frames:
            if frame.step is None:
                continue
            matrix = np.frombuffer(frame.step.columns, "<i4").reshape(len(COLUMNS), frame.step.count).T
            for values in matrix.tolist():
                row: dict[str, Any] = dict(zip(COLUMNS, values, strict=True))
                row["seq"] = handles[row["seq"]]
                row["limit"] = LIMITS[row["limit"]]
                row["cause"] = CAUSES[row["cause"]]
                row["proposed"] = None if row["proposed"] == UNKNOWN else row["proposed"]
                row |= {"step": frame.step.step, "k_verify": frame.step.k_verify, "k_draft": frame.step.k_draft}
                row |= {"policy": frame.step.policy, "running": frame.step.running}
                if name is None or row["seq"] == name:
                    found.append(row)
        return found

    def oracle(self, name: str) -> tuple[list[int], list[int]]:
        """vLLM's own per-request detail: drafted and accepted, verification by verification."""
        metrics = self.requests[name].spec_decode_metrics
        return metrics.per_step_drafted, metrics.per_step_accepted
