"""A stand-in for vLLM that serves completions through the gateway and whose draft-length switch can be broken.

Every open request is a running sequence; a step comes every `STEP_SECONDS`. What the switch does is read from the file
`behaviour` beside the sockets: `honest`, `ignores` (the maximum whatever the policy says), `lags` (three steps late),
`deaf` (hears neither hints nor lanes). With `--vanilla` it has no drafter.
"""

from __future__ import annotations

import http.server
import itertools
import json
import os
import signal
import sys
import threading
import time
import uuid
from collections import deque
from pathlib import Path
from typing import Any

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
from engine.hints import parse_hints
from engine.launch import http_socket
from engine.policy import DraftLength, PolicyState, Resolver
from engine.records import EngineRecord, PolicyMode
from engine.telemetry import Telemetry
from tests.console.scripted_engine import UnixServer

STEP_SECONDS = 0.005
PIECE_SECONDS = 0.05
MAX_K = 0 if "--vanilla" in sys.argv else 4
SEQUENCES = 16
LAG_STEPS = 3


class Sequence:
    def __init__(self, arrived: ArrivedSequence, tokens: int) -> None:
        self.arrived = arrived
        self.left = self.tokens = tokens
        self.asked: DraftLength | None = None
        self.done = threading.Event()


class Engine:
    def __init__(self, telemetry: Path, engine: str) -> None:
        self.lock = threading.Lock()
        self.live: dict[int, Sequence] = {}
        self.arrived: list[ArrivedSequence] = []
        self.finished: list[FinishedSequence] = []
        self.boot = uuid.uuid4().hex[:12]
        self.frame = self.step = self.k_verify = 0
        self.lagging: deque[int] = deque([0] * LAG_STEPS, maxlen=LAG_STEPS + 1)
        self._handles = itertools.count(1)
        self._behaviour = telemetry.with_name("behaviour")
        configured = PolicyMode(mode="static", k=MAX_K) if MAX_K else PolicyMode(mode="off")
        drafter = "ngram" if MAX_K else "none"
        self.resolver = Resolver(PolicyState(version=0, policy=configured), MAX_K)
        self.record = EngineRecord(
            engine=engine, ts=time.time(), vllm="0.32.0", target="scripted", drafter=drafter, method=drafter,
            max_k=MAX_K, batch_k="free", max_num_seqs=SEQUENCES, data_parallel_size=1, device="cpu",
            async_scheduling=False, configured=configured, resolved=configured, boot=self.boot, pid=os.getpid(),
            max_model_len=8192,
        )  # fmt: skip
        self.telemetry = Telemetry(telemetry, engine, self.announcement, self.apply)

    def apply(self, state: PolicyState) -> None:
        self.resolver = Resolver(state, MAX_K)

    def announcement(self) -> Announcement:
        with self.lock:
            sequences = [sequence.arrived for sequence in self.live.values()]
        return Announcement(
            v=WIRE_VERSION, record=self.record, boot=self.boot, frame=self.frame, sequences=sequences,
            policy=self.resolver.version, policy_error=None, frames_dropped=0,
        )  # fmt: skip

    def admit(self, request: str, body: dict[str, Any]) -> Sequence:
        hints = parse_hints(body.get("vllm_xargs"))
        arrived = ArrivedSequence(
            seq=next(self._handles), request=f"{request}-0-{uuid.uuid4().hex[:8]}", ts=time.time(),
            workload=hints.workload, temperature=0.0, prompt_tokens=20,
            disable_speculation=hints.disable_speculation, lane="speculative",
        )  # fmt: skip
        sequence = Sequence(arrived, int(body["max_tokens"]))
        with self.lock:
            self.live[arrived.seq] = sequence
            self.arrived.append(arrived)
        return sequence

    def leave(self, sequence: Sequence, reason: str) -> None:
        with self.lock:
            if self.live.pop(sequence.arrived.seq, None) is not None:
                output = sequence.tokens - sequence.left
                self.finished.append(FinishedSequence(sequence.arrived.seq, time.time(), reason, output))

    def run(self) -> None:
        while True:
            time.sleep(STEP_SECONDS)
            behaviour = self._behaviour.read_text() if self._behaviour.exists() else "honest"
            with self.lock:
                arrived, self.arrived = self.arrived, []
                step = self._one_step(behaviour) if self.live else None
                finished, self.finished = self.finished, []
            if step is not None or arrived or finished:
                self.frame += 1
                frame = Frame(WIRE_VERSION, self.record.engine, self.boot, self.frame, arrived, step, finished)
                self.telemetry.send(frame)

    def _one_step(self, behaviour: str) -> PackedStep:
        self.step += 1
        running = len(self.live)
        resolver = self.resolver
        self.lagging.append(running)
        rows = [self._row(sequence) for sequence in self.live.values()]
        longest = DraftLength(-1, "max")
        for sequence in self.live.values():
            sequence.asked = self._length(resolver, sequence.arrived, running, behaviour)
            longest = max(longest, sequence.asked, key=lambda length: length.k)
        k_verify, self.k_verify = self.k_verify, longest.k
        for sequence in [one for one in self.live.values() if one.left == 0]:
            del self.live[sequence.arrived.seq]
            self.finished.append(FinishedSequence(sequence.arrived.seq, time.time(), "length", sequence.tokens))
            sequence.done.set()
        return PackedStep(
            step=self.step, ts=time.time(), duration_ms=1000 * STEP_SECONDS, k_verify=k_verify, k_draft=longest.k,
            running=running, waiting=0, prefill_tokens=0, probe=None, policy=resolver.version,
            limit_draft=longest.limit, count=len(rows), columns=pack_columns(list(zip(*rows, strict=True))),
        )  # fmt: skip

    def _length(self, resolver: Resolver, arrived: ArrivedSequence, running: int, behaviour: str) -> DraftLength:
        if behaviour == "ignores":
            return DraftLength(MAX_K, "schedule")
        if behaviour == "lags":
            running = max(self.lagging[0], 1)
        deaf = behaviour == "deaf"
        workload = None if deaf else arrived.workload
        return resolver.draft_length(running, workload, arrived.disable_speculation and not deaf, "speculative")

    def _row(self, sequence: Sequence) -> tuple[int, ...]:
        asked = sequence.asked
        k = 0 if asked is None else asked.k
        cause = "prefill" if asked is None else "full" if k else "none"
        accepted = min(k // 2, sequence.left - 1)
        sequence.left -= accepted + 1
        limit = LIMIT_CODE["max" if asked is None else asked.limit]
        context = 20 + sequence.tokens - sequence.left
        return (sequence.arrived.seq, k, limit, k, k, 0, accepted, accepted + 1, context, CAUSE_CODE[cause])


class Api(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    engine: Engine

    def do_GET(self) -> None:
        self._json({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        request = f"cmpl-{uuid.uuid4().hex}"
        sequence = self.engine.admit(request, body)
        if body.get("stream"):
            self._stream(request, sequence)
            return
        sequence.done.wait()
        self._json({"id": request, "choices": [{"text": "…"}], "usage": _usage(sequence)})

    def _stream(self, request: str, sequence: Sequence) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            over = False
            while not over:
                over = sequence.done.wait(PIECE_SECONDS)
                self._piece(json.dumps({"id": request, "choices": [{"text": "…", "delta": {"content": "…"}}]}))
            self._piece(json.dumps({"id": request, "choices": [], "usage": _usage(sequence)}))
            self._piece("[DONE]")
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True
            self.engine.leave(sequence, "abort")

    def _piece(self, data: str) -> None:
        line = f"data: {data}\n\n".encode()
        self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        self.wfile.flush()

    def _json(self, value: Any) -> None:
        text = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def address_string(self) -> str:
        return "unix"

    def log_message(self, *_: object) -> None:
        pass


def _usage(sequence: Sequence) -> dict[str, int]:
    return {"prompt_tokens": sequence.arrived.prompt_tokens, "completion_tokens": sequence.tokens}


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    telemetry, name = Path(os.environ["SPECDECK_SOCKET"]), os.environ["SPECDECK_ENGINE"]
    Api.engine = Engine(telemetry, name)
    socket_path = http_socket(name, telemetry.parent)
    socket_path.unlink(missing_ok=True)
    server = UnixServer(str(socket_path), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Api.engine.run()


if __name__ == "__main__":
    sys.exit(main())
