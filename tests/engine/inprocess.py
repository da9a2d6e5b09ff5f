"""Run one drafter in process on the real engine and write down what specdeck and vLLM each counted.

`python -m tests.engine.inprocess METHOD MODEL OUT`. A process of its own per drafter: vLLM holds its model until the
process ends. In process (no EngineCore process) vLLM's own detail of aborted requests can be read as they are freed.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.drafter import shipped
from engine.frames import CAUSES, COLUMNS, Frame
from engine.policy import PolicyState, Resolver
from engine.records import PolicyMode

MAX_K = 4

CODE = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n\n\ndef mul(a, b):\n    return"
REPEAT = "one two three four five six seven eight nine ten. one two three four five six seven eight nine ten. one two"
CHAT = "Question: What is the capital of France? Answer:"


def speculative_config(method: str, model: Path) -> dict[str, Any]:
    config: dict[str, Any] = {"method": method, "num_speculative_tokens": MAX_K}
    if method == "ngram":
        config |= {"prompt_lookup_max": 4, "prompt_lookup_min": 2}
    if method == "draft_model":
        config["model"] = str(model)
    if method == "eagle":
        from tests.engine.random_head import write_random_head

        config["model"] = str(write_random_head(model, Path(tempfile.mkdtemp()) / "head", method))
    if method == "eagle3":
        config["model"] = str(shipped.head())
    if method == "custom_class":
        config["model"] = "tests.engine.own_number_proposer.OwnNumber"
    if method not in ("suffix", "custom_class"):
        config["num_speculative_tokens_per_batch_size"] = [[1, 16, MAX_K]]
    return config


class Bench:
    """The engine in this process, what its recorder sent, and vLLM's detail of every request as it was freed."""

    def __init__(self, method: str, model: Path, *, record: bool = False, **settings: Any) -> None:
        from vllm import LLM

        self.llm = LLM(
            model=str(model),
            max_model_len=512,
            max_num_seqs=16,
            max_num_batched_tokens=128,
            scheduler_cls="engine.scheduler.build",
            speculative_config=speculative_config(method, model),
            per_request_spec_decode_metrics="detailed",
            seed=0,
            **settings,
        )
        self.engine = self.llm.llm_engine
        self.scheduler = self.engine.engine_core.engine_core.scheduler
        self.frames: list[Frame] = []
        if not record:  # keep the frames here instead of sending them to a station
            self.scheduler.recorder._send = self.frames.append
        self.oracle: dict[str, dict[str, Any]] = {}
        self.preemptions = 0
        self._watch(self.scheduler._free_request)

    def _watch(self, free: Callable[..., Any]) -> None:
        def watched(request: Any, *args: Any, **kwargs: Any) -> Any:
            detail = request.spec_decode_metrics
            self.preemptions += request.num_preemptions
            self.oracle[request.request_id] = {
                "drafted": list(detail.per_step_drafted),
                "accepted": list(detail.per_step_accepted),
                "output_tokens": request.num_output_tokens,
                "preemptions": request.num_preemptions,
                "reason": str(request.get_finished_reason()),
            }
            return free(request, *args, **kwargs)

        self.scheduler._free_request = watched

    def policy(self, k: int, version: int) -> None:
        state = PolicyState(version=version, policy=PolicyMode(mode="static", k=k))
        self.scheduler.recorder.drafting.resolver = Resolver(state, MAX_K)

    def add(self, name: str, prompt: str, **sampling: Any) -> None:
        from vllm import SamplingParams

        self.engine.add_request(name, prompt, SamplingParams(extra_args={"workload": name.split("-")[0]}, **sampling))

    def run(self, each_step: Callable[[int], None] = lambda step: None) -> dict[str, str]:
        texts: dict[str, str] = {}
        step = 0
        while self.engine.has_unfinished_requests():
            for output in self.engine.step():
                texts[output.request_id] = output.outputs[0].text
            step += 1
            each_step(step)
        return texts

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        import numpy as np

        handles = {sequence.seq: sequence.request for frame in self.frames for sequence in frame.sequences}
        rows: dict[str, list[dict[str, Any]]] = {name: [] for name in handles.values()}
        for frame in self.frames:
            if frame.step is not None:
                matrix = np.frombuffer(frame.step.columns, "<i4").reshape(len(COLUMNS), frame.step.count).T
                for values in matrix.tolist():
                    row = dict(zip(COLUMNS, values, strict=True)) | {"k_verify": frame.step.k_verify}
                    row["cause"] = CAUSES[row["cause"]]
                    rows[handles[row["seq"]]].append(row)
        return rows


def mixed(bench: Bench) -> dict[str, str]:
    """Stop strings, stop tokens, cuts, aborts, temperatures, a grammar, chunked prefill and a cached prefix at once."""
    from vllm.sampling_params import StructuredOutputsParams

    bench.add("code-cut", CODE, temperature=0.0, max_tokens=21)
    bench.add("repeat-stopstring", REPEAT, temperature=0.0, max_tokens=60, stop=["seven"])
    bench.add("repeat-abort", REPEAT, temperature=0.0, max_tokens=200, ignore_eos=True)
    bench.add("chat-sampled", CHAT, temperature=0.8, seed=3, max_tokens=30)
    bench.add("chat-stoptoken", CHAT, temperature=0.0, max_tokens=60, stop_token_ids=[198])
    bench.add("chat-long", "word " * 300 + CHAT, temperature=0.8, seed=5, max_tokens=20)
    grammar = StructuredOutputsParams(regex=r"(yes|no|maybe)(, (yes|no|maybe)){10}")
    bench.add("grammar-list", CHAT, temperature=0.0, max_tokens=60, structured_outputs=grammar)

    def each_step(step: int) -> None:
        if step == 12:
            bench.engine.abort_request(["repeat-abort"])
        if step == 6:
            bench.policy(1, 1)
        if step == 14:
            bench.policy(2, 2)
        if step == 20:
            bench.policy(4, 3)
            bench.add("code-cached", CODE, temperature=0.0, max_tokens=24)

    return bench.run(each_step)


def preempted(bench: Bench) -> dict[str, str]:
    """More context than the KV cache holds: the youngest sequences are preempted and start over."""
    for number in range(6):
        bench.add(f"long-{number}", f"{number} " + REPEAT * 3, temperature=0.0, max_tokens=90, ignore_eos=True)
    return bench.run()


def main(method: str, model: str, out: str) -> None:
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    # 10 blocks of 128 tokens leave the six long sequences no room together, and one of them enough.
    # Uncompiled: what is compared are counts of the scheduler, and a compilation takes longer than all the requests.
    bench = Bench(method, Path(model), num_gpu_blocks_override=10, enforce_eager=True)
    texts = mixed(bench)
    texts |= preempted(bench)
    named = {request_id.rpartition("-")[0]: rows for request_id, rows in bench.rows().items()}
    oracle = {request_id.rpartition("-")[0]: detail for request_id, detail in bench.oracle.items()}
    result = {"texts": texts, "rows": named, "oracle": oracle, "preemptions": bench.preemptions}
    Path(out).write_text(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
