"""An engine that the operator starts himself, as the README says, appears in a running station; what is stored of its
n-gram drafts equals vLLM's own detail."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx
import pytest

from console.feed.client import FeedError
from console.feed.messages import EngineView
from console.feed.protocol import RestartParams
from engine.records import PolicyMode
from tests.path.oracle import consult
from tests.path.served import START_SECONDS, Served, free_port, until

pytestmark = pytest.mark.engine


def test_it_appears_takes_the_policy_is_recorded_right_and_cannot_be_restarted_from_here(bundled_model: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as directory:
        served = Served(Path(directory), "--no-engine")
        port = free_port()
        command = [sys.executable, "-m", "vllm.entrypoints.launchers.api_server.entry"]
        command += ["--model", str(bundled_model), "--served-model-name", "own", "--port", str(port)]
        command += ["--max-model-len", "1024", "--max-num-seqs", "16", "--scheduler-cls", "engine.scheduler.build"]
        command += ["--per-request-spec-decode-metrics", "detailed", "--max-num-batched-tokens", "256"]
        command += ["--speculative-config", '{"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 3}']
        command += ["--enforce-eager"]  # starts sooner, and nothing that is compared hangs on it
        own = {"SPECDECK_SOCKET": str(served.sockets.telemetry), "VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1"}
        own |= {"VLLM_USE_AOT_COMPILE": "0"}
        log = (Path(directory) / "own.log").open("wb")
        engine = subprocess.Popen(command, env=os.environ | own, stdout=log, stderr=log, start_new_session=True)
        try:
            view = until("the engine in the picture", lambda: _own(served), START_SECONDS)
            assert (view.owned, view.method, view.max_k) == (False, "ngram", 3)
            with pytest.raises(FeedError, match="did not start"):
                served.ask("engine_restart", RestartParams(engine=view.engine), bool)
            until("its server answers", lambda: _healthy(port), 60.0)
            served.policy(PolicyMode(mode="static", k=2))
            body = {"model": "own", "prompt": "one two three " * 8, "max_tokens": 30, "temperature": 0.0}
            answer = httpx.post(f"http://127.0.0.1:{port}/v1/completions", json=body, timeout=60.0)
            assert answer.status_code == 200
            bucket = until("its rows in the report", lambda: (served.report()["buckets"] or [None])[0], 15.0)
            assert bucket["emitted"] == 30
            assert set(bucket["k_histogram"]) <= {"0", "2"}
            assert bucket["drafted"] > 0
            served.url = f"http://127.0.0.1:{port}"  # its requests go to its own port
            assert consult(served, (1, 3)).compare() > 150
        finally:
            os.killpg(engine.pid, signal.SIGKILL)
            engine.wait(10)
            served.stop()


def _own(served: Served) -> EngineView | None:
    picture = served.snapshot_or_none()
    return next((engine for engine in picture.engines if not engine.owned), None) if picture else None


def _healthy(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health", timeout=2.0).status_code == 200
    except httpx.HTTPError:
        return False
