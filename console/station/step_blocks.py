"""Steps gathered into blocks of one load, since neighbouring steps are alike and steps of another load are not."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

BLOCK_STEPS: Final = 10

_BITS: Final = 5
"""Batch sizes that agree in so many leading bits are alike: the same up to 31, within 6 % beyond."""


class Step(NamedTuple):
    """One step as far as it matters here. `prefill`: prompt tokens in it. `tokens`: emitted by decode rows."""

    engine: str
    ts: float
    running: int
    prefill: int
    tokens: int
    ms: float


class Load(NamedTuple):
    """Steps of one load are alike: engine, batch band, prefill band."""

    engine: str
    running: int
    prefill: int


class Block(NamedTuple):
    """`BLOCK_STEPS` steps of one load; `ts` is that of its last step."""

    load: Load
    ts: float
    running: float
    tokens: int
    ms: float


class Blocks:
    """Gathers steps into blocks, and holds those of the last `seconds` before the newest."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._open: dict[Load, list[Step]] = {}
        self._blocks: deque[Block] = deque()
        self.made = 0
        """Blocks that were ever closed."""

    def add(self, step: Step) -> None:
        load = Load(step.engine, _band(step.running, _BITS), _band(step.prefill, 1))
        steps = self._open.setdefault(load, [])
        steps.append(step)
        if len(steps) < BLOCK_STEPS:
            return
        del self._open[load]
        self.made += 1
        tokens, ms = sum(one.tokens for one in steps), sum(one.ms for one in steps)
        self._blocks.append(Block(load, step.ts, sum(one.running for one in steps) / len(steps), tokens, ms))
        while self._blocks[0].ts < step.ts - self._seconds:
            self._blocks.popleft()

    def forget(self, engine: str) -> None:
        self._open = {load: steps for load, steps in self._open.items() if load.engine != engine}
        self._blocks = deque(block for block in self._blocks if block.load.engine != engine)

    def clear(self) -> None:
        self._open.clear()
        self._blocks.clear()

    def closed(self) -> list[Block]:
        return list(self._blocks)


def _band(number: int, bits: int) -> int:
    """`number` with all but its leading bits cleared."""
    shift = max(0, number.bit_length() - bits)
    return number >> shift << shift
