"""The same task at three context lengths, with drafts and without: acceptance and step times by context.

Each length is served at K 4 and then at K 0, so that its own steps say what drafting costs and brings there; at the end
all three run side by side.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Final

from console.traffic.plan import Planned
from console.traffic.prompts import Message
from engine.records import PolicyMode
from tests.path.served import Served
from tests.samples.recording import Recording, recording
from tests.samples.streams import Streams

STREAMS: Final = 3
SHORT, MEDIUM, LONG = 2, 12, 42
"""Passages of about 90 tokens: contexts under 512 tokens, from 512 to 2,048, and beyond."""
DRAFTING, PLAIN = PolicyMode(mode="static", k=4), PolicyMode(mode="off")
PHASES: Final = (("short", SHORT, 25.0, 15.0), ("medium", MEDIUM, 35.0, 20.0), ("long", LONG, 60.0, 25.0))
"""Name, passages in a prompt, seconds at K 4 and seconds at K 0."""
MIXED: Final = (SHORT, MEDIUM, LONG)
MIXED_SECONDS: Final = 30.0
TOKENS: Final = 96
_DISTINCT: Final = 5
"""Documents of each length: those that come again are in the prefix cache, and prefills don't drown the rest."""


def record(folder: Path) -> Path:
    out = folder / "long_contexts.jsonl.zst"
    with recording(out) as recorded, recorded.serving("--max-model-len", "8192", policy="static:4") as served:
        asyncio.run(_traffic(recorded, served, Documents()))
    return out


async def _traffic(recorded: Recording, served: Served, documents: Documents) -> None:
    async with Streams(served.url, documents.requests) as streams:
        for name, size, drafting, plain in PHASES:
            documents.sizes = (size,) * STREAMS
            recorded.say(f"{name} contexts")
            await streams.hold(STREAMS, drafting)
            await asyncio.to_thread(served.policy, PLAIN)
            await streams.hold(STREAMS, plain)
            await asyncio.to_thread(served.policy, DRAFTING)
        documents.sizes = MIXED
        recorded.say("all three at once")
        await streams.hold(STREAMS, MIXED_SECONDS)


class Documents:
    """Prompts of `sizes` passages for each stream, which is to say the first of them again word for word."""

    def __init__(self) -> None:
        folder = files("console.traffic") / "texts" / "passages"
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
        self._passages = [entry.read_text(encoding="utf-8").strip() for entry in entries if entry.is_file()]
        self.sizes: tuple[int, ...] = MIXED

    def requests(self, place: int) -> Iterator[Planned]:
        for turn in itertools.count():
            start = (STREAMS * turn + place) % _DISTINCT
            around = itertools.islice(itertools.cycle(self._passages), start, start + self.sizes[place])
            task = "Repeat the first paragraph of the text above word for word, then go on with the second."
            prompt = (Message("user", "\n\n".join((*around, task))),)
            yield Planned(0.0, "repeat", prompt, TOKENS, 0.0, stream=True)
