"""What each engine is doing, as its last step shows it."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from engine.frames import PackedStep
from engine.records import LIMITS, EngineRecord
from store.counts import Ints
from store.rowbatch import K_ASKED, LIMIT


class EngineLoad(msgspec.Struct, frozen=True, kw_only=True):
    """An engine as its last step shows it."""

    engine: str
    running: int
    waiting: int
    executed_k: int | None
    executed_limit: str | None
    policy: int
    last_frame: float
    """End of the last step, Unix seconds."""


class EngineLoads:
    def __init__(self) -> None:
        self._loads: dict[str, EngineLoad] = {}

    @property
    def engines(self) -> Collection[str]:
        """Those that made a step."""
        return self._loads.keys()

    def of(self, engine: str) -> EngineLoad | None:
        return self._loads.get(engine)

    def step(self, engine: str, record: EngineRecord | None, step: PackedStep, matrix: Ints) -> None:
        """Note a step. Where its engine's batch K can't move, the executed K is the largest that was asked for."""
        executed: tuple[int, str] | None = (step.k_draft, step.limit_draft)
        if record is not None and (record.batch_k == "fixed" or record.data_parallel_size > 1):
            executed = _largest_asked(matrix)
        self._loads[engine] = EngineLoad(
            engine=engine,
            running=step.running,
            waiting=step.waiting,
            executed_k=executed[0] if executed else None,
            executed_limit=executed[1] if executed else None,
            policy=step.policy,
            last_frame=step.ts,
        )

    def live_sequences(self, engine: str, live: int) -> None:
        """An idle engine makes no steps: the last step's load ends with its sequences."""
        load = self._loads.get(engine)
        if load is not None and live < load.running + load.waiting:
            running = min(load.running, live)
            self._loads[engine] = msgspec.structs.replace(load, running=running, waiting=live - running)


def _largest_asked(matrix: Ints) -> tuple[int, str] | None:
    if not matrix.shape[1]:
        return None
    place = int(matrix[K_ASKED].argmax())
    code = int(matrix[LIMIT][place])
    return int(matrix[K_ASKED][place]), LIMITS[code] if 0 <= code < len(LIMITS) else "max"
