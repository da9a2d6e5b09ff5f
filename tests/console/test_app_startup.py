"""What the Live screen says before there is a bucket: what happens, what comes next, and what mends a failed start."""

from __future__ import annotations

import ast
import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from console.app.drawing.spans import text_of, width_of
from console.app.live.first_request import curl_lines, python_lines
from console.app.live.remedies import remedy, what_happens
from console.app.live.startup import before_buckets
from console.app.picture import Link, Picture
from console.feed.messages import EngineView, GatewayView, Snapshot
from tests.console import scenes
from tests.console.recorded_feed import recorded

PORT = (
    "died: gateway: port 8000 on 127.0.0.1 is taken by another process: stop that one (`ss -ltnp 'sport = :8000'` "
    "names it) or choose another port with --listen 127.0.0.1:PORT (log: ~/gateway.log)"
)


def now(snapshot: Snapshot | None, **options: bool) -> Picture:
    return Picture(Link("connected", scenes.NOW), scenes.NOW, snapshot, **options)  # type: ignore[arg-type]


def shown(snapshot: Snapshot | None, width: int = 80, height: int = 24) -> str:
    return " ".join(" ".join(text_of(line) for line in before_buckets(now(snapshot), width, height)).split())


@pytest.mark.parametrize(
    ("detail", "word"),
    [
        ("its API server died: OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "too little memory"),
        ("its API server died: SIGKILL", "too little memory"),
        ("ValueError: No available memory for the KV cache blocks", "--max-model-len"),
        ("ModelError: ~/.cache/specdeck: 12 MiB free, 700 MiB needed for the bundled model", "SPECDECK_CACHE_DIR"),
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        (PORT, "--port"),
        ("OSError: We couldn't connect to 'https://huggingface.co' to load the files", "bundled"),
        ("RuntimeError: Found no NVIDIA driver on your system; no NVIDIA GPU", "specdeck[cpu]"),
    ],
)
def test_a_failed_start_has_its_remedy(detail: str, word: str) -> None:
    assert word in (remedy(detail) or "")


def test_an_end_that_tells_nothing_gets_no_remedy_that_might_be_wrong() -> None:
    assert remedy("it did not answer 6 health checks in a row") is None
    assert remedy("restart asked for by the operator") is None


def test_what_a_recorded_start_and_a_recorded_failure_say() -> None:
    starting = shown(recorded("starting").snapshot)
    assert "comes with specdeck, SmolLM2-135M-Instruct, will run on this machine's CPU" in starting
    assert "no GPU and no model hub. The weights are read into memory. Then it serves." in starting
    failed = shown(recorded("failed").snapshot)
    assert "CUDA out of memory" in failed
    assert "smaller --model" in failed
    assert "tried again by itself" in failed


def test_a_start_that_would_fail_again_says_that_it_waits_for_the_operator() -> None:
    engine = replace(
        recorded("failed").snapshot.engines[0], detail="SpecError: max_model_len: 9000 exceeds 8192 tokens"
    )
    said = shown(replace(recorded("failed").snapshot, engines=[engine]))
    assert "not tried again by itself: 7, then r" in said


def test_a_taken_port_and_a_full_disk_are_told_beside_the_engine() -> None:
    gateway = GatewayView("http://127.0.0.1:8000", "down", detail=PORT)
    idle = recorded("idle").snapshot
    full = replace(idle.store, error="NOT RECORDING: No space left on device; free some, it is tried again every 10 s")
    for snapshot in (idle, recorded("starting").snapshot):
        said = shown(replace(snapshot, gateway=gateway, store=full))
        assert "is down: died: gateway: port 8000" in said
        assert "another --port" in said
        assert "NOT RECORDING" in said


@pytest.mark.parametrize(
    ("target", "device", "phase", "words"),
    [
        ("bundled", "cpu", "model", "converted first, once"),
        ("bundled", "cuda", "weights", "on this machine's GPU: it needs no model hub"),
        ("org/name", "cuda", "model", "fetched from the model hub"),
        ("/models/x", "", "warm-up", "/models/x will run. vLLM compiles"),
    ],
)
def test_a_start_says_with_what_and_what_comes(target: str, device: str, phase: str, words: str) -> None:
    phases = [replace(one, state="running") for one in scenes.starting_phases() if one.name == phase] or [
        replace(scenes.starting_phases()[0], name=phase, state="running")
    ]
    engine = EngineView(engine="e0", owned=True, state="starting", target=target, device=device, phases=phases)
    assert words in what_happens(engine)
    assert what_happens(engine).endswith("Then it serves.")


@given(st.text(min_size=1, max_size=60), st.integers(40, 240))
def test_a_request_to_paste_holds_whatever_the_model_is_called(name: str, width: int) -> None:
    engine = scenes.engine(target=f"{name}@f00:-:-:-")
    picture = now(replace(scenes.no_bucket(), engines=[engine]))
    lines = curl_lines(picture, width)
    body = json.loads([word for word in shlex.split("\n".join(lines)) if word.strip()][-1])
    assert body["messages"][0]["content"] == "Hello"
    ast.parse("\n".join(python_lines(picture)))


def test_off_loopback_the_request_carries_the_key_and_python_has_room_of_its_own() -> None:
    gateway = GatewayView("http://10.0.0.7:8000", "serving")
    picture = now(replace(scenes.no_bucket(), gateway=gateway))
    assert "$SPECDECK_API_KEY" in "\n".join(curl_lines(picture, 76))
    assert "SPECDECK_API_KEY" in "\n".join(python_lines(picture))
    assert "from openai" not in shown(scenes.no_bucket())
    assert "from openai" in shown(scenes.no_bucket(), 120, 36)
    assert all(width_of(line) <= 118 for line in before_buckets(picture, 120, 36))
