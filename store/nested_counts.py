"""What the live table's windows hold at one moment, read at once: each window lies in the next longer one, so every row
is read once and marked with the shortest that holds it."""

from __future__ import annotations

import math
from typing import Final

import duckdb
import numpy as np

from engine.step_time.load import LoadSums
from store.counts import Ints, Joint, SequenceTotals, sum_by_sequence
from store.gather import JOINT_COLUMNS, LOAD_COLUMNS, TOTAL_COLUMNS, joint_parts, load_parts, summed, total_parts
from store.places import Places
from store.recent import SERVED, finest_stretch, int_columns, with_longer_cells
from store.rollup import JOINT_KEYS, LOAD_KEYS
from store.segments import Stretch
from store.window_spans import SPANS

_LOAD_NAMES: Final = (
    "batch_band", "context_band", "rows", "emitted", "duration_us", "emitted_batch", "emitted_context", "prefill",
)  # fmt: skip


class NestedCounts:
    """`now`: Unix seconds. Calibration serves nobody and is left out."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, now: float) -> None:
        starts = [math.ceil((now - seconds) / size) * size for seconds, size, _ in SPANS]
        place = "CASE " + " ".join(f"WHEN cell >= {start} THEN {n}" for n, start in enumerate(starts[:-1]))
        self._place = f"{place} ELSE {len(SPANS) - 1} END"
        stretch = _stretch(connection, starts, now)
        self._read_joint(connection, stretch)
        self._read_totals(connection, stretch)
        self._read_load(connection, stretch)

    @property
    def buckets(self) -> Ints:
        """Numbers of those that have rows in the longest window."""
        return np.unique(self._of_joint)

    def joint(self, members: Ints, place: int) -> Joint:
        """Of the buckets with these numbers, in window number `place`."""
        inside = self._joint_places.of(_mask(members, self._joint_places.limit))
        return self._joint.take(inside[self._joint_in[inside] <= place])

    def sequences(self, members: Ints, place: int) -> SequenceTotals:
        inside = self._total_places.of(_mask(members, self._total_places.limit))
        inside = inside[self._total_in[inside] <= place]
        return sum_by_sequence(*(column[inside] for column in self._totals))

    def many_sequences(self, members: Ints) -> list[int]:
        """How many sequences each window holds of these buckets."""
        inside = self._total_places.of(_mask(members, self._total_places.limit))
        sequence, place = self._totals[0][inside], self._total_in[inside]
        order = np.lexsort((place, sequence))
        _, first = np.unique(sequence[order], return_index=True)
        shortest = place[order][first]  # that holds the sequence
        return [int(many) for many in np.cumsum(np.bincount(shortest, minlength=len(SPANS)))]

    def load(self, members: Ints, place: int) -> LoadSums:
        inside = self._load_places.of(_mask(members, self._load_places.limit))
        inside = inside[self._load_in[inside] <= place]
        columns = dict(zip(_LOAD_NAMES, (column[inside] for column in self._load), strict=True))
        duration = columns.pop("duration_us") / 1000
        return LoadSums.of(cell=self._cell[inside] // SPANS[place][1], **columns, duration_ms=duration)

    def _read_joint(self, connection: duckdb.DuckDBPyConnection, stretch: Stretch) -> None:
        keys = f"{self._place} AS place, {JOINT_KEYS}"
        self._joint_in, self._of_joint, *joint = _served(connection, summed(keys, JOINT_COLUMNS, joint_parts(stretch)))
        self._joint_places, self._joint = Places(self._of_joint), Joint(*joint)

    def _read_totals(self, connection: duckdb.DuckDBPyConnection, stretch: Stretch) -> None:
        keys = f"{self._place} AS place, bucket, sequence"
        self._total_in, of_total, *self._totals = _served(connection, summed(keys, TOTAL_COLUMNS, total_parts(stretch)))
        self._total_places = Places(of_total)

    def _read_load(self, connection: duckdb.DuckDBPyConnection, stretch: Stretch) -> None:
        keys = f"{self._place} AS place, cell, {LOAD_KEYS}"
        self._load_in, self._cell, of_load, *self._load = _served(
            connection, summed(keys, LOAD_COLUMNS, load_parts(stretch))
        )
        self._load_places = Places(of_load)


def _stretch(connection: duckdb.DuckDBPyConnection, starts: list[int], now: float) -> Stretch:
    """All windows together: cells of 5 minutes in the longest, as its own are, and where they fit into no other; the
    finest in the others."""
    since = math.nextafter(starts[-1], -math.inf)  # a step that ended at the edge is in the cell
    return with_longer_cells(connection, finest_stretch(connection, since, now), starts[-2])


def _served(connection: duckdb.DuckDBPyConnection, query: str) -> list[Ints]:
    inside = f"SELECT * FROM ({query}) WHERE bucket IN (SELECT id FROM buckets WHERE {SERVED})"
    return int_columns(connection, inside)


def _mask(members: Ints, limit: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    mask = np.zeros(limit, dtype=bool)
    mask[members[members < limit]] = True
    return mask
