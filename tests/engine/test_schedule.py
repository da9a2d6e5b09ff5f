"""Draft schedules: what is refused and how it is named, K per batch size as vLLM reads it, and both written forms."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.schedule import DraftSchedule, Range, ScheduleError, clamp, lookup, parse_schedule
from engine.schedule_file import VLLM_KEY, parse_text, read_schedule, to_json, to_toml

CASE = [[1, 16, 3], [32, 128, 2], [256, 2048, 0]]


def dense(entries: list[list[int]], largest: int, max_k: int) -> dict[int, int]:
    """vLLM's rule, batch size by batch size: inside a range its K, elsewhere that of the last range passed, clamped."""
    table = {}
    carried = None
    for size in range(1, largest + 1):
        for first, last, k in entries:
            if first <= size <= last:
                carried = k
        # A range that was passed in one stride cannot be: ranges are not empty.
        assert carried is not None
        table[size] = min(carried, max_k)
    return table


@st.composite
def schedules(draw: st.DrawFn) -> list[list[int]]:
    entries, start = [], 1
    for _ in range(draw(st.integers(1, 6))):
        last = start + draw(st.integers(0, 12))
        entries.append([start, last, draw(st.integers(0, 9))])
        start = last + 1 + draw(st.integers(0, 8))
    return entries


@pytest.mark.parametrize(("running", "k"), [(1, 3), (16, 3), (20, 3), (32, 2), (200, 2), (256, 0), (5000, 0)])
def test_gaps_and_the_tail_carry_the_last_k(running: int, k: int) -> None:
    assert lookup(parse_schedule(CASE), running) == k


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([], "non-empty"),
        ("[[1,2,3]]", "non-empty"),
        (None, "non-empty"),
        ({"1-2": 3}, "non-empty"),
        ([[2, 4, 1]], "entry 1 ([2, 4, 1])"),
        ([[0, 4, 1]], "entry 1 ([0, 4, 1])"),
        ([[1, 4, 2], [4, 8, 1]], "entry 2 ([4, 8, 1])"),
        ([[1, 4, 2], [9, 12, 1], [5, 8, 1]], "entry 3 ([5, 8, 1])"),
        ([[1, 4, 2], [8, 5, 1]], "entry 2 ([8, 5, 1])"),
        ([[1, 4, -1]], "entry 1 ([1, 4, -1])"),
        ([[1, 4, 2.5]], "2.5 is no whole number"),
        ([[1, 4, 2.0]], "2.0 is no whole number"),
        ([[1, 4, True]], "True is no whole number"),
        ([[1, 4]], "entry 1 ([1, 4])"),
        ([[1, 4, 2, 1]], "entry 1"),
        ([[1, 4, 2], "5-8:1"], "entry 2 ('5-8:1')"),
        ([[1, 4, "2"]], "'2' is no whole number"),
        ([[1, 4, None]], "None is no whole number"),
        ([[1, 4, 10**30]], "entry 1"),
        ([1, 4, 2], "entry 1 (1)"),
    ],
)
def test_a_schedule_that_cannot_be_meant_is_refused_with_the_entry_named(entries: Any, words: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        parse_schedule(entries)
    assert words in str(refused.value)


@given(schedules(), st.integers(0, 9))
def test_every_batch_size_gets_the_k_that_vllm_gives_it(entries: list[list[int]], max_k: int) -> None:
    clamped = clamp(parse_schedule(entries), max_k)
    largest = entries[-1][1] + 5
    assert {size: lookup(clamped.schedule, size) for size in range(1, largest + 1)} == dense(entries, largest, max_k)
    assert [list(entry) for entry in clamped.entries] == [entry for entry in entries if entry[2] > max_k]


@given(schedules(), st.data())
def test_one_wrong_entry_is_the_one_that_is_named(entries: list[list[int]], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(entries) - 1))
    fault: Any = data.draw(st.sampled_from([-1, 1.5, False, "1", None, [1]]))
    broken = [list(entry) for entry in entries]
    broken[place][2] = fault
    with pytest.raises(ScheduleError, match=rf"^entry {place + 1} "):
        parse_schedule(broken)


