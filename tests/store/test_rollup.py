"""Rollups: whatever way they were split, they add up to the raw rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.database import Store
from store.ingest import Ingest
from store.levels import LEVELS
from store.rollup import roll_up
from tests.store.builders import T0, engine, row, sequence, step

KEYS = "bucket, k_asked, limit_term, drafted, accepted, cause, post_resume"
RAW = f"SELECT {KEYS}, count(*)::BIGINT, sum(emitted)::BIGINT FROM rows GROUP BY ALL ORDER BY ALL"
ROLLED = f"SELECT {KEYS}, sum(count)::BIGINT, sum(emitted)::BIGINT FROM rollup_{{}} GROUP BY ALL ORDER BY ALL"
RAW_LOAD = """SELECT bucket, count(*)::BIGINT, sum(emitted)::BIGINT, sum(round(duration_ms * 1000))::BIGINT,
                sum(emitted * decode_rows)::BIGINT, sum(emitted * context_tokens)::BIGINT
              FROM rows JOIN steps ON step = steps.id WHERE cause <> 0 GROUP BY ALL ORDER BY ALL"""
ROLLED_LOAD = """SELECT bucket, sum(count)::BIGINT, sum(emitted)::BIGINT, sum(duration_us)::BIGINT,
                   sum(emitted_batch)::BIGINT, sum(emitted_context)::BIGINT
                 FROM load_{} GROUP BY ALL ORDER BY ALL"""
RAW_SEQUENCES = """SELECT bucket, sequence, count(*)::BIGINT, count(*) FILTER (cause <> 0 AND drafted > 0),
                     count(*) FILTER (cause <> 0 AND drafted >= 2),
                     coalesce(sum(least(accepted, 2)) FILTER (cause <> 0 AND drafted >= 2), 0)::BIGINT
                   FROM rows GROUP BY ALL ORDER BY ALL"""
ROLLED_SEQUENCES = """SELECT bucket, sequence, sum(count)::BIGINT, sum(draft_steps)::BIGINT,
                        coalesce(sum(reached[2]), 0)::BIGINT, coalesce(sum(matched[2]), 0)::BIGINT
                      FROM sequence_rollup_10s GROUP BY ALL ORDER BY ALL"""
LONG_AFTER = T0 + 20_000


def fetched(store: Store, query: str) -> list[tuple[Any, ...]]:
    return store.connection.execute(query).fetchall()


def agree(store: Store) -> None:
    for level in LEVELS:
        assert fetched(store, ROLLED.format(level.name)) == fetched(store, RAW)
        assert fetched(store, ROLLED_LOAD.format(level.name)) == fetched(store, RAW_LOAD)
    assert fetched(store, ROLLED_SEQUENCES) == fetched(store, RAW_SEQUENCES)


@settings(max_examples=15, deadline=None)
@given(
    times=st.lists(st.floats(0, 200, allow_nan=False), min_size=1, max_size=40),
    flushes=st.sets(st.integers(0, 40)),
)
def test_rollups_of_any_split_equal_the_raw_counts(times: list[float], flushes: set[int]) -> None:
    with Store.memory() as store:
        ingest = Ingest(store)
        ingest.record(engine())
        ingest.record(sequence("a"))
        for number, offset in enumerate(times):  # in any order: what comes late is added to its cell
            ingest.record(step(number, [row("a", d=number % 4, a=number % 4 // 2)] * 2, ts=T0 + offset))
            if number in flushes:
                ingest.flush()
        ingest.close()
        roll_up(store.connection, LONG_AFTER)
        agree(store)


def test_a_killed_station_leaves_rollups_behind_that_the_next_one_completes(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    with Store.open(path) as store:
        ingest = Ingest(store)
        for record in (engine(), sequence("a"), *(step(n, [row("a")], ts=T0 + n) for n in range(1, 60))):
            ingest.record(record)
        ingest.flush()  # the last 20 s are not rolled up yet, and never will be by this station
        assert fetched(store, "SELECT sum(count) FROM rollup_10s") == [(29,)]
    with Store.open(path) as store:
        ingest = Ingest(store)
        for record in (engine(ts=T0 + 60), sequence("b", ts=T0 + 60), step(90, [row("b")], ts=T0 + 90)):
            ingest.record(record)
        ingest.close()
        roll_up(store.connection, LONG_AFTER)
        agree(store)


def test_the_views_carry_the_metric_names(tmp_path: Path) -> None:
    with Store.memory() as store:
        ingest = Ingest(store)
        for record in (engine(), sequence("a"), *(step(n, [row("a", d=4, a=1)], ts=T0 + n) for n in range(1, 60))):
            ingest.record(record)
        ingest.record(step(60, [row("a", d=0, a=0)], ts=T0 + 60))
        ingest.close()
        roll_up(store.connection, LONG_AFTER)
        names = """alpha, pooled_acceptance, conditional_acceptance, mean_acceptance_length, committed_per_step,
                   waste_ratio, drafted_share"""
        ((*figures,),) = fetched(store, f"SELECT {names} FROM bucket_metrics")
        assert figures == pytest.approx([0.25, 0.25, 0.5, 2.0, 119 / 60, 0.75, 59 / 60])
        cells = fetched(store, f"SELECT {names} FROM bucket_metrics_10s ORDER BY cell")
        assert len(cells) == 7
        assert cells[0] == pytest.approx((0.25, 0.25, 0.5, 2.0, 2.0, 0.75, 1.0))
        assert cells[-1] == (None, None, None, None, 1.0, None, 0.0)
