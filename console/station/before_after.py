"""Sorts the steps of all engines into those before a change that waits to be confirmed and those since, by the policy
version that they are stamped with: no clock says which policy a step was made under."""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np

from console.station.slowdown import Comparison, compare
from console.station.step_blocks import Blocks, Step
from engine.frames import CAUSE_CODE, COLUMNS, PackedStep

BEFORE_SECONDS: Final = 60.0
"""How far back before a change steps are held against those after it."""
AFTER_SECONDS: Final = 300.0
"""How long steps since the change are held: it may have a day to be confirmed."""
SKIPPED_STEPS: Final = 5
"""After a change: drafts that were asked for before it are still being verified."""
CONFIDENCE: Final = 0.999
"""It is looked at again and again while the change waits: at the usual 95 % harmless ones would often be blamed."""

_EMITTED: Final = COLUMNS.index("emitted")
_CAUSE: Final = COLUMNS.index("cause")
_PREFILL: Final = CAUSE_CODE["prefill"]


class BeforeAfter:
    def __init__(self, version: int, *, waits: bool) -> None:
        """`version`: the present policy. `waits`: it waits already; what was before it isn't known then."""
        self._before = Blocks(BEFORE_SECONDS)
        self._after = Blocks(AFTER_SECONDS)
        self._first = version
        """While nothing waits, steps from this version on are kept for later; else the change's own version."""
        self._latest: int | None = version if waits else None
        self._skipped: Counter[str] = Counter()
        self._boots: dict[str, str] = {}
        self._looked = 0

    def begin(self, version: int) -> None:
        """Another policy that waits for nothing: what was before it is no measure for what comes."""
        self._before.clear()
        self._after.clear()
        self._first, self._latest = version, None

    def wait(self, version: int) -> None:
        """A change that waits to be confirmed: steps of earlier versions are what it is held against."""
        self._first = version
        self.wait_anew(version)

    def wait_anew(self, version: int) -> None:
        """The change that waits was changed again."""
        self._latest = version
        self._after.clear()
        self._skipped.clear()

    def take(self, engine: str, boot: str, step: PackedStep) -> None:
        if self._boots.setdefault(engine, boot) != boot:
            self._boots[engine] = boot
            for blocks in (self._before, self._after):
                blocks.forget(engine)  # another process may be a faster or a slower one
        blocks_of = self._side(engine, step.policy)
        if blocks_of is None or step.probe is not None or step.duration_ms <= 0:
            return
        columns = np.frombuffer(step.columns, dtype="<i4").reshape(len(COLUMNS), step.count)
        decoding = columns[_CAUSE] != _PREFILL
        if decoding.any():
            tokens = int(columns[_EMITTED][decoding].sum())
            blocks_of.add(Step(engine, step.ts, step.running, step.prefill_tokens, tokens, step.duration_ms))

    def slower(self) -> Comparison | None:
        """How much slower serving has become; None while it can't be said that it has."""
        if self._latest is None or self._after.made == self._looked:
            return None
        self._looked = self._after.made
        found = compare(self._before.closed(), self._after.closed(), CONFIDENCE)
        return found if found is not None and found.high < 1.0 else None

    def _side(self, engine: str, version: int) -> Blocks | None:
        """Where a step under a policy version belongs; None where it tells nothing."""
        if self._latest is None:
            return self._before if version >= self._first else None
        if version < self._first:
            return self._before
        if version < self._latest:
            return None
        self._skipped[engine] += 1
        return self._after if self._skipped[engine] > SKIPPED_STEPS else None
