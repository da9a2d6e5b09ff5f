"""A window that the operator fixed: the report's figures over the same time, beside the windows that buckets choose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.records import Record
from store.database import Store
from store.figures import Figures
from store.ingest import Ingest
from store.levels import CELL_SECONDS
from store.report import report
from store.still_windows import StillWindows
from store.window_spans import SPANS, place_of
from store.windows import RENEWED_AT_LEAST, LiveWindows
from tests.store.builders import T0, engine, row, sequence, step

SIX_HOURS, HOUR, FIVE_MINUTES = SPANS[2][0], SPANS[1][0], SPANS[0][0]
NOW = T0 + 7 * HOUR - T0 % 300  # where the cells of every window begin and end
WINDOWS = pytest.mark.parametrize("window", [FIVE_MINUTES, HOUR, SIX_HOURS], ids=["5m", "1h", "6h"])


def steps_at(moments: list[float], workloads: tuple[str, ...] = ("code", "chat")) -> list[Record]:
    """At each moment a step of a sequence of each workload, which drafts 4 and accepts more from time to time."""
    made: list[Record] = [engine()]
    for number, ts in enumerate(moments, 1):
        for place, workload in enumerate(workloads):
            name = f"{workload}{number}"
            made.append(sequence(name, workload, ts=ts - 0.05))
            rows = [row(name, a=(number + place) % 5, k=4)]
            made.append(step(number * len(workloads) + place, rows, ts=ts + place * 0.01))
    return made


@contextmanager
def taken_in(records: list[Record]) -> Iterator[tuple[LiveWindows, Store]]:
    windows = LiveWindows()
    with Store.memory() as store:
        ingest = Ingest(store, windows)
        for record in records:
            ingest.record(record)
        ingest.close()
        yield windows, store


DAY_SO_FAR = steps_at([NOW - back for back in range(int(6.5 * HOUR), 0, -137)])


def plain(figures: Figures) -> Figures:
    """Without the window, which a report tells as it was recorded, and what it divides."""
    return replace(figures, window=None, tokens_per_second=None)


@WINDOWS
def test_every_figure_is_that_of_a_report_over_the_same_time(window: float) -> None:
    with taken_in(DAY_SO_FAR) as (windows, store):
        told = report(store.connection, source="test", window=window, at=NOW - 1e-6)
        still = StillWindows(store.connection, NOW, {})
        for shown in (windows.buckets(NOW, window), still.buckets(NOW, window)):
            assert [plain(one.figures) for one in shown] == [plain(one) for one in told.buckets]
            assert {one.window_label for one in shown} == {SPANS[place_of(window) or 0][2]}
            assert all(one.figures.window is not None and one.figures.window.start == NOW - window for one in shown)
        assert told.total is not None
        for total in (windows.total(NOW, window), still.total(NOW, window)):
            assert total is not None
            assert plain(total) == plain(told.total)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.sampled_from([1.0, 9.0, 40.0, 400.0, 3000.0]), min_size=1, max_size=50),
    st.lists(st.tuples(st.sampled_from([0.25, 2.0, 11.0, 500.0]), st.sampled_from(SPANS)), min_size=1, max_size=8),
)
def test_the_window_that_a_bucket_chose_shows_the_same_when_it_is_fixed(
    pauses: list[float], looks: list[tuple[float, tuple[float, int, str]]]
) -> None:
    moments = [T0 + sum(pauses[: place + 1]) for place in range(len(pauses))]
    with taken_in(steps_at(moments)) as (windows, _):
        now = moments[-1]
        for pause, (other, _, _) in looks:  # whatever else was asked meanwhile
            now += pause
            windows.buckets(now, other)
            for chosen in windows.buckets(now):
                seconds = next(seconds for seconds, _, label in SPANS if label == chosen.window_label)
                assert chosen in windows.buckets(now, seconds)
        total = windows.total(now)
        assert total is None or total in [windows.total(now, seconds) for seconds, _, _ in SPANS]


def test_what_a_window_showed_before_nobody_kept_it_up_is_never_shown_again() -> None:
    with taken_in(steps_at([T0 + n for n in range(40)])) as (windows, _):
        assert [one.window_label for one in windows.buckets(T0 + 41)] == ["5 min", "5 min"]
        assert [one.figures.sequences for one in windows.buckets(T0 + 41, FIVE_MINUTES)] == [40, 40]
        later = T0 + 2 * HOUR
        assert [one.window_label for one in windows.buckets(later)] == ["6 h", "6 h"], "all left the shorter ones"
        windows._renew_seconds = 0.0
        assert [one.figures.sequences for one in windows.buckets(later, FIVE_MINUTES)] == [None, None]
        assert windows.buckets(later)[0].figures.sequences == 40


def test_a_first_look_at_many_buckets_is_taken_in_pieces() -> None:
    many = tuple(f"w{number}" for number in range(30))
    with taken_in(steps_at([T0 + n for n in range(3)], many)) as (windows, _):
        assert not windows.keep_up(T0 + 5, HOUR, patience=0.0), "each call makes a few at least"
        calls = 1
        while not windows.keep_up(T0 + 5, HOUR, patience=0.0):
            calls += 1
            assert calls < 40
        assert len(windows.buckets(T0 + 5, HOUR)) == 30


def test_few_buckets_are_brought_up_to_date_at_each_look_and_the_oldest_first() -> None:
    many = tuple(f"w{number:02}" for number in range(12))
    with taken_in(steps_at([T0 + n for n in range(3)], many)) as (windows, _):
        for now in (T0 + 5, T0 + 5 + CELL_SECONDS / 2):
            windows.buckets(now, HOUR)
        windows._renew_seconds = 0.0
        for looks in (1, 2, 3):
            found = windows.buckets(T0 + 5 + CELL_SECONDS, HOUR)
            ends = [one.figures.window.end for one in found if one.figures.window is not None]
            assert ends.count(T0 + 5 + CELL_SECONDS) == looks * RENEWED_AT_LEAST


def test_a_window_that_there_is_not_is_named_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="no window is 86400 s long; there are 5 min, 1 h, 6 h"):
        LiveWindows().buckets(T0, 86_400.0)
