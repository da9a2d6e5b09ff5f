"""A stretch of record time is read so that every moment of it counts once, from the coarsest cells that fit."""

from __future__ import annotations

import math
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from store.levels import LEVELS
from store.segments import Stretch, split

NOW = 1_790_003_600.0
moments = st.floats(NOW - 20 * 86400, NOW, allow_nan=False)


def rolled(now: float) -> list[float]:
    """Marks as a station keeps them: every level as far as whole cells of the one before go."""
    marks = [LEVELS[0].floor(now)]
    for level in LEVELS[1:]:
        marks.append(level.floor(marks[-1]))
    return marks


def covered(stretch: Stretch, ts: float) -> int:
    """How often a step that ended at `ts` is counted."""
    raw = stretch.start < ts <= stretch.end and (ts < stretch.first or ts >= stretch.last)
    return raw + sum(start <= level.floor(ts) < end for level, start, end in stretch.segments)


@given(st.tuples(moments, moments).map(sorted), st.lists(moments, max_size=20))
def test_every_moment_inside_counts_once_and_none_outside(bounds: list[float], others: list[float]) -> None:
    start, end = bounds
    stretch = split(start, end, 0.0, rolled(NOW), [0.0] * 3)
    assert (stretch.start, stretch.end) == (start, end)
    edges = [edge for segment in stretch.segments for edge in segment[1:]]
    for ts in [*others, *edges, start, end, math.nextafter(start, math.inf), stretch.first, stretch.last]:
        assert covered(stretch, ts) == (start < ts <= end), ts


@given(st.tuples(moments, moments).map(sorted))
def test_cells_are_whole_and_join_without_a_gap(bounds: list[float]) -> None:
    stretch = split(*bounds, 0.0, rolled(NOW), [0.0] * 3)
    for level, start, end in stretch.segments:
        assert start % level.seconds == end % level.seconds == 0
    for before, after in pairwise(stretch.segments):
        assert before.end == after.start
    seconds = [level.seconds for level, _, _ in stretch.segments]
    assert (
        seconds
        == sorted(seconds[: seconds.index(max(seconds)) + 1])
        + sorted(seconds[seconds.index(max(seconds)) + 1 :], reverse=True)
        if seconds
        else True
    )


def test_a_week_is_read_from_hours_and_its_ends_from_finer_cells() -> None:
    stretch = split(NOW - 7 * 86400 - 123.0, NOW - 77.0, 0.0, rolled(NOW), [0.0] * 3)
    assert [level.name for level, _, _ in stretch.segments] == ["10s", "5m", "1h", "5m", "10s"]
    assert stretch.first - stretch.start <= 10
    assert stretch.end - stretch.last <= 10


def test_everything_begins_with_the_first_hour_there_is() -> None:
    stretch = split(-math.inf, math.inf, 0.0, rolled(NOW), [0.0] * 3)
    assert stretch.segments[0] == (LEVELS[-1], 0.0, LEVELS[-1].floor(NOW))
    assert covered(stretch, NOW + 5) == 1


def test_where_raw_rows_are_gone_the_stretch_begins_with_a_cell() -> None:
    start = NOW - 86400 + 3.0
    stretch = split(start, NOW, NOW - 3600, rolled(NOW), [0.0] * 3)
    assert stretch.first == LEVELS[0].floor(start)
    assert stretch.start == math.nextafter(stretch.first, 0.0)


def test_where_fine_cells_are_gone_the_stretch_begins_with_a_coarse_one() -> None:
    start = NOW - 10 * 86400 + 400.0
    kept = [NOW - 7 * 86400, NOW - 60 * 86400, 0.0]
    stretch = split(start, NOW, NOW - 3600, rolled(NOW), kept)
    assert stretch.first == LEVELS[1].floor(start)
    assert stretch.segments[0].level is LEVELS[1]


def test_a_store_without_rollups_is_read_from_its_rows() -> None:
    stretch = split(NOW - 100, NOW, 0.0, [0.0] * 3, [0.0] * 3)
    assert stretch.segments == []
    assert covered(stretch, NOW - 50) == 1
    assert covered(stretch, NOW - 100) == 0


def test_where_raw_rows_are_gone_the_stretch_ends_with_a_cell_too() -> None:
    end = NOW - 5000.0
    stretch = split(end - 100.0, end, NOW - 3600, rolled(NOW), [0.0] * 3)
    assert stretch.last == LEVELS[0].floor(end) + 10
    assert covered(stretch, end) == 1
    assert covered(stretch, stretch.last) == 0
    inside_one_cell = split(end + 2.0, end + 3.0, NOW - 3600, rolled(NOW), [0.0] * 3)
    assert covered(inside_one_cell, end + 2.5) == 1
