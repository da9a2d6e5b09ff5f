"""Engines to be measured in turns: each in a process of its own, loaded once, asked for a block of requests at a time.

A process each, because vLLM's parallel state is one per process. They speak lines of JSON on stdin and stdout: an
`Opening` is answered by `Ready`, then every `Block` by `Done`. One that waits for its turn waits in a read, and so
leaves the cores to the others.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, Any, Final, TypeVar

import msgspec

from engine import models
from engine.drafter.evaluation.acceptance import Verification
from engine.launch import (
    WEIGHTLESS_METHODS,
    EngineSpec,
    installed_device,
    method_of,
    speculative_config,
    vllm_environment,
)
from engine.models import ModelPath
from engine.places import cache_dir

PROCESS: Final = "engine.drafter.evaluation.arm_process"
REFUSED: Final = "refused"
_LEFT_OUT: Final = ("SPECDECK_SOCKET", "SPECDECK_ENGINE", "SPECDECK_TARGET", "SPECDECK_DRAFTER")
"""No station is told of these engines."""

_GPU_SHARE: Final = 0.28
"""Of a GPU's memory for each arm: three are loaded at once. Unverified: no GPU was at hand."""

_LAST_WORDS: Final = 25
_PATIENCE: Final = 30.0
"""Seconds an engine has to end by itself."""


class ArmError(Exception):
    """An engine that did not start or did not go on: says which, with the end of its log."""


class Ask(msgspec.Struct, frozen=True):
    """One request. `sampling` is what vLLM's `SamplingParams` takes."""

    prompt: str
    sampling: dict[str, Any]
    chat: bool = True
    """Whether the prompt is put into the target's chat template."""


class Block(msgspec.Struct, frozen=True):
    """Requests to be served, `batch` of them at a time at most, with draft length `k` (of no meaning to an engine
    without a drafter)."""

    asks: Sequence[Ask]
    batch: int
    k: int


class Served(msgspec.Struct, frozen=True):
    """What became of one request, in the order asked."""

    tokens: list[int] = []
    text: str = ""
    reason: str = REFUSED
    """vLLM's finish reason, or `REFUSED`."""
    refusal: str = ""
    """What vLLM said, where it refused the request."""
    verifications: list[Verification] = []
    top: list[list[tuple[int, float]]] = []
    """For each token the most probable ones with their log-probabilities, where `logprobs` was asked for."""


class Done(msgspec.Struct, frozen=True):
    """A block's end. Tokens and seconds are those of the time in which the batch was full, from the first request added
    until one finished that no other could follow: the rest of a block is another load."""

    served: list[Served]
    tokens: int
    seconds: float


class Opening(msgspec.Struct, frozen=True):
    """What an engine is made of: keyword arguments of `vllm.LLM`, and its largest draft length."""

    settings: dict[str, Any]
    max_k: int


class Ready(msgspec.Struct, frozen=True):
    vllm: str
    device: str
    """Name of the GPU; empty on a CPU."""


_Reply = TypeVar("_Reply", Ready, Done)


def opening(spec: EngineSpec, target: ModelPath, *, as_served: bool = True) -> Opening:
    """The engine of `spec`, but serving nobody.

    Args:
        as_served: compiled, and on a CPU with the model in a worker process of its own, which vLLM binds to all cores
            but one. False is for tests: it starts sooner, and its speeds are others.

    Raises:
        ModelError, SpecError: the drafter cannot be used.
    """
    method = method_of(spec)
    drafter = None if method in WEIGHTLESS_METHODS else models.resolve_drafter(spec.drafter)
    settings: dict[str, Any] = {
        "model": target.path,
        "max_num_seqs": spec.max_num_seqs,
        "max_model_len": spec.max_model_len,
        "enable_prefix_caching": False,  # the same prompts come again at another draft length
        "enforce_eager": not as_served,
        "seed": 0,
    }
    if spec.max_num_batched_tokens is not None:
        settings["max_num_batched_tokens"] = spec.max_num_batched_tokens
    if method != "none":
        settings["speculative_config"] = speculative_config(spec, method, drafter)
    if installed_device() == "cuda":
        settings["gpu_memory_utilization"] = _GPU_SHARE
    elif as_served:
        settings["distributed_executor_backend"] = "mp"
    return Opening(settings, 0 if method == "none" else spec.max_k)


def environment(inherit: Mapping[str, str], *, kv_cache_gib: int = 1) -> dict[str, str]:
    """Of an arm's process."""
    env = {name: value for name, value in inherit.items() if name not in _LEFT_OUT}
    return vllm_environment(installed_device(), env, kv_cache_gib=kv_cache_gib) | {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the scheduler, with our recorder, runs in the arm's own process
        "HF_HUB_OFFLINE": "1",
        "PYTHONUNBUFFERED": "1",
        "NO_COLOR": "1",
    }


class Arm:
    """One such engine. To be closed; it also ends by itself when this process does."""

    def __init__(self, name: str, what: Opening) -> None:
        """Starts it; `ready` waits until it has loaded."""
        self.name = name
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # open as long as the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", PROCESS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment(os.environ),
            cwd=cache_dir(),
        )
        self._say(what)

    @property
    def pid(self) -> int:
        return self._process.pid

    def ready(self) -> Ready:
        """Wait until the engine has loaded.

        Raises:
            ArmError: it ended instead.
        """
        return self._hear(Ready)

    def serve(self, block: Block) -> Done:
        """Have a block served; returns when its last request has finished.

        Raises:
            ArmError: the engine ended instead.
        """
        self._say(block)
        return self._hear(Done)

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()  # the end of its input is the end of its work
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def _say(self, message: Opening | Block) -> None:
        assert self._process.stdin is not None  # a pipe was asked for
        try:
            self._process.stdin.write(msgspec.json.encode(message) + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None

    def _hear(self, kind: type[_Reply]) -> _Reply:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            raise self._ended()
        return msgspec.json.decode(line, type=kind)

    def _ended(self) -> ArmError:
        code = self._process.wait()
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").splitlines()
        return ArmError(f"the {self.name} engine ended (exit code {code}):\n  " + "\n  ".join(lines[-_LAST_WORDS:]))
