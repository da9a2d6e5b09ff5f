"""Live windows: the same figures as the report's, from memory; bounded; moving on with time."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from msgspec.structs import replace

from engine.records import GapRecord, Record, Row
from store.buckets import CALIBRATION
from store.database import Store
from store.engine_loads import EngineLoads
from store.figures import BucketKey
from store.ingest import Ingest
from store.levels import CELL_SECONDS
from store.preload import preload
from store.windows import LiveWindows
from tests.store.builders import T0, announcement, arrived, engine, finished, frame, row, sequence, step

VERSION = "target | drafter | ngram | vllm 0.32.0"
CODE = BucketKey("code", "0-512", "0", VERSION)


def live(records: Iterable[Record]) -> LiveWindows:
    windows = LiveWindows()
    with Store.memory() as store:
        feed(store, windows, records)
    return windows


def feed(store: Store, windows: LiveWindows | None, records: Iterable[Record]) -> None:
    ingest = Ingest(store, windows)
    for record in records:
        ingest.record(record)
    ingest.close()


def spread(many: int, seconds: float, one: Row | None = None) -> list[Record]:
    """`many` sequences, one after another, a step each, evenly over `seconds`."""
    records: list[Record] = [engine()]
    for number in range(many):
        ts = T0 + (number + 1) * seconds / many
        records.append(sequence(f"s{number}", ts=ts - 0.01))
        shaped = row(f"s{number}") if one is None else Row(f"s{number}", *_rest(one))
        records.append(step(number + 1, [shaped], ts=ts))
    return records


def _rest(one: Row) -> list[object]:
    return [getattr(one, name) for name in one.__struct_fields__[1:]]


def test_the_smallest_window_with_thirty_sequences_is_shown() -> None:
    windows = live(spread(60, 540.0))
    (bucket,) = windows.buckets(T0 + 541)
    assert (bucket.key, bucket.window_label) == (CODE, "5 min")
    assert bucket.figures.window is not None
    assert bucket.figures.window.start == pytest.approx(T0 + 250, abs=1e-4)
    assert bucket.figures.sequences == 33
    assert live(spread(20, 540.0)).buckets(T0 + 541)[0].window_label == "1 h", "6 h would know no more"


def test_a_window_is_kept_until_it_has_fewer_than_twenty_sequences() -> None:
    windows = live(spread(60, 540.0))
    assert windows.buckets(T0 + 541)[0].window_label == "5 min"
    assert windows.buckets(T0 + 541 + 110)[0].window_label == "5 min", "still 20 or more"
    assert windows.buckets(T0 + 541 + 140)[0].window_label == "1 h", "fewer than 20, and the hour has 60"
    fresh = live(spread(60, 540.0))
    assert fresh.buckets(T0 + 541 + 110)[0].window_label == "1 h", "never shown, so nothing is kept"


def test_the_operator_can_fix_a_window() -> None:
    windows = live(spread(60, 540.0))
    (bucket,) = windows.buckets(T0 + 541, 3600.0)
    assert (bucket.window_label, bucket.figures.sequences) == ("1 h", 60)


def test_what_is_older_than_six_hours_is_gone() -> None:
    windows = live(spread(40, 60.0))
    assert windows.total(T0 + 100) is not None
    assert windows.buckets(T0 + 7 * 3600) == []
    assert windows.total(T0 + 7 * 3600) is None
    assert windows._groups == {}
    assert not windows._pool.windows[-1].total.sequences


def test_tokens_per_second_uses_recorded_time_without_outages() -> None:
    windows = live([*spread(20, 20.0), GapRecord("e0", T0 + 30, 5, since=T0 + 20)])
    total = windows.total(T0 + 30)
    assert total is not None
    recorded_from = T0 + 1.0 - 0.1
    assert total.emitted == 60
    assert total.tokens_per_second == pytest.approx(60 / (T0 + 20 - recorded_from))


def test_tokens_per_second_of_the_last_ten_seconds_falls_to_zero_when_idle() -> None:
    windows = live(spread(20, 20.0))
    assert windows.tokens_per_second(T0 + 20.5) == pytest.approx(3.0)
    assert windows.tokens_per_second(T0 + 60) == 0.0
    assert LiveWindows().tokens_per_second(T0) is None


def test_a_series_has_a_point_for_each_recorded_cell() -> None:
    windows = live(spread(60, 60.0))
    points = windows.series(CODE, 900.0, 120, T0 + 60)
    assert [point.ts for point in points] == [T0 + 10 * n for n in range(1, 7)]
    assert points[2].alpha == 0.5
    assert points[2].waste == 0.5
    assert points[2].executed_k == 4.0
    assert points[2].accepted_length == 3.0
    assert points[2].running == 1.0
    assert points[2].tokens_per_second == pytest.approx(3.0)
    assert windows.series(None, 900.0, 120, T0 + 60) == points
    assert windows.series(BucketKey("no", "such", "bucket", None), 900.0, 120, T0) == []
    empty = windows.series(CODE, 900.0, 120, T0 + 400)[-1]
    assert (empty.alpha, empty.executed_k, empty.running, empty.tokens_per_second) == (None, None, None, 0.0)


def test_a_long_series_is_made_of_wider_cells() -> None:
    points = live(spread(60, 3600.0)).series(CODE, 3600.0, 60, T0 + 3600)
    assert len(points) == pytest.approx(60, abs=1)
    assert {round(b.ts - a.ts) for a, b in pairwise(points)} == {60}


def test_a_sparkline_covers_fifteen_minutes_and_knows_where_nothing_was_drafted() -> None:
    windows = live(spread(60, 60.0))
    (bucket,) = windows.buckets(T0 + 61)
    assert len(bucket.spark) == 30
    assert bucket.spark[0] is None
    assert bucket.spark[-2] == 0.5


def test_the_mix_of_draft_lengths_adds_up() -> None:
    windows = live([engine(), sequence("a"), step(1, [row(d=0, a=0)]), step(2, [row(d=3, a=0)] * 3)])
    (bucket,) = windows.buckets(T0 + 1)
    assert bucket.k_mix == [0.25, 0.0, 0.0, 0.75]
    assert bucket.last_seen == pytest.approx(T0 + 0.2, abs=1e-4)


def test_the_load_of_an_engine_ends_with_its_sequences() -> None:
    windows = LiveWindows()
    with Store.memory() as store:
        ingest = Ingest(store, windows)
        ingest.announcement(announcement([arrived(1), arrived(2)]), T0)
        ingest.frame(frame(1, [row("1"), row("2")], policy=7, waiting=0), T0)
        load = windows.engine_load("e0")
        assert load is not None
        assert (load.running, load.executed_k, load.executed_limit, load.policy) == (2, 4, "static", 7)
        ingest.frame(frame(2, [row("1"), row("2")], finishes=[finished(1, T0), finished(2, T0)]), T0)
        load = windows.engine_load("e0")
        assert load is not None
        assert (load.running, load.waiting, load.last_frame) == (0, 0, pytest.approx(T0 + 0.2, abs=1e-4))


def test_where_the_batch_k_is_fixed_the_load_shows_what_was_asked_for() -> None:
    windows = live(
        [engine(batch_k="fixed"), sequence("a"), step(1, [row(d=2, a=1), row(d=0, a=0, limit="hint")], k_draft=4)]
    )
    load = windows.engine_load("e0")
    assert load is not None
    assert (load.executed_k, load.executed_limit) == (2, "static")


def test_a_new_station_shows_at_once_what_the_old_one_did() -> None:
    before, after = LiveWindows(), LiveWindows()
    records = [*spread(60, 540.0), GapRecord("e0", T0 + 545, 3, since=T0 + 540)]
    with Store.memory() as store:
        feed(store, before, records)
        preload(after, store.connection, T0 + 550)
    before._loads = EngineLoads()  # which engines there are comes with their first step
    shown, earlier = ([replace(one, last_seen=0.0) for one in each.buckets(T0 + 550)] for each in (after, before))
    assert shown == earlier
    for one, other in zip(after.buckets(T0 + 550), before.buckets(T0 + 550), strict=True):
        assert one.last_seen == pytest.approx(other.last_seen, abs=CELL_SECONDS), "known to a cell"
    assert after.total(T0 + 550) == before.total(T0 + 550)
    assert after.series(None, 600.0, 60, T0 + 550) == before.series(None, 600.0, 60, T0 + 550)


def test_cells_leave_exactly_what_they_brought() -> None:
    windows = live(spread(200, 600.0, row(d=3, a=1)))
    for now in range(600, 1300, 7):
        windows.total(T0 + now)
    five_minutes = windows._pool.windows[0]
    assert five_minutes.total.joint == {}
    assert five_minutes.total.sequences == {}


def test_calibration_serves_nobody_and_is_left_out() -> None:
    served = spread(3, 30.0)
    own = [sequence("c", ts=T0 + 31, workload=CALIBRATION), step(9, [row("c")], ts=T0 + 32)]
    windows, without = live([*served, *own]), live(served)
    assert [bucket.key for bucket in windows.buckets(T0 + 33)] == [CODE]
    assert windows.total(T0 + 33) == without.total(T0 + 33)
    with Store.memory() as store:
        feed(store, None, [engine(), *own])
        assert store.connection.execute("SELECT count(*) FROM rows").fetchall() == [(1,)], "it is recorded"
