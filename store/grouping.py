"""Groups a batch of rows by bucket and 10-s cell into what each tally and each ring has to add.

Counting sorts over dense numbers: a batch has few buckets, few shapes of rows and a bounded number of sequences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from engine.frames import UNKNOWN
from engine.step_time.bands import batch_band, context_band
from store.counts import PREFILL, Bools, Ints, TallyChange, pack
from store.levels import CELL_SECONDS
from store.load import band_code
from store.rowbatch import ACCEPTED, CAUSE, DRAFTED, EMITTED, K_ASKED, LIMIT, PROPOSED, RowBatch

_SPREAD: Final = 1 << 20
"""Numbers that lie within this range are made dense by a table, others by sorting."""


@dataclass(frozen=True)
class CellChange:
    """What came for one bucket in one 10-s cell. `sums` as in `store.series`."""

    bucket: int
    cell: int
    """Cell number: Unix seconds // 10."""
    last_seen: float
    change: TallyChange
    sums: list[int]
    load: dict[int, list[int]]
    """Band code (`store.load.band_code`) → sums over decode rows, as `store.load.SUMS`."""


def changes(batch: RowBatch) -> Iterator[CellChange]:
    """One change for each bucket and cell that occurs in the batch, in no particular order."""
    matrix = batch.raw.matrix
    cells = (batch.raw.ts // CELL_SECONDS).astype(np.int64)
    places, place = dense(cells << 24 | batch.bucket)
    draft, decode = batch.draft, matrix[CAUSE] != PREFILL
    ratio, known = batch.ratios(), matrix[PROPOSED] != UNKNOWN
    ones = np.ones(len(batch), dtype=np.int64)

    shapes, shape = _shapes(matrix, batch.post_resume)
    joint = _summed(
        len(places), place, shapes, shape,
        (ones, matrix[EMITTED], np.where(known, matrix[PROPOSED], 0), np.where(known, matrix[DRAFTED], 0)),
    )  # fmt: skip
    sequences, sequence = dense(batch.sequence)
    totals = _summed(len(places), place, sequences, sequence, (ones, draft, ratio))
    load = _load(batch, len(places), place, decode)
    sums = zip(
        *(
            _sum(place, len(places), column)
            for column in (
                draft, ratio, matrix[DRAFTED] * decode, matrix[ACCEPTED] * decode, decode, matrix[K_ASKED] * decode,
                matrix[EMITTED],
            )
        ),
        strict=True,
    )  # fmt: skip
    last_seen = np.zeros(len(places))
    np.maximum.at(last_seen, place, batch.raw.ts)
    for number, added in enumerate(sums):
        where = int(places[number])
        change = TallyChange(joint[number], totals[number])
        yield CellChange(
            where & 0xFFFFFF, where >> 24, float(last_seen[number]), change, [int(n) for n in added], load[number]
        )


def _load(batch: RowBatch, groups: int, group: Ints, decode: Bools) -> list[dict[int, list[int]]]:
    """What the decode rows of each group lived through, by bands."""
    duration, rows, context, prefill = batch.raw.facts[:, decode]
    emitted = batch.raw.matrix[EMITTED][decode]
    bands, band = dense(band_code(batch_band(rows), context_band(context, rows)))
    ones = np.ones(len(emitted), dtype=np.int64)
    return _summed(
        groups, group[decode], bands, band, (ones, emitted, duration, emitted * rows, emitted * context, prefill)
    )


def dense(values: Ints) -> tuple[Ints, Ints]:
    """The distinct values, ascending, and for each value its place among them."""
    if not len(values):
        return values, values
    low = int(values.min())
    spread = int(values.max()) - low + 1
    if spread > _SPREAD:
        return np.unique(values, return_inverse=True)
    present = np.zeros(spread, dtype=bool)
    present[values - low] = True
    distinct = np.flatnonzero(present)
    places = np.empty(spread, dtype=np.int64)
    places[distinct] = np.arange(len(distinct))
    return distinct + low, places[values - low]


def _shapes(matrix: Ints, post_resume: Ints) -> tuple[Ints, Ints]:
    """The distinct packed keys of the joint histogram, in any order, and for each row its place among them."""
    k_asked, limit, drafted, accepted, cause = (matrix[column] for column in (K_ASKED, LIMIT, DRAFTED, ACCEPTED, CAUSE))
    if max(int(column.max()) for column in (k_asked, limit, drafted, accepted)) > 15:
        return dense(pack(k_asked, limit, drafted, accepted, cause, post_resume))
    small, place = dense(((((k_asked << 4 | limit) << 4 | drafted) << 4 | accepted) << 3 | cause) << 1 | post_resume)
    rest = small >> 4
    return pack(rest >> 12, rest >> 8 & 15, rest >> 4 & 15, rest & 15, small >> 1 & 7, small & 1), place


def _summed(
    groups: int, group: Ints, keys: Ints, key: Ints, columns: tuple[Ints | Bools, ...]
) -> list[dict[int, list[int]]]:
    """For each group a mapping from key to the sums of `columns`. `group` and `key` are dense numbers of each row."""
    pairs, pair = dense(group * len(keys) + key)
    sums = np.stack([_sum(pair, len(pairs), column) for column in columns], axis=1).tolist()
    mappings: list[dict[int, list[int]]] = [{} for _ in range(groups)]
    owners, names = pairs // len(keys), keys[pairs % len(keys)]
    for owner, name, amounts in zip(owners.tolist(), names.tolist(), sums, strict=True):
        mappings[owner][name] = amounts
    return mappings


def _sum(place: Ints, size: int, column: Ints | Bools) -> Ints:
    """Sums of a column by dense place: exact, since a batch's sums stay below 2⁵³."""
    return np.bincount(place, weights=column, minlength=size).astype(np.int64)
