"""Random rows: the store's figures equal a slow reference, whichever way the rows came in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.records import CAUSES, LIMITS, Row
from store.database import Store
from store.figures import Figures
from store.ingest import Ingest
from store.report import report
from store.source import open_source
from store.trace import TraceWriter
from store.windows import LiveWindows
from tests.store.builders import announcement, arrived, frame, only_bucket, trace_of
from tests.store.reference import possible, reference


@st.composite
def rows(draw: st.DrawFn) -> Row:
    """Mostly possible rows, now and then an impossible one."""
    k = draw(st.integers(0, 6))
    d = draw(st.integers(0, k))
    a = draw(st.integers(0, d))
    odd = draw(st.integers(0, 20)) == 0
    return Row(
        seq=str(draw(st.integers(1, 12))),
        k_asked=k,
        limit=draw(st.sampled_from(LIMITS)),
        proposed=draw(st.none() | st.integers(d, 8)),
        drafted=d,
        invalid=draw(st.integers(0, 2)),
        accepted=a + draw(st.integers(-2, 3)) if odd else a,
        emitted=draw(st.integers(0, a + 1)) + (2 if odd else 0),
        context=draw(st.integers(0, 511)),
        cause=draw(st.sampled_from(CAUSES)),
    )


def agree(figures: Figures, expected: dict[str, Any]) -> None:
    shown = msgspec.to_builtins(figures)
    for name, value in expected.items():
        assert shown[name] == pytest.approx(value, abs=1e-6), name


@settings(max_examples=40, deadline=None)
@given(st.lists(rows(), min_size=1, max_size=60))
def test_figures_of_any_rows_equal_the_reference(many: list[Row]) -> None:
    if any(possible(row) for row in many):
        agree(only_bucket(trace_of(many)), reference(many))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(rows(), min_size=1, max_size=60))
def test_frames_a_trace_and_live_windows_count_the_same(tmp_path: Path, many: list[Row]) -> None:
    expected = reference(many)
    if not expected["sequences"]:
        return
    handles = sorted({int(row.seq) for row in many})
    windows = LiveWindows(fixed="1 h")
    with Store.memory() as store:
        ingest = Ingest(store, windows)
        ingest.announcement(announcement([arrived(handle) for handle in handles]), 0.0)
        for number, row in enumerate(many, 1):
            ingest.frame(frame(number, [row]), 0.0)
        ingest.close()
        over_the_wire = report(store.connection, source="test")
        assert ingest.counts.rows + ingest.counts.quarantined == len(many)
        assert ingest.counts.quarantined == sum(not possible(row) for row in many)
        last = store.connection.execute("SELECT max(ts) FROM steps").fetchall()[0][0]
    path = tmp_path / "trace.jsonl"
    with TraceWriter(path) as writer:
        for record in trace_of(many):
            writer.write(record)
    with open_source(path) as store:
        from_trace = report(store.connection, source="test")
    for counted in (over_the_wire, from_trace):
        agree(counted.buckets[0], expected)
        assert counted.total is not None
        agree(counted.total, expected)
        assert counted.quarantined == sum(not possible(row) for row in many)
    (bucket,) = windows.buckets(last + 1)
    agree(bucket.figures, expected)
    live_total = windows.total(last + 1)
    assert live_total is not None
    agree(live_total, expected)
