"""The process of one arm (`…evaluation.arms`): an engine here, its recorder's frames kept here, blocks on stdin.

The draft length is set between blocks as the policy sets it in service, and acceptance is read from the recorder's
rows: what is reported is what was executed.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO

import msgspec

from engine.drafter.chat import as_asked
from engine.drafter.evaluation.acceptance import Verification
from engine.drafter.evaluation.arms import Ask, Block, Done, Opening, Ready, Served
from engine.frames import CAUSE_CODE, COLUMNS, Frame
from engine.launch import SCHEDULER
from engine.policy import PolicyState, Resolver
from engine.records import PolicyMode


class Engine:
    """vLLM in this process, and our recorder's frames of the block at hand."""

    def __init__(self, what: Opening) -> None:
        from vllm import LLM

        llm: Any = LLM(**what.settings, scheduler_cls=SCHEDULER)
        self._engine = llm.llm_engine
        self._tokenizer = llm.get_tokenizer()
        self._recorder = self._engine.engine_core.engine_core.scheduler.recorder
        self._frames: list[Frame] = []
        self._recorder.divert(self._frames.append)
        self._max_k = what.max_k
        self._version = 0

    def serve(self, block: Block) -> Done:
        self._frames.clear()
        self._set(block.k)
        queue = _Queue(self._engine, block, [self._ids(ask) for ask in block.asks])
        tokens, seconds = queue.run()
        rows = verifications(self._frames)
        served = [
            msgspec.structs.replace(queue.served[number], verifications=rows.get(str(number), []))
            for number in range(len(block.asks))
        ]
        return Done(served, tokens, seconds)

    def _set(self, k: int) -> None:
        """From here on draft `k` tokens: nothing is under way between blocks."""
        if self._max_k:
            self._version += 1
            state = PolicyState(version=self._version, policy=PolicyMode(mode="static", k=k))
            self._recorder.drafting.resolver = Resolver(state, self._max_k)

    def _ids(self, ask: Ask) -> list[int]:
        return as_asked(self._tokenizer, ask.prompt) if ask.chat else list(self._tokenizer(ask.prompt)["input_ids"])


class _Queue:
    """The requests of one block on their way through the engine."""

    def __init__(self, engine: Any, block: Block, ids: list[list[int]]) -> None:
        self._engine = engine
        self._batch = block.batch
        self._waiting = deque(enumerate(zip(block.asks, ids, strict=True)))
        self._lengths: dict[int, int] = {}
        self._under_way = 0
        self.served: dict[int, Served] = {}

    def run(self) -> tuple[int, float]:
        """To the end of all; returns tokens and seconds until the batch could no longer be filled."""
        full: tuple[int, float] | None = None
        started = time.perf_counter()
        self._fill()
        while self._under_way:
            for output in self._engine.step():
                self._take(output)
            self._fill()
            if full is None and self._under_way < self._batch:
                full = sum(self._lengths.values()), time.perf_counter() - started
        return full or (0, 0.0)

    def _fill(self) -> None:
        while self._waiting and self._under_way < self._batch:
            number, (ask, ids) = self._waiting.popleft()
            refusal = self._add(number, ask, ids)
            if refusal is None:
                self._under_way += 1
            else:
                self.served[number] = Served(refusal=refusal)

    def _add(self, number: int, ask: Ask, ids: list[int]) -> str | None:
        """Why vLLM refuses the request, or None."""
        from vllm import SamplingParams
        from vllm.exceptions import VLLMClientError

        try:
            self._engine.add_request(str(number), {"prompt_token_ids": ids}, SamplingParams(**ask.sampling))
        except (VLLMClientError, ValueError) as error:
            return str(error) or type(error).__name__
        return None

    def _take(self, output: Any) -> None:
        number, completion = int(output.request_id), output.outputs[0]
        self._lengths[number] = len(completion.token_ids)
        if output.finished:
            self._under_way -= 1
            self.served[number] = _served(completion)


def verifications(frames: Iterable[Frame]) -> dict[str, list[Verification]]:
    """The draft steps of each request, by the id that it was added with, in the order in which they ran."""
    requests: dict[int, str] = {}
    found: dict[str, list[Verification]] = {}
    for frame in frames:
        for arrived in frame.sequences:
            requests[arrived.seq] = arrived.request.rpartition("-")[0]  # vLLM appends a random part to every id
        if frame.step is None:
            continue
        columns = _columns(frame.step.columns, frame.step.count)
        for seq, drafted, accepted, cause in zip(
            columns["seq"], columns["drafted"], columns["accepted"], columns["cause"], strict=True
        ):
            if drafted and cause != CAUSE_CODE["prefill"]:
                found.setdefault(requests[seq], []).append((drafted, accepted))
    return found


def _columns(packed: bytes, count: int) -> dict[str, Sequence[int]]:
    values = memoryview(packed).cast("i")  # little-endian, as is every machine that vLLM runs on
    return {name: values[place * count : (place + 1) * count] for place, name in enumerate(COLUMNS)}


def _served(output: Any) -> Served:
    tokens = list(output.token_ids)
    return Served(tokens, output.text, str(output.finish_reason), top=[_top(one) for one in output.logprobs or ()])


def _top(logprobs: Any) -> list[tuple[int, float]]:
    """Most probable first."""
    return sorted(((token, found.logprob) for token, found in logprobs.items()), key=lambda pair: -pair[1])


def main(lines: BinaryIO, replies: BinaryIO) -> None:
    engine = Engine(msgspec.json.decode(lines.readline(), type=Opening))
    _reply(replies, Ready(_vllm_version(), _device()))
    for line in lines:
        _reply(replies, engine.serve(msgspec.json.decode(line, type=Block)))


def _reply(replies: BinaryIO, message: Ready | Done) -> None:
    replies.write(msgspec.json.encode(message) + b"\n")
    replies.flush()


def _vllm_version() -> str:
    import vllm

    return str(vllm.__version__)


def _device() -> str:
    import torch

    return str(torch.cuda.get_device_name()) if torch.cuda.is_available() else ""


def _own_stdout() -> BinaryIO:
    """The pipe to our parent; what vLLM prints goes to stderr instead."""
    pipe = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(pipe, "wb")


if __name__ == "__main__":
    try:
        main(sys.stdin.buffer, _own_stdout())
    except (KeyboardInterrupt, BrokenPipeError):  # our parent was interrupted, or is gone
        sys.exit(1)
