"""Quiet → busy → quiet under a draft-length schedule: one request at once, then five, then twelve, and back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Final

from console.traffic.prompts import WORKLOADS
from tests.path.served import Served
from tests.samples.recording import Recording, recording
from tests.samples.streams import Streams, in_turn

SCHEDULE: Final = [[1, 2, 4], [3, 8, 1], [9, 32, 0]]
LEVELS: Final = ((1, 30.0), (5, 20.0), (12, 45.0), (5, 20.0), (1, 30.0))
"""Requests at once, and for how many seconds."""


def record(folder: Path) -> Path:
    out = folder / "schedule.jsonl.zst"
    policy = f"schedule:{json.dumps(SCHEDULE)}"
    with recording(out) as recorded, recorded.serving(policy=policy, calibrated=True) as served:
        asyncio.run(_traffic(recorded, served))
    return out


async def _traffic(recorded: Recording, served: Served) -> None:
    async with Streams(served.url, in_turn(WORKLOADS)) as streams:
        for many, seconds in LEVELS:
            recorded.say(f"{many} at once for {seconds:.0f} s")
            await streams.hold(many, seconds)
