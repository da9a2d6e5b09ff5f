"""Groups a batch of rows by bucket and 10-s cell into what each tally and each ring has to add."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.frames import UNKNOWN
from store.counts import PREFILL, Ints, TallyChange
from store.rowbatch import ACCEPTED, CAUSE, DRAFTED, EMITTED, K_ASKED, PROPOSED, RowBatch
from store.schema import CELL_SECONDS


@dataclass(frozen=True)
class CellChange:
    """What came for one bucket in one 10-s cell. `sums` as in `store.series`."""

    bucket: int
    cell: int
    """Cell number: Unix seconds // 10."""
    last_seen: float
    change: TallyChange
    sums: list[int]


def changes(batch: RowBatch) -> Iterator[CellChange]:
    """One change for each bucket and cell that occurs in the batch."""
    cells = (batch.raw.ts // CELL_SECONDS).astype(np.int64)
    place = cells << 24 | batch.bucket
    if len(place) and (place[0] == place).all():  # the usual case at low load; saves a sort
        yield _change(batch, int(place[0]))
        return
    order = np.argsort(place, kind="stable")
    ordered = place[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    for members in np.split(order, starts[1:]):
        yield _change(batch.take(members), int(place[members[0]]))


def _change(batch: RowBatch, place: int) -> CellChange:
    matrix = batch.raw.matrix
    draft, decode = batch.draft, matrix[CAUSE] != PREFILL
    ratio = batch.ratios()
    known = matrix[PROPOSED] != UNKNOWN
    ones = np.ones(len(batch), dtype=np.int64)
    joint = _summed(
        batch.codes(),
        ones, matrix[EMITTED], np.where(known, matrix[PROPOSED], 0), np.where(known, matrix[DRAFTED], 0),
    )  # fmt: skip
    sequences = _summed(batch.sequence, ones, draft.astype(np.int64), ratio)
    sums = [
        int(draft.sum()), int(ratio.sum()), int(matrix[DRAFTED][decode].sum()), int(matrix[ACCEPTED][decode].sum()),
        int(decode.sum()), int(matrix[K_ASKED][decode].sum()), int(matrix[EMITTED].sum()),
    ]  # fmt: skip
    last_seen = float(batch.raw.ts.max())
    return CellChange(place & 0xFFFFFF, place >> 24, last_seen, TallyChange(joint, sequences), sums)


def _summed(keys: Ints, *columns: Ints) -> dict[int, list[int]]:
    """Sums of `columns` for each distinct key."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    sums = np.stack([np.add.reduceat(column[order], starts) for column in columns], axis=1)
    return dict(zip(ordered[starts].tolist(), sums.tolist(), strict=True))
