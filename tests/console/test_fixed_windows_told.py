"""A station and a replay, asked for a window: what `specdeck report --window` prints for that moment, and one side of a
comparison as of a replay's clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from console.cli.outcomes import BadInput
from console.cli.root import root
from console.cli.station import ask
from console.feed.fixed_window import FixedFigures, FixedWindow
from console.feed.protocol import ReplayAct, ReportParams, SideParams
from console.feed.server import FeedError
from console.replaying.acts import replay_act
from console.replaying.opened import opened
from console.replaying.player import Player
from console.replaying.queries import buckets, report, side
from engine.records import Record
from store.database import Store
from store.figures import BucketKey, Figures, Report
from store.ingest import Ingest
from store.window_spans import SPANS
from tests.console.station_harness import StationUnderTest
from tests.store.builders import T0, engine, row, sequence, step

HOUR = 3600.0
PAST = ((5.5 * HOUR, 40), (3 * HOUR, 40), (0.6 * HOUR, 25), (120.0, 12))
"""Seconds before the present, and how many sequences of `history` ran then."""
EXPECTED = {300.0: 12, HOUR: 37, 6 * HOUR: 117}


def history(now: float) -> list[Record]:
    made: list[Record] = [engine(now - 6 * HOUR, engine="old")]
    number = 0
    for back, many in PAST:
        for n in range(many):
            number, ts = number + 1, now - back + n * 0.5
            name = f"h{number}"
            made.append(replace(sequence(name, "history", ts=ts - 0.1), engine="old"))
            made.append(step(number, [row(name, a=(number * 7) % 5)], ts=ts, engine="old"))
    return made


def recorded(path: Path, records: list[Record]) -> None:
    with Store.open(path) as store:
        ingest = Ingest(store)
        for record in records:
            ingest.record(record)
        ingest.close()


def plain(figures: Figures) -> Figures:
    """Without where the window begins, which is a whole cell, and what is divided by its length."""
    return replace(figures, window=None, tokens_per_second=None, engine=None, model_version=None)


def of_history(found: FixedFigures) -> Figures:
    (mine,) = [bucket for bucket in found.buckets if bucket.key.workload == "history"]
    return mine.figures


def test_a_station_answers_as_a_report_of_the_same_time(place: Path) -> None:
    station = StationUnderTest(place)
    recorded(station.store, history(time.time()))
    try:
        station.start()
        station.wait_serving()
        for seconds, _, label in SPANS:
            found = ask("buckets", FixedFigures, FixedWindow(window=seconds), seconds=20.0)
            span = label.replace(" min", "m").replace(" ", "")
            printed = CliRunner().invoke(root, ["report", "--window", span, "--json"])
            assert printed.exit_code == 0, printed.output
            told = msgspec.json.decode(printed.stdout, type=Report)
            (mine,) = [one for one in told.buckets if one.workload == "history"]
            assert plain(of_history(found)) == plain(mine)
            assert mine.sequences == EXPECTED[seconds]
            assert {bucket.window_label for bucket in found.buckets} == {label}
            assert found.total is not None
            assert (found.total.sequences or 0) >= sum(bucket.figures.sequences or 0 for bucket in found.buckets)
        shown = station.snapshot()
        assert shown is not None
        assert {bucket.window_label for bucket in shown.buckets if bucket.key.workload == "history"} == {"1 h"}, (
            "its own choice, whatever consoles ask"
        )
        with pytest.raises(BadInput, match="no window is 86400 s long"):
            ask("buckets", FixedFigures, FixedWindow(window=86_400.0), seconds=20.0)
    finally:
        station.close()


@pytest.fixture(scope="module")
def player(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Player]:
    path = tmp_path_factory.mktemp("windows") / "past.duckdb"
    later = [replace(sequence("late", "history", ts=T0 + 900), engine="old"),
             step(9000, [row("late")], ts=T0 + 900.5, engine="old")]  # fmt: skip
    recorded(path, [*history(T0), *later])
    with opened(path, None, lambda: None) as found:
        yield Player(found, wall=lambda: 0.0)


@pytest.mark.parametrize("window", [seconds for seconds, *_ in SPANS], ids=["5m", "1h", "6h"])
@pytest.mark.parametrize("way", ["seek", "step"])
def test_a_replay_answers_as_a_report_as_of_its_clock(player: Player, window: float, way: str) -> None:
    replay_act(player, ReplayAct(act="seek", ts=T0 - 30.0))
    if way == "step":  # windows that go on, no still ones
        player.take()
        replay_act(player, ReplayAct(act="seek", ts=T0))
    else:
        replay_act(player, ReplayAct(act="seek", ts=T0))
        player.take()
    found = buckets(player, FixedWindow(window=window))
    assert found.ts == T0
    (mine,) = report(player, ReportParams(window=window)).buckets
    assert plain(of_history(found)) == plain(mine)
    assert mine.sequences == EXPECTED[window]
    assert found.buckets[0].key == BucketKey("history", "0-512", "0", found.buckets[0].key.model_version)


def test_a_window_that_there_is_not_is_refused_by_a_replay_too(player: Player) -> None:
    with pytest.raises(FeedError, match="no window is 60 s long; there are 5 min, 1 h, 6 h"):
        buckets(player, FixedWindow(window=60.0))


def test_a_side_never_reaches_past_the_clock_of_a_replay(player: Player) -> None:
    replay_act(player, ReplayAct(act="seek", ts=T0))
    for end in (None, T0 + 5000):
        found = side(player, SideParams(start=T0 - 300, end=end))
        assert [one.figures.sequences for one in found.buckets] == [12]
    before = side(player, SideParams(start=T0 - HOUR, end=T0 - 300))
    assert [one.figures.sequences for one in before.buckets] == [25]
    with pytest.raises(FeedError, match="can't begin"):
        side(player, SideParams(start=T0 + 10, end=T0 + 20))