_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(_ANYTHING)
def test_whatever_is_not_refused_is_a_schedule(value: Any) -> None:
    try:
        schedule = parse_schedule(value)
    except ScheduleError:
        return
    assert schedule[0].first == 1
    assert all(isinstance(number, int) and 0 <= number < 2**31 for entry in schedule for number in entry)
    assert all(before.last < after.first <= after.last for before, after in itertools.pairwise(schedule))


@given(schedules())
def test_both_forms_say_the_same(entries: list[list[int]]) -> None:
    schedule = parse_schedule(entries)
    for written, form in ((to_json(schedule), "json"), (to_toml(schedule), "toml")):
        assert parse_text(written) == (schedule, form)
    assert json.loads(to_json(schedule)) == entries


@given(st.text(max_size=60))
@example("[schedule]\n1-4 = 2\n1-4 = 3")
@example("[" * 5000)
@example("[schedule]\nx = " + "[" * 5000)
@example("[[1,4," + "9" * 5000 + "]]")
@example("[[1,4,NaN]]")
def test_text_of_neither_form_is_refused_and_breaks_nothing(text: str) -> None:
    for form in (None, "json", "toml"):
        try:
            found = parse_text(text, form)  # type: ignore[arg-type]
        except ScheduleError:
            continue
        assert parse_schedule([list(entry) for entry in found.schedule]) == found.schedule


def test_toml_names_the_entry_as_json_does() -> None:
    with pytest.raises(ScheduleError, match=r"^night: entry 2 \(\[5, 8, 2\.5\]\)"):
        parse_text("[schedule]\n1-4 = 4\n5-8 = 2.5", name="night")
    with pytest.raises(ScheduleError, match=r"entry 1 \('1\.\.4'\)"):
        parse_text('[schedule]\n"1..4" = 4')
    with pytest.raises(ScheduleError, match="'cap' is unknown"):
        parse_text("cap = 2\n[schedule]\n1-4 = 4")
    with pytest.raises(ScheduleError, match=r"table \[schedule\]"):
        parse_text("", "toml")


def test_toml_may_name_a_single_size_and_be_written_by_hand() -> None:
    text = '# busy hours\n\n[ schedule ]\n"1" = 4   # alone\n" 2 - 8 " = 1\n'
    assert parse_text(text).schedule == (Range(1, 1, 4), Range(2, 8, 1))


def test_vllms_speculative_config_is_read_too() -> None:
    config = json.dumps({"method": "ngram", "num_speculative_tokens": 3, VLLM_KEY: CASE})
    assert read_schedule(config).schedule == parse_schedule(CASE)
    with pytest.raises(ScheduleError, match=VLLM_KEY):
        read_schedule('{"method": "ngram"}')


def test_a_file_is_read_by_its_name_or_by_what_it_looks_like(tmp_path: Path) -> None:
    schedule: DraftSchedule = parse_schedule(CASE)
    for name, text in (("a.json", to_json(schedule)), ("b.toml", to_toml(schedule)), ("c", to_toml(schedule))):
        path = tmp_path / name
        path.write_text(text)
        assert read_schedule(str(path)).schedule == schedule
    (tmp_path / "d.json").write_text(to_toml(schedule))
    with pytest.raises(ScheduleError, match=r"d\.json: "):
        read_schedule(str(tmp_path / "d.json"))


def test_a_file_that_cannot_be_read_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "large.json").write_bytes(b" " * (1 << 21))
    for name, words in (
        ("none.toml", "No such file"),
        ("b.toml", "no text"),
        ("large.json", "1 MiB"),
        ("", "directory"),
    ):
        with pytest.raises(ScheduleError, match=words) as refused:
            read_schedule(str(tmp_path / name))
        assert str(tmp_path) in str(refused.value)
