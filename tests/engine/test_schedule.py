"""Draft schedules: what they give at each number of sequences, and which can't be meant."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.schedule import ScheduleError, lookup, parse_schedule

EXAMPLE = [[1, 16, 3], [32, 128, 2], [256, 2048, 0]]


@pytest.mark.parametrize(
    ("running", "k"), [(1, 3), (16, 3), (17, 3), (20, 3), (32, 2), (200, 2), (255, 2), (256, 0), (2048, 0), (5000, 0)]
)
def test_gaps_and_the_tail_carry_the_last_k(running: int, k: int) -> None:
    assert lookup(parse_schedule(EXAMPLE), running) == k


ranges = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 40), st.integers(0, 9)), min_size=1, max_size=6)


@given(ranges, st.integers(1, 400))
def test_k_is_that_of_the_last_range_that_began(drawn: list[tuple[int, int, int]], running: int) -> None:
    entries, first = [], 1
    for gap, length, k in drawn:
        entries.append([first, first + length, k])
        first += length + gap
    expected = [k for start, _, k in entries if start <= running][-1]
    assert lookup(parse_schedule(entries), running) == expected


@pytest.mark.parametrize(
    ("entries", "named"),
    [
        pytest.param([], "non-empty", id="empty"),
        pytest.param("[[1, 2, 3]]", "non-empty", id="text"),
        pytest.param([[2, 4, 1]], "entry 1", id="late start"),
        pytest.param([[1, 4, 1], [4, 9, 0]], "entry 2", id="overlap"),
        pytest.param([[1, 4, 1], [9, 8, 0]], "entry 2", id="backward"),
        pytest.param([[1, 4, -1]], "entry 1", id="negative"),
        pytest.param([[1, 4, 1.5]], "entry 1", id="half"),
        pytest.param([[1, 4, 2.0]], "entry 1", id="float"),
        pytest.param([[1, 4, True]], "entry 1", id="boolean"),
        pytest.param([[1, 4]], "entry 1", id="two elements"),
        pytest.param([[1, 4, "2"]], "entry 1", id="text as k"),
        pytest.param(["1,4"], "entry 1", id="text as entry"),
        pytest.param([None], "entry 1", id="nothing"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_entry_named(entries: Any, named: str) -> None:
    with pytest.raises(ScheduleError, match=named):
        parse_schedule(entries)
