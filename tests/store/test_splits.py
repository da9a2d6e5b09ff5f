"""However a record was split into rollups, cut by retention and read by windows, its counts are those of its rows."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from engine.records import Record, Row
from store.database import Store
from store.gather import rows_ever, stretch_of
from store.ingest import Ingest
from store.levels import DAY
from store.report import report
from store.retention import Retention
from store.rollup import roll_up
from tests.store.builders import T0, engine, row, sequence, step
from tests.store.reference import possible, reference

NO_SHRINK = [Phase.explicit, Phase.reuse, Phase.generate]
"""A failure shows after at most these examples: to make one smaller takes minutes."""
NAMES = "abcdef"
COUNTS = (
    "steps", "decode_rows", "drafted", "accepted", "emitted", "k_histogram", "drafted_histogram", "cause_histogram",
    "limit_histogram", "alpha", "pooled_acceptance", "conditional_acceptance", "mean_acceptance_length",
    "committed_per_step", "waste_ratio", "drafted_share", "position_marginal", "position_conditional",
    "position_at_risk",
)  # fmt: skip
OF_SEQUENCES = ("sequences", "alpha_low", "alpha_high", "few")


class Said(NamedTuple):
    """A step of some rows at `offset` seconds after T0; then perhaps a flush, and housekeeping so much later."""

    offset: float
    rows: list[Row]
    flush: bool
    house: float | None


@st.composite
def rows(draw: st.DrawFn) -> Row:
    k = draw(st.integers(0, 4))
    d = draw(st.integers(0, k))
    a = draw(st.integers(0, d))
    return row(
        draw(st.sampled_from(NAMES)), d, a, draw(st.integers(0, a + 1)), k,
        limit=draw(st.sampled_from(["static", "adaptive", "probe"])),
        cause=draw(st.sampled_from(["prefill", "full", "token_budget", "no_proposal"])),
        context=draw(st.sampled_from([10, 600])),
        proposed=draw(st.none() | st.just(5)),
    )  # fmt: skip


def told(span: float) -> st.SearchStrategy[list[Said]]:
    """In any order of time: some of it comes late, some at the same moment, some on the edge of a cell."""
    edges = st.integers(0, int(span // 10)).map(lambda cell: cell * 10.0)
    hours = st.integers(0, int(span // 3600)).map(lambda hour: hour * 3600.0)
    one = st.builds(
        Said,
        st.floats(0, span, allow_nan=False).map(lambda ts: round(ts, 6)) | edges | hours,
        st.lists(rows(), max_size=3),
        st.booleans(),
        st.none() | st.floats(0, 3 * DAY),
    )
    return st.lists(one, min_size=1, max_size=16)


def records(said: list[Said]) -> list[Record]:
    return [step(number, one.rows, ts=T0 + one.offset) for number, one in enumerate(said, 1)]


def recorded(store: Store, said: list[Said], *, house: bool) -> float:
    """Take it all in; the latest moment that housekeeping knew."""
    ingest, now = Ingest(store), T0
    keeper = Retention(store.cursor(), None)
    for record in (engine(), *(sequence(name) for name in NAMES)):
        ingest.record(record)
    for one, record in zip(said, records(said), strict=True):
        ingest.record(record)
        now = max(now, T0 + one.offset)
        if one.flush:
            ingest.flush()
        if house and one.house is not None:
            ingest.flush()
            while keeper.slice(now + one.house):
                pass
    ingest.close()
    return now


def figures(store: Store, **bounds: Any) -> dict[str, Any] | None:
    total = report(store.connection, source="x", **bounds).total
    return None if total is None else msgspec.to_builtins(total)


def agree(shown: dict[str, Any] | None, inside: list[Row], names: tuple[str, ...]) -> None:
    assert all(possible(one) for one in inside)
    if shown is None or not inside:
        assert (shown, inside) == (None, [])
        return
    expected = reference(inside)
    for name in names:
        assert shown[name] == pytest.approx(expected[name], abs=1e-6), name


@settings(max_examples=8, deadline=None, phases=NO_SHRINK)
@given(told(2 * 3600.0), st.floats(1, 7000), st.floats(0, 8000), st.booleans())
def test_before_anything_is_removed_every_window_holds_its_rows_exactly(
    said: list[Said], window: float, at: float, whole: bool
) -> None:
    with Store.memory() as store:
        recorded(store, said, house=False)
        if whole:
            roll_up(store.connection, math.inf)
        end, start = T0 + at, T0 + at - window
        inside = [one for record in said for one in record.rows if start < T0 + record.offset <= end]
        agree(figures(store, window=window, at=end), inside, COUNTS + OF_SEQUENCES)
        agree(figures(store), [one for record in said for one in record.rows], COUNTS + OF_SEQUENCES)


@settings(max_examples=12, deadline=None, phases=NO_SHRINK)
@given(told(80 * DAY), st.floats(1, 80 * DAY), st.floats(0, 81 * DAY))
def test_whenever_what_was_removed_every_window_holds_its_rows_to_the_edges_of_cells(
    said: list[Said], window: float, at: float
) -> None:
    with Store.memory() as store:
        recorded(store, said, house=True)
        everything = [one for record in said for one in record.rows]
        agree(figures(store), everything, COUNTS)
        assert rows_ever(store.connection) == len(everything)
        end, start = T0 + at, T0 + at - window
        read = stretch_of(store.connection, start, end)
        assert start - 3600 - 1e-6 < read.start <= start
        assert end - 1e-6 <= read.end < end + 3600
        inside = [one for record in said for one in record.rows if read.start < T0 + record.offset <= read.end]
        agree(figures(store, window=window, at=end), inside, COUNTS)


@settings(max_examples=8, deadline=None, phases=NO_SHRINK)
@given(told(5 * DAY))
def test_sequences_and_intervals_stay_those_of_whole_sequences_when_their_cells_are_gone(said: list[Said]) -> None:
    with Store.memory() as store:
        now = recorded(store, said, house=True)
        keeper = Retention(store.cursor(), None)
        roll_up(store.connection, math.inf)
        while keeper.slice(now + 20 * DAY):
            pass
        assert store.connection.execute("SELECT count(*) FROM sequence_rollup_10s").fetchall() == [(0,)]
        agree(figures(store), [one for record in said for one in record.rows], COUNTS + OF_SEQUENCES)
