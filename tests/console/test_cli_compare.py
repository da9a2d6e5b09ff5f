"""`specdeck compare`: the windows that operators type, what is refused, and the table at 80 columns."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from console.cli.outcomes import BAD_INPUT, OK, UNREACHABLE, BadInput
from console.cli.root import root
from console.cli.windows import Bounds, overlap, parse_window
from engine.records import ControlRecord, Record
from store.database import Store
from store.ingest import Ingest
from store.source import take_in
from store.trace import TraceWriter
from tests.console.station_harness import StationUnderTest
from tests.store.builders import T0, engine, row, sequence, step

HOSTILE = "[bold red]x[/]\x1b[2J'; DROP TABLE steps;--" + "long" * 30
NIGHT = (1_790_028_000.0, 1_790_049_600.0)
"""2026-09-21 22:00 to 2026-09-22 04:00, UTC."""


def specdeck(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["compare", *arguments])


def records(began: float = T0) -> list[Record]:
    """A minute at K 4 and a good drafter, a minute of nothing, then a minute at K 2 with a worse one."""
    found: list[Record] = [engine(began)]
    for first, d, accepted, name in ((began, 4, 3, "a"), (began + 120, 2, 1, "b")):
        tags = ["code", HOSTILE if name == "a" else "chat"]
        found += [sequence(f"{name}{n}", tags[n % 2], ts=first) for n in range(24)]
        found += [
            step(n, [row(f"{name}{n % 24}", d=d, a=accepted - (n % 5 == 0))], ts=first + n * 0.25)
            for n in range(1, 241)
        ]
    found.insert(-241, ControlRecord(began + 100, "operator", "mode", None, None, {"mode": "static", "k": 2}))
    return found


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compare") / "two.jsonl"
    with TraceWriter(path) as out:
        for record in records():
            out.write(record)
    return path


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        (None, None, None),
        ("1790030000..1790030600.5", 1_790_030_000.0, 1_790_030_600.5),
        ("+10m..+20m", NIGHT[0] + 600, NIGHT[0] + 1200),
        ("+0..+90s", NIGHT[0], NIGHT[0] + 90),
        ("-30m..", NIGHT[1] - 1800, None),
        ("..-1h", None, NIGHT[1] - 3600),
        ("-2h..-0s", NIGHT[1] - 7200, NIGHT[1]),
        ("22:10..22:40:30", NIGHT[0] + 600, NIGHT[0] + 2430),
        ("23:30..00:30", NIGHT[0] + 5400, NIGHT[0] + 9000),
        ("3:00..", NIGHT[0] + 18000, None),
        ("..01:00", None, NIGHT[0] + 10800),
        ("22:30..+1h", NIGHT[0] + 1800, NIGHT[0] + 3600),
        ("2026-09-21T23:00..2026-09-22 01:00", NIGHT[0] + 3600, NIGHT[0] + 10800),
    ],
)
def test_a_window_is_read_as_operators_write_it(utc: None, text: str, start: float | None, end: float | None) -> None:
    assert parse_window(text, "--a", NIGHT) == Bounds(start, end)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("22:10", "no window"),
        ("..", "no window"),
        ("", "no window"),
        ("22:10-22:40", "no window"),
        ("25:10..", "25:10"),
        ("22:61..", "22:61"),
        ("soon..", "soon"),
        ("+5x..", "5x"),
        ("+..", "span"),
        ("nan..", "nan"),
        ("..inf", "inf"),
        ("1e300..", "1e300"),
        ("+20m..+10m", "ends before it begins"),
        ("+10m..+10m", "ends before it begins"),
        ("+7h..", "nothing was recorded then"),
        ("1000..2000", "2026-09-21 22:00:00 to 2026-09-22 04:00:00"),
    ],
)
def test_what_is_no_window_is_refused_by_name(utc: None, text: str, words: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_window(text, "--b", NIGHT)
    assert "--b" in refused.value.message
    assert words in refused.value.message


@given(st.text(alphabet="0123456789:.+-smhdTne ", max_size=24))
@settings(max_examples=200, deadline=None)
def test_whatever_is_typed_is_a_window_or_refused(text: str) -> None:
    for span in (NIGHT, None):
        try:
            found = parse_window(text, "--a", span)
        except BadInput:
            continue
        assert found.start is None or found.end is None or found.start < found.end


def test_windows_that_touch_do_not_overlap() -> None:
    assert overlap(Bounds(0, 10), Bounds(10, None)) == 0
    assert overlap(Bounds(None, 12), Bounds(10, 20)) == 2


def test_two_windows_of_one_trace_are_shown_in_80_columns(trace: Path) -> None:
    shown = specdeck(str(trace), "--a", "+0s..+90s", "--b", "+110s..")
    assert shown.exit_code == OK, shown.output
    lines = shown.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert not {char for char in shown.stdout if not char.isprintable()} - {"\n"}
    text = " ".join(shown.stdout.split())
    assert "configured A static:4 B static:2" in text
    assert "code 0-512 0: K differed: α is not comparable, at depth is" in text
    assert "chat 0-512 0: only in B" in text
    assert "[bold red]x[/]" in text
    code = next(place for place, line in enumerate(lines) if line.startswith("code"))
    difference = lines[code + 3]
    assert difference.split()[:3] == ["B", "−", "A"]
    assert "*" in difference


def test_the_json_carries_both_sides_whole(trace: Path) -> None:
    shown = specdeck(str(trace), "--json", "--a", f"{T0}..{T0 + 60}", "--b", f"{T0 + 60}..", "--by", "workload")
    assert shown.exit_code == OK, shown.output
    assert "NaN" not in shown.stdout
    found: dict[str, Any] = json.loads(shown.stdout)
    assert list(found) == ["a", "b", "by", "configuration", "buckets", "total", "notes"]
    (code,) = [one for one in found["buckets"] if one["workload"] == "code"]
    assert code["k_differs"]
    assert code["at_depth"]["depth"] == 2
    assert (code["a"]["k_histogram"], code["b"]["k_histogram"]) == ({"4": 120}, {"2": 120})
    assert {one["workload"] for one in found["buckets"] if one["b"] is None} == {HOSTILE}
    assert found["total"]["a"]["decode_rows"] == found["total"]["b"]["decode_rows"] == 240


def test_a_trace_and_a_store_are_held_together(trace: Path, tmp_path: Path) -> None:
    assert CliRunner().invoke(root, ["export", str(trace), str(tmp_path / "copy.duckdb")]).exit_code == OK
    shown = specdeck(str(trace), str(tmp_path / "copy.duckdb"), "--json")
    assert shown.exit_code == OK, shown.output
    found = json.loads(shown.stdout)
    assert all(one["a"] == one["b"] for one in found["buckets"])
    assert found["configuration"] == []
    assert "same run of e0" in found["notes"][0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "--a +0m..+10m --b"),
        (("--a", "+0s..+20s"), "alone has two sides"),
        (("--a", "+0s..+20s", "--b", "+15s..+60s"), "overlap by 5 s"),
        (("--a", "+0s..+20s", "--b", "+10h..+11h"), "nothing was recorded then"),
        (("--a", "+0s..+20s", "--b", "+20s..", "--by", "colour"), "colour"),
    ],
)
def test_what_can_not_be_held_together_is_refused(trace: Path, options: tuple[str, ...], words: str) -> None:
    for sources in ((str(trace),), (str(trace), str(trace))):
        refused = specdeck(*sources, *options)
        assert (refused.exit_code, refused.stdout) == (BAD_INPUT, "")
        assert words in refused.stderr


def test_a_source_that_is_none_is_named(trace: Path, tmp_path: Path, place: Path) -> None:
    (tmp_path / "no.jsonl").write_text("{}\n")
    duckdb.connect(str(tmp_path / "empty.duckdb")).close()
    with Store.open(tmp_path / "cut.duckdb") as store:
        take_in(trace, Ingest(store))
    whole = (tmp_path / "cut.duckdb").read_bytes()
    (tmp_path / "cut.duckdb").write_bytes(whole[: len(whole) // 2])
    for source in (*(tmp_path / name for name in ("none", "no.jsonl", "empty.duckdb", "cut.duckdb")), tmp_path):
        refused = specdeck(str(trace), str(source))
        assert (refused.exit_code, refused.stdout) == (BAD_INPUT, "")
        assert source.name in refused.stderr
    assert specdeck("--a", "-2m..-1m", "--b", "-1m..").exit_code == UNREACHABLE


def test_a_running_station_answers_as_its_store_would(place: Path) -> None:
    station = StationUnderTest(place, engine=False)
    with Store.open(station.store) as store:
        ingest = Ingest(store)
        for record in records(time.time() - 3600):
            ingest.record(record)
        ingest.close()
    windows = ("--json", "--a", "+0s..+80s", "--b", "+80s..")
    before = json.loads(specdeck(str(station.store), *windows).stdout)
    station.start()
    try:
        shown = specdeck(*windows)
        refused = specdeck(*windows, "--by", "hat")
    finally:
        station.close()
    assert shown.exit_code == OK, shown.output
    live = json.loads(shown.stdout)
    assert live["a"]["source"] == "live"
    assert (live["buckets"], live["configuration"]) == (before["buckets"], before["configuration"])
    assert refused.exit_code == BAD_INPUT
    assert msgspec.json.encode(live["total"]) == msgspec.json.encode(before["total"])
