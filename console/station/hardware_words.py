"""What the engines here run on, in words: by their own record, else asked of this machine once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from engine.hardware import processor
from engine.records import EngineRecord


class HardwareWords:
    """`threads`: that an engine was told to compute with; None for all."""

    def __init__(self, threads: Callable[[str], int | None]) -> None:
        self._threads = threads
        self._known: dict[tuple[str, int | None], str] = {}

    def of(self, record: EngineRecord) -> str | None:
        """At once; None where it was not asked yet."""
        return record.hardware or self._known.get((record.device, self._threads(record.engine)))

    async def ask(self, record: EngineRecord) -> str:
        """The same; where it isn't known, this machine is asked: a GPU's driver may take seconds."""
        known = self.of(record)
        if known is not None:
            return known
        kind = record.device, self._threads(record.engine)
        self._known[kind] = await asyncio.to_thread(processor, *kind)
        return self._known[kind]
