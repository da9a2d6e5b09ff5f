"""A push of a worse drafter: the target as its own draft model, of which everything is accepted, then a copy of it with
noise on its weights. The judge finds a shift across the version change.

A shift is two windows that stand lower, and short windows end at multiples of five minutes: the first is what is left
of one when the new version begins, the second a whole one. The run begins at a moment from which that fits best.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path
from typing import Final

from console.traffic.prompts import Workload
from engine.cached_folder import STAMP_NAME
from engine.drafter.worse import disturbed
from engine.models import BUNDLED_NAME, resolve
from store.judge.settings import WINDOWS
from tests.path.served import Served
from tests.samples.recording import Recording, recording
from tests.samples.streams import Streams, in_turn

NOISE: Final = 0.1
"""Standard deviation of the noise on a matrix, relative to that of its own elements."""
WORKLOADS: Final[tuple[Workload, ...]] = ("code", "repeat")
"""Both at temperature 0."""
STREAMS: Final = 4
TOKENS: Final = 32
"""Most of an answer: a window needs many sequences, not long ones."""
BEFORE_SECONDS: Final = 80.0
"""Traffic of the good version."""
FIRST_SECONDS: Final = 50.0
"""Traffic of the worse one in its first window, at least."""
AFTERWARDS_SECONDS: Final = 20.0
"""Beyond its second window: the judge looks at it, and the alert is seen to fire."""
STARTING_SECONDS: Final = 90.0
"""Most that an engine takes to start: the first time it compiles."""
LEAST_FIRST_SECONDS: Final = 30.0
"""A first window with less traffic would not count."""


def record(folder: Path) -> Path:
    out = folder / "version_push.jsonl.zst"
    with recording(out) as recorded:
        target = Path(resolve("bundled").path)
        worse = noisy_copy(target, recorded.directory / f"{BUNDLED_NAME}-noisy", NOISE)
        _wait(recorded)
        with recorded.serving("--drafter", str(target), policy="static:4") as served:
            asyncio.run(_traffic(served, time.time() + BEFORE_SECONDS))
        recorded.say("pushing a copy with noise")
        with recorded.serving("--drafter", str(worse), policy="static:4") as served:
            first_ends = _next_end(time.time() + LEAST_FIRST_SECONDS)
            asyncio.run(_traffic(served, first_ends + WINDOWS[0] + AFTERWARDS_SECONDS))
    return out


def noisy_copy(model: Path, folder: Path, noise: float) -> Path:
    """A copy of a model whose matrices have seeded noise on them: the same bytes, so the same version, each time."""
    shutil.copytree(model, folder, ignore=shutil.ignore_patterns("*.safetensors", STAMP_NAME))
    for weights in model.glob("*.safetensors"):
        (folder / weights.name).write_bytes(disturbed(weights, noise))
    return folder


def _wait(recorded: Recording) -> None:
    """Until a start now lets the worse version serve `FIRST_SECONDS` before a window ends."""
    ahead = STARTING_SECONDS + BEFORE_SECONDS + STARTING_SECONDS + FIRST_SECONDS
    seconds = _next_end(time.time() + ahead) - ahead - time.time()
    recorded.say(f"beginning in {seconds:.0f} s, as the judge's windows lie")
    time.sleep(seconds)


def _next_end(ts: float) -> float:
    """When the short window ends in which `ts` lies."""
    return (ts // WINDOWS[0] + 1) * WINDOWS[0]


async def _traffic(served: Served, until: float) -> None:
    async with Streams(served.url, in_turn(WORKLOADS, most_tokens=TOKENS)) as streams:
        await streams.hold(STREAMS, until - time.time())
