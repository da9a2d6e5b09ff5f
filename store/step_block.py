"""Many steps of one engine as arrays, as the fast readers of traces hand them to the ingest."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final

import numpy as np

from engine.frames import UNKNOWN
from engine.records import CAUSES, LIMITS, Row, StepRecord
from store.counts import Bools, Floats, Ints
from store.record_tables import PROBES

MOST_WHOLE: Final = 2**31 - 1
LATEST: Final = 1e11
"""No time is later, Unix seconds."""
LONGEST_MS: Final = 1e9
MOST_K: Final = 2**16 - 1

WHOLE_FACTS: Final = (
    "frame", "step", "k_verify", "k_draft", "running", "waiting", "prefill_tokens", "policy",
)  # fmt: skip
"""Facts of a step that are whole numbers, named as in the trace."""
NO_PROBE: Final = -1
_EXACT: Final = 2.0**32
"""Below it a float can be told from its neighbours in the sixth digit."""


@dataclass(frozen=True, eq=False)
class StepBlock:
    """Steps in any order, each with its rows. Every number can be stored and lies on the time axis: see `sound`."""

    engine: str
    names: Sequence[str]
    """Names of sequences; the first column of `matrix` holds places in it."""
    ts: Floats
    """End of the steps, Unix seconds."""
    duration_ms: Floats
    whole: dict[str, Ints]
    """`WHOLE_FACTS`, one value a step."""
    probe: Ints
    """Index into `PROBES`, or `NO_PROBE`."""
    limit_draft: Ints
    """Index into `LIMITS`."""
    starts: Ints
    """Where each step's rows begin in `matrix`; one more for the end."""
    matrix: Ints
    """Columns × rows."""
    clock: Floats = field(init=False)
    """`ts` to the microsecond, as it is stored."""
    times: list[float] = field(init=False)
    """`ts` as a list: asked for at every step, as are …"""
    rounded_times: list[float] = field(init=False)
    _starts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "clock", rounded(self.ts, 6))
        object.__setattr__(self, "rounded_times", self.clock.tolist())
        object.__setattr__(self, "times", self.ts.tolist())
        object.__setattr__(self, "_starts", self.starts.tolist())

    def __len__(self) -> int:
        return len(self.ts)

    def rows(self, start: int, stop: int) -> int:
        """Rows of the steps from `start` to `stop`, exclusive."""
        return self._starts[stop] - self._starts[start]

    def reaching(self, start: int, stop: int, rows: int, ts: float = inf) -> int:
        """The end of the steps from `start` on with whose last they come to so many rows, or to that time; else `stop`.

        At least one step.
        """
        stop = bisect_left(self._starts, self._starts[start] + rows, start + 1, stop)
        if max(self.times[start:stop]) >= ts:
            stop = next(place for place in range(start, stop) if self.times[place] >= ts) + 1
        return stop

    def record(self, place: int) -> StepRecord:
        """One step as the trace's record."""
        whole = {name: int(values[place]) for name, values in self.whole.items()}
        probe = int(self.probe[place])
        return StepRecord(
            engine=self.engine, ts=float(self.ts[place]), duration_ms=float(self.duration_ms[place]),
            probe=None if probe == NO_PROBE else PROBES[probe], limit_draft=LIMITS[self.limit_draft[place]],
            rows=self._rows(place),
            **whole,
        )  # fmt: skip

    def _rows(self, place: int) -> list[Row]:
        columns: list[list[int]] = self.matrix[:, self._starts[place] : self._starts[place + 1]].tolist()
        return [
            Row(
                self.names[seq], k_asked, LIMITS[limit], None if proposed == UNKNOWN else proposed, drafted, invalid,
                accepted, emitted, context, CAUSES[cause],
            )
            for seq, k_asked, limit, proposed, drafted, invalid, accepted, emitted, context, cause in zip(
                *columns, strict=True
            )
        ]  # fmt: skip


def sound(ts: Floats, duration_ms: Floats, whole: dict[str, Ints]) -> Bools:
    """Which steps have numbers that can be stored and lie on the time axis."""
    fine: Bools = (ts > 0) & (ts < LATEST) & (duration_ms >= 0) & (duration_ms < LONGEST_MS)
    for name, values in whole.items():
        if name != "frame":
            most = MOST_K if name in ("k_verify", "k_draft") else MOST_WHOLE
            fine &= (values >= 0) & (values <= most)
    return fine


def named_places(names: Sequence[str]) -> tuple[list[str], list[int]]:
    """The names that occur, each once, and for each of `names` its place among them."""
    known = list(dict.fromkeys(names))
    place = {name: number for number, name in enumerate(known)}
    return known, list(map(place.__getitem__, names))


def rounded(values: Floats, digits: int) -> Floats:
    """As Python's `round`, which is exact where numpy's is not. Nearly always there is nothing to round."""
    scaled = np.rint(values * 10**digits) / 10**digits
    odd = np.flatnonzero((scaled != values) | (values >= _EXACT))
    rounded = values.copy()
    rounded[odd] = [round(value, digits) for value in values[odd].tolist()]
    return rounded
