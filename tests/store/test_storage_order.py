"""Rows are stored in another order than they came: nothing but the room they take may depend on it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from store import storage_order as module
from store.database import Store
from store.ingest import Ingest
from store.storage_order import storage_order
from tests.store.builders import T0, engine, row, sequence, step

LANES = 64
STEPS = 600


def reference(rows: list[tuple[int, int]], stretch: int) -> list[int]:
    """Of (sequence, context): by the context that a sequence has first in the stretch, its rows as they came."""
    order: list[int] = []
    for start in range(0, len(rows), stretch):
        places = range(start, min(len(rows), start + stretch))
        first: dict[int, int] = {}
        for place in places:
            first.setdefault(*rows[place])
        order += sorted(places, key=lambda place: (first[rows[place][0]], rows[place][0], place))
    return order


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3000)), max_size=60), st.integers(1, 20))
def test_rows_of_a_sequence_stand_together_by_context_stretch_by_stretch(
    rows: list[tuple[int, int]], stretch: int
) -> None:
    sequences, contexts = (np.array([one[column] for one in rows], dtype=np.int64) for column in (0, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "STRETCH", stretch)
        assert storage_order(sequences, contexts).tolist() == reference(rows, stretch)


def test_rows_of_a_full_batch_take_less_than_eight_bytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    with Store.open(tmp_path / "s.duckdb") as store:
        ingest = Ingest(store)
        ingest.record(engine())
        contexts = rng.integers(16, 4000, LANES)
        for lane in range(LANES):
            ingest.record(sequence(f"s{lane}", f"w{lane % 8}"))
        for number in range(1, STEPS + 1):
            drafted = rng.integers(0, 5, LANES)
            accepted = rng.integers(0, drafted + 1)
            rows = [
                row(f"s{lane}", int(d), int(a), k=4, context=int(context))
                for lane, d, a, context in zip(range(LANES), drafted, accepted, contexts, strict=True)
            ]
            ingest.record(step(number, rows, ts=T0 + number * 0.033))
            contexts += accepted + 1
            if number % 128 == 0:  # 8,192 rows: as often as the station flushes a full batch
                ingest.flush()
        ingest.close()
        store.connection.execute("CHECKPOINT")
        ((blocks, size),) = store.connection.execute(
            """SELECT count(DISTINCT block_id), (SELECT block_size FROM pragma_database_size())
               FROM pragma_storage_info('rows') WHERE persistent AND block_id >= 0"""
        ).fetchall()
    assert blocks * size / (LANES * STEPS) < 8
