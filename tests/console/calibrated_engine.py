"""A stand-in for vLLM in the same process, for the tests of calibration: it answers completions on a unix socket and
sends frames of its steps, all on a clock of its own. It generates nothing; the real engine has its own test."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from console.station.calibration_run import Clock
from console.station.engines import KnownEngine
from engine.frames import (
    CAUSE_CODE,
    LIMIT_CODE,
    WIRE_VERSION,
    Announcement,
    ArrivedSequence,
    FinishedSequence,
    Frame,
    PackedStep,
    pack_columns,
)
from engine.records import EngineRecord, PolicyMode
from tests.console.fake_engine import Call

ADAPTIVE = PolicyMode(mode="adaptive", act=True)
START = time.time() // 1000 * 1000 - 1997
"""Near the present, since a store does not keep what is older; always at the same place in its 10-s cells."""
MAX_K = 4
PROMPT = 30

Heard = Callable[[KnownEngine, Frame | Announcement], None]


def record(boot: str = "b1", **changes: Any) -> EngineRecord:
    fields: dict[str, Any] = {
        "engine": "e0", "ts": START, "vllm": "0.32.0", "target": "t", "drafter": "ngram", "method": "ngram",
        "max_k": MAX_K, "batch_k": "free", "max_num_seqs": 8, "data_parallel_size": 1, "device": "cpu",
        "async_scheduling": False, "configured": ADAPTIVE, "resolved": ADAPTIVE, "boot": boot, "max_model_len": 2048,
    }  # fmt: skip
    return EngineRecord(**(fields | changes))


def step_ms(batch: int, tokens: int, k: int) -> float:
    return 20.0 + 0.5 * batch + 0.8 * tokens + 2.0 * k


@dataclass
class Sequence:
    seq: int
    workload: str
    drafting: bool
    tokens: int
    emitted: int = 0
    prefilled: bool = False


@dataclass(eq=False)
class Request:
    """One HTTP request and its sequences; `over` is set when all of them have ended."""

    sequences: list[Sequence]
    over: asyncio.Event = field(default_factory=asyncio.Event)


class CalibratedEngine:
    """`hear` gets what it says. Time passes only in `clock.sleep`, and what was planned with `at` happens then."""

    def __init__(self, ms: Callable[[int, int, int], float] = step_ms) -> None:
        self.now = START
        self.heard: list[Heard] = []
        self.bodies: list[dict[str, Any]] = []
        self.aborted = 0
        self.refuse: int | None = None
        self.silent = False
        self.known = KnownEngine("e0", owned=True)
        self._ms = ms
        self._requests: list[Request] = []
        self._planned: list[tuple[float, Callable[[], None]]] = []
        self._fresh: list[ArrivedSequence] = []
        self._finished: list[FinishedSequence] = []
        self._seq = self._frame = self._step = 0
        self._k = 0
        self._ready = START
        """When the last step ended, or when there was nothing to serve."""

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now, self.sleep)

    @property
    def idle(self) -> bool:
        return not self._requests

    def boot(self, **changes: Any) -> None:
        """A process begins and announces itself."""
        made = record(**changes)
        self.known.meet(made.boot or "")
        message = Announcement(WIRE_VERSION, made, made.boot or "", self._frame, [], 1, None, 0)
        self.known.take_announcement(message, self.now)
        self._say(message)

    def at(self, seconds: float, what: Callable[[], None]) -> None:
        """`seconds` after the start."""
        self._planned = sorted([*self._planned, (START + seconds, what)], key=lambda planned: planned[0])

    def client(self, tokens: int = 200) -> None:
        """A request of somebody else."""
        self._requests.append(Request([self._arrive("chat", True, tokens)]))

    async def handle(self, call: Call) -> None:
        body = json.loads(call.body)
        self.bodies.append(body)
        if self.refuse is not None:
            await call.respond(b'{"error": {"message": "out of order"}}', status=self.refuse)
            return
        xargs = body["vllm_xargs"]
        drafting, tokens = not xargs["disable_speculation"], body["max_tokens"]
        request = Request([self._arrive(xargs["workload"], drafting, tokens) for _ in body["prompt"]])
        self._requests.append(request)
        left = asyncio.ensure_future(call.client_left())
        over = asyncio.ensure_future(request.over.wait())
        await asyncio.wait({left, over}, return_when=asyncio.FIRST_COMPLETED)
        if over.done():
            await call.respond(b'{"choices": []}')
        else:
            self.aborted += len(request.sequences)
            self._end(request, "abort")
        left.cancel()
        over.cancel()

    async def sleep(self, seconds: float) -> None:
        until = self.now + seconds
        while self._planned and self._planned[0][0] <= until:
            moment, what = self._planned.pop(0)
            self._serve(moment)
            what()
        self._serve(until)
        for _ in range(6):  # what was sent arrives
            await asyncio.sleep(0)

    def _serve(self, until: float) -> None:
        """Steps as long as there is something to serve."""
        while self._requests:
            ms = self._load()[1]
            if self._ready + ms / 1000 > until:
                break
            self._ready += ms / 1000
            self.now = self._ready
            self._one_step(ms)
        self.now = until
        if not self._requests:
            self._ready = until

    def _load(self) -> tuple[int, float]:
        live = [sequence for request in self._requests for sequence in request.sequences]
        k = MAX_K if any(sequence.drafting for sequence in live) else 0
        tokens = sum(1 + (self._k if sequence.drafting and sequence.prefilled else 0) for sequence in live)
        return k, self._ms(len(live), tokens, k)

    def _one_step(self, ms: float) -> None:
        self._step += 1
        live = [sequence for request in self._requests for sequence in request.sequences]
        k, before = self._load()[0], self._k
        rows, prefill = [], 0
        for sequence in live:
            drafted = before if sequence.drafting and sequence.prefilled else 0
            cause = "prefill" if not sequence.prefilled else "full" if drafted else "none"
            prefill += 0 if sequence.prefilled else PROMPT
            emitted = 1 + drafted // 2
            limit = LIMIT_CODE["max" if sequence.drafting else "hint"]
            context = PROMPT + sequence.emitted if sequence.prefilled else 0
            rows.append((
                sequence.seq, drafted, limit, drafted, drafted, 0, drafted // 2, emitted, context, CAUSE_CODE[cause]
            ))  # fmt: skip
            sequence.prefilled = True
            sequence.emitted += emitted
        step = PackedStep(
            self._step, self.now, ms, before, k, len(live), 0, prefill, None, 1, "max", len(rows),
            pack_columns(list(zip(*rows, strict=True))),
        )  # fmt: skip
        self._k = k
        for request in list(self._requests):
            request.sequences = [one for one in request.sequences if not self._finish_if_done(one)]
            if not request.sequences:
                self._end(request, "length")
        self._send(step)

    def _finish_if_done(self, sequence: Sequence) -> bool:
        if sequence.emitted < sequence.tokens:
            return False
        self._finished.append(FinishedSequence(sequence.seq, self.now, "length", sequence.emitted))
        return True

    def _end(self, request: Request, reason: Literal["abort", "length"]) -> None:
        if request in self._requests:
            self._requests.remove(request)
            self._finished += [FinishedSequence(one.seq, self.now, reason, one.emitted) for one in request.sequences]
            request.over.set()

    def _arrive(self, workload: str, drafting: bool, tokens: int) -> Sequence:
        self._seq += 1
        self._fresh.append(
            ArrivedSequence(self._seq, f"r{self._seq}", self.now, workload, 0.0, PROMPT, not drafting, "speculative")
        )
        return Sequence(self._seq, workload, drafting, tokens)

    def _send(self, step: PackedStep) -> None:
        self._frame += 1
        frame = Frame(
            WIRE_VERSION, "e0", self.known.boot or "", self._frame, self._fresh, step, self._finished
        )  # fmt: skip
        self._fresh, self._finished = [], []
        self._say(frame)

    def _say(self, message: Frame | Announcement) -> None:
        for hear in () if self.silent else self.heard:
            hear(self.known, message)
