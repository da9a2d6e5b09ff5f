"""The bands of load say the same in SQL as in Python."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.step_time import bands
from store.bands import BATCH_BAND, CONTEXT_BAND, DURATION_BIN, PREFILL_BAND

steps = st.tuples(
    st.integers(0, 2**20), st.integers(0, 2**40), st.integers(0, 2**20), st.integers(1, 10**9).map(lambda us: us / 1000)
)


@settings(deadline=None, max_examples=50)
@given(st.lists(steps, min_size=1, max_size=50))
@example([(batch, context * batch, prefill, 40.0) for batch in (0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 2**19 + 1)
          for context, prefill in zip(bands.CONTEXT_EDGES, bands.PREFILL_EDGES, strict=False)])  # fmt: skip
def test_sql_and_numpy_agree(steps: list[tuple[int, int, int, float]]) -> None:
    batch, context, prefill, duration = (np.array(column) for column in zip(*steps, strict=True))
    table = pa.table(
        {
            "decode_rows": batch.astype(np.uint32),
            "context_tokens": context.astype(np.uint64),
            "prefill_tokens": prefill.astype(np.uint32),
            "duration_ms": duration,
        }
    )
    with duckdb.connect() as connection:
        connection.register("steps", table)
        found = connection.execute(
            f"SELECT {BATCH_BAND} AS b, {CONTEXT_BAND} AS c, {PREFILL_BAND} AS p, {DURATION_BIN} AS d FROM steps"
        ).fetchnumpy()
    assert found["b"].tolist() == bands.batch_band(batch).tolist()
    assert found["c"].tolist() == bands.context_band(context, batch).tolist()
    assert found["p"].tolist() == bands.prefill_band(prefill).tolist()
    assert np.abs(found["d"] - bands.duration_bin(duration)).max() <= 1, "a logarithm may round either way at an edge"
