"""What a station and a replay say of one bucket: the same figures of the same records, and why one is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.feed.bucket_detail import BucketDetail, BucketDetailParams, MarginalGain
from console.feed.messages import Series
from console.feed.protocol import SeriesParams
from console.feed.server import FeedError
from console.picturing.marginal_points import decided_gains, with_marginals
from console.replaying import queries as replaying
from console.replaying.acts import ReplayAct, replay_act
from console.replaying.opened import opened
from console.replaying.player import Player
from console.station import bucket_queries, queries
from console.station.events import EventLog
from console.station.marginals import EVERY_SECONDS, Marginals
from console.station.recorder import open_recorder
from engine.deciding.marginal import Judged
from engine.intervals import Interval
from engine.records import ControlRecord
from store.figures import SeriesPoint
from tests.store.builders import T0, announcement, arrived, frame, row

SECONDS = 60
DECIDED = ControlRecord(
    T0 + 25, "adaptive", "k", "code", {}, {"k": 4}, 2, numbers={"marginal": 1.2, "low": 1.1, "high": 1.3, "k_before": 2}
)


class Both:
    """One record, in a station at its last moment and in a replay that stands there."""

    def __init__(self, folder: Path, now: float) -> None:
        path = folder / "store.duckdb"
        recorder = open_recorder(path, lambda kind, text: None)
        names = [arrived(number) for number in range(4)]
        recorder.ingest.announcement(announcement(names, max_k=4), T0)
        for number in range(1, SECONDS * 10):
            rows = [row(str(n), d=4, a=(n * number) % 5, k=4) for n in range(4)]
            recorder.ingest.frame(frame(number, rows, ts=T0 + number * 0.1), T0 + number * 0.1)
        recorder.ingest.control(DECIDED)
        recorder.ingest.flush()
        (bucket,) = recorder.windows.buckets(now)
        self.key = (bucket.key.workload, bucket.key.context, bucket.key.temperature, bucket.key.model_version)
        known = SimpleNamespace(record=SimpleNamespace(max_k=4))
        control = SimpleNamespace(
            deciding=SimpleNamespace(marginals=Marginals()), roster=SimpleNamespace(engines={"e0": known})
        )
        self.station: Any = SimpleNamespace(recorder=recorder, control=control, events=EventLog())
        params = SeriesParams(key=self.key, seconds=60.0, points=6, detail=True)
        self.live: Series = asyncio.run(queries.series(self.station, params, "ann"))
        self.plain: Series = asyncio.run(
            queries.series(self.station, SeriesParams(key=self.key, seconds=60.0, points=6), "ann")
        )
        self.detail: BucketDetail = asyncio.run(
            bucket_queries.bucket_detail(self.station, BucketDetailParams(key=self.key), "ann")
        )
        recorder.store.close()
        with opened(path, None, lambda: None) as found:
            player = Player(found)
            replay_act(player, ReplayAct(act="seek", share=1.0))
            self.replayed = replaying.series(player, params)
            self.replayed_detail = replaying.bucket_detail(player, BucketDetailParams(key=self.key))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """The station's clock is the record's."""
    now = T0 + SECONDS - 0.1
    patch = pytest.MonkeyPatch()
    for module in ("queries", "bucket_queries", "recorder"):
        patch.setattr(f"console.station.{module}.time", SimpleNamespace(time=lambda: now, monotonic=lambda: 0.0))
    yield Both(tmp_path_factory.mktemp("both"), now)
    patch.undo()


def test_series_of_both_are_the_same(both: Both) -> None:
    assert len(both.live.points) == 6
    for live, replayed in zip(both.live.points, both.replayed.points, strict=True):
        assert (live.ts, live.alpha, live.sequences) == (replayed.ts, replayed.alpha, replayed.sequences)
        assert live.sequences == 4
        assert live.alpha_low == pytest.approx(replayed.alpha_low)
        assert live.alpha is not None
        assert live.alpha_low is not None
        assert live.alpha_high is not None
        assert live.alpha_low < live.alpha < live.alpha_high


def test_without_detail_the_points_are_as_before(both: Both) -> None:
    for plain, detailed in zip(both.plain.points, both.live.points, strict=True):
        assert (plain.alpha, plain.waste, plain.running) == (detailed.alpha, detailed.waste, detailed.running)
        assert (plain.sequences, plain.alpha_low, plain.speedup) == (None, None, None)


def test_details_of_both_are_the_same_but_for_what_no_record_holds(both: Both) -> None:
    live, replayed = both.detail, both.replayed_detail
    assert live.measured == replayed.measured
    assert live.worst == replayed.worst
    assert len(live.worst) == 4
    assert live.acceptance is not None
    assert (live.theory, live.absent["cost"]) == ([], "step times not measured yet")
    assert live.absent["level"] == "no baseline yet: one is usable after a day"
    assert replayed.absent["level"] == "a replay keeps no baselines"


def test_a_replay_knows_the_gains_that_decisions_were_made_by(both: Both) -> None:
    assert both.detail.marginal is None
    assert "needs step times" in both.detail.absent["marginal"]
    assert both.replayed_detail.marginal == MarginalGain(ts=DECIDED.ts, k=2, gain=1.2, low=1.1, high=1.3)
    told = [point.marginal for point in both.replayed.points]
    assert told == [None, None, 1.2, None, None, None]


def test_a_station_that_only_observes_refuses(both: Both) -> None:
    blind: Any = SimpleNamespace(recorder=None, control=None)
    with pytest.raises(FeedError, match="only observes"):
        asyncio.run(bucket_queries.bucket_detail(blind, BucketDetailParams(key=both.key), "ann"))


def test_gains_are_noted_every_half_minute_and_kept_for_six_hours() -> None:
    marginals = Marginals()
    for number in range(2000):
        now = number * 15.0
        if marginals.due(now):
            marginals.note(now, {"code": Judged(0, 2, 1.1, Interval(1.0, 1.2), (0.5,), 31)})
    held = marginals.of("code")
    assert (len(held), held[-1].ts - held[0].ts) == (720, 719 * EVERY_SECONDS)
    assert (held[0].k, held[0].low, held[0].sequences) == (2, 1.0, 31)
    assert marginals.of("chat") == []


def test_the_last_gain_of_a_cell_stands_for_it_and_numbers_that_are_none_are_left_out() -> None:
    cells = [SeriesPoint(ts, None, None, None, 0.0, None, None) for ts in (30.0, 60.0)]
    gains = [MarginalGain(ts=ts, k=1, gain=ts) for ts in (1.0, 29.9, 30.0)]
    assert [point.marginal for point in with_marginals(cells, 30.0, gains)] == [29.9, 30.0]
    odd = [ControlRecord(1.0, "a", "k", "code", numbers=numbers) for numbers in (None, {"marginal": "x"}, {})]
    assert list(decided_gains(odd, "code")) == []
