"""A stand-in for vLLM, run as a process of its own: it speaks the real telemetry and policy sockets, answers
`/health`, and to a request with its own id and what it was asked: it generates nothing. The tests that use it are about
the station; the real engine has its own.

It serves `LIVE` sequences without end, alternating two workloads, one step every `STEP_SECONDS`, and drafts what the
policy it received says; with `--vanilla` it has no drafter. Children named like vLLM's can be killed one by one.
"""

from __future__ import annotations

import http.server
import json
import os
import signal
import socketserver
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

from engine.frames import (
    CAUSE_CODE,
    LIMIT_CODE,
    WIRE_VERSION,
    Announcement,
    ArrivedSequence,
    Frame,
    PackedStep,
    pack_columns,
)
from engine.launch import http_socket
from engine.policy import PolicyState, Resolver
from engine.records import EngineRecord, PolicyMode
from engine.telemetry import Telemetry

STEP_SECONDS = 0.02
MAX_K = 4
LIVE = 2


class Script:
    def __init__(self, telemetry: Path, engine: str, max_k: int) -> None:
        self.max_k = max_k
        self.boot = uuid.uuid4().hex[:12]
        self.frame = 0
        self.step = 0
        configured = PolicyMode(mode="static", k=max_k) if max_k else PolicyMode(mode="off")
        drafter = "ngram" if max_k else "none"
        self.resolver = Resolver(PolicyState(version=0, policy=configured), max_k)
        self.record = EngineRecord(
            engine=engine, ts=time.time(), vllm="0.32.0", target="scripted", drafter=drafter, method=drafter,
            max_k=max_k, batch_k="free", max_num_seqs=8, data_parallel_size=1, device="cpu", async_scheduling=False,
            configured=configured, resolved=configured, boot=self.boot, pid=os.getpid(),
        )  # fmt: skip
        self.sequences = [
            ArrivedSequence(
                seq=number, request=f"r{number}", ts=time.time(), workload=("code", "chat")[number % 2],
                temperature=0.0, prompt_tokens=20, disable_speculation=False, lane="speculative",
            )
            for number in range(LIVE)
        ]  # fmt: skip
        self.telemetry = Telemetry(telemetry, engine, self.announcement, self.apply)

    def apply(self, state: PolicyState) -> None:
        if state.version != self.resolver.version or state != self.resolver.state:
            self.resolver = Resolver(state, self.max_k)

    def announcement(self) -> Announcement:
        return Announcement(
            v=WIRE_VERSION, record=self.record, boot=self.boot, frame=self.frame, sequences=self.sequences,
            policy=self.resolver.version, policy_error=None, frames_dropped=0,
        )  # fmt: skip

    def run(self) -> None:
        self.telemetry.send(self._frame(None, self.sequences))
        while True:
            time.sleep(STEP_SECONDS)
            self.telemetry.send(self._frame(self._one_step(), []))

    def _frame(self, step: PackedStep | None, arrived: list[ArrivedSequence]) -> Frame:
        self.frame += 1
        return Frame(WIRE_VERSION, self.record.engine, self.boot, self.frame, arrived, step, [])

    def _one_step(self) -> PackedStep:
        self.step += 1
        chosen = self.resolver.draft_length(LIVE, None, False, "speculative")
        accepted = chosen.k // 2
        cause = CAUSE_CODE["full" if chosen.k else "none"]
        row = (chosen.k, LIMIT_CODE[chosen.limit], chosen.k, chosen.k, 0, accepted, accepted + 1, 100, cause)
        columns = [[sequence.seq for sequence in self.sequences], *([value] * LIVE for value in row)]
        return PackedStep(
            step=self.step, ts=time.time(), duration_ms=1000 * STEP_SECONDS, k_verify=chosen.k, k_draft=chosen.k,
            running=LIVE, waiting=0, prefill_tokens=0, probe=None, policy=self.resolver.version,
            limit_draft=chosen.limit, count=LIVE, columns=pack_columns(columns),
        )  # fmt: skip


class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        told = {"engine": os.environ["SPECDECK_ENGINE"], "id": asked.get("id", "r0")}
        echo = f"echo of {asked.get('prompt') or asked['messages']}"
        if asked.get("stream"):
            chunks = [json.dumps({**told, "choices": [{"delta": {"content": part}}]}) for part in echo.partition(" ")]
            body, kind = "".join(f"data: {chunk}\n\n" for chunk in [*chunks, "[DONE]"]).encode(), "text/event-stream"
        else:
            body, kind = json.dumps({**told, "choices": [{"message": {"content": echo}}]}).encode(), "application/json"
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "unix"

    def log_message(self, *_: object) -> None:
        pass


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


def start_child(name: str) -> subprocess.Popen[bytes]:
    """A process that only exists, under a name that begins like vLLM's."""
    script = f"open('/proc/self/comm', 'w').write({name!r}); import time; time.sleep(3600)"
    return subprocess.Popen([sys.executable, "-S", "-c", script])


def main() -> None:
    telemetry = Path(os.environ["SPECDECK_SOCKET"])
    engine = os.environ["SPECDECK_ENGINE"]
    children: list[subprocess.Popen[bytes]] = []

    def end(*_: object) -> None:
        for child in children:
            child.kill()
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    if "--no-http" not in sys.argv:
        children += [start_child("VLLM::EngineCore"[:15]), start_child("VLLM::Worker")]
        time.sleep(0.3)  # as the real one: its children are there before it answers
        assert all(child.poll() is None for child in children)
        socket_path = http_socket(engine, telemetry.parent)
        socket_path.unlink(missing_ok=True)
        server = UnixServer(str(socket_path), Health)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    Script(telemetry, engine, 0 if "--vanilla" in sys.argv else MAX_K).run()


if __name__ == "__main__":
    main()
