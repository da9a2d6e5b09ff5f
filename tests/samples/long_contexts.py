"""The same task at three context lengths, without drafts and with them: acceptance, step times and speedup by context.

At each length one, two and three requests run at once at K 0, so that vanilla steps of every batch are known at that
context, and then three at K 4. At the end the three lengths run side by side.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

from console.traffic.plan import Planned
from console.traffic.prompts import Message
from engine.records import PolicyMode
from tests.path.served import Served
from tests.samples.recording import Recording, recording
from tests.samples.streams import Streams

STREAMS: Final = 3
TOKENS: Final = 96


class Length(NamedTuple):
    passages: int
    """Of about 90 tokens each."""
    documents: int
    """Different ones of each stream. Those that come again are in the prefix cache: prefills don't drown the rest."""


SHORT, MEDIUM, LONG = Length(1, 4), Length(8, 4), Length(46, 1)
"""Contexts under 512 tokens, from 512 to 2,048, and beyond, each also in a band of its own of the step times."""


class Phase(NamedTuple):
    name: str
    lengths: tuple[Length, ...]
    """Of each stream."""
    plain: float
    """Seconds at K 0 with one stream, with two and with three."""
    drafting: float
    """Seconds at K 4 with all three."""


PHASES: Final = (
    Phase("short", (SHORT,) * STREAMS, 10.0, 25.0),
    Phase("medium", (MEDIUM,) * STREAMS, 12.0, 30.0),
    Phase("long", (LONG,) * STREAMS, 25.0, 40.0),
    Phase("mixed", (SHORT, MEDIUM, LONG), 8.0, 25.0),
)
PLAIN, DRAFTING = PolicyMode(mode="off"), PolicyMode(mode="static", k=4)


def record(folder: Path) -> Path:
    out = folder / "long_contexts.jsonl.zst"
    with recording(out) as recorded, recorded.serving("--max-model-len", "8192", policy="off") as served:
        asyncio.run(_traffic(recorded, served, Documents()))
    return out


async def _traffic(recorded: Recording, served: Served, documents: Documents) -> None:
    async with Streams(served.url, documents.requests) as streams:
        for phase in PHASES:
            recorded.say(f"{phase.name} contexts")
            documents.lengths = phase.lengths
            await asyncio.to_thread(served.policy, PLAIN)
            for many in range(1, STREAMS + 1):
                await streams.hold(many, phase.plain)
            await asyncio.to_thread(served.policy, DRAFTING)
            await streams.hold(STREAMS, phase.drafting)


class Documents:
    """Prompts that ask for a text of the demo's passages again word for word; `lengths`: of each stream's texts."""

    def __init__(self) -> None:
        folder = files("console.traffic") / "texts" / "passages"
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
        self._passages = [entry.read_text(encoding="utf-8").strip() for entry in entries if entry.is_file()]
        self.lengths = PHASES[0].lengths

    def requests(self, place: int) -> Iterator[Planned]:
        for turn in itertools.count():
            passages, documents = self.lengths[place]
            start = place + STREAMS * (turn % documents)
            text = itertools.islice(itertools.cycle(self._passages), start, start + passages)
            prompt = (Message("user", "\n\n".join((*text, "Repeat the text above word for word."))),)
            yield Planned(0.0, "repeat", prompt, TOKENS, 0.0, stream=True)
