"""Takes the fingerprint of an engine."""

from __future__ import annotations

from engine.records import EngineRecord
from store.buckets import model_version
from store.operating_map.fingerprint import Fingerprint


def fingerprint(record: EngineRecord, hardware: str) -> Fingerprint:
    """Of an engine as it runs on `hardware`."""
    parallel = (record.data_parallel_size, record.tensor_parallel_size, record.pipeline_parallel_size)
    return Fingerprint(
        model_version=model_version(record),
        vllm=record.vllm,
        hardware=hardware,
        topology="/".join(map(str, parallel)),
        max_k=record.max_k,
        max_num_seqs=record.max_num_seqs,
        max_model_len=record.max_model_len,
        max_num_batched_tokens=record.max_num_batched_tokens,
        runner=record.runner,
        graph_mode=record.graph_mode,
        async_scheduling=record.async_scheduling,
    )
