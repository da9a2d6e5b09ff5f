"""What arrives over the wire: holes are found, sequences get their tags back, unknown rows wait, nothing raises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from store.database import Store
from store.ingest import Ingest
from store.report import report
from tests.store.builders import STATIC, T0, announcement, arrived, engine, finished, frame, row


def rows_of(store: Store, query: str) -> list[tuple[Any, ...]]:
    return store.connection.execute(query).fetchall()


def workloads(store: Store) -> dict[str, int]:
    return dict(rows_of(store, "SELECT workload, count(*) FROM row_facts GROUP BY 1"))


def gaps(store: Store) -> list[tuple[Any, ...]]:
    return rows_of(store, "SELECT frames_lost, since, ts, reason FROM gaps ORDER BY ts")


@pytest.fixture
def store() -> Any:
    with Store.memory() as store:
        yield store


def test_a_hole_in_the_numbering_is_a_gap_between_the_frames_around_it(store: Store) -> None:
    ingest = Ingest(store)
    ingest.announcement(announcement([arrived(1)]), T0)
    for number in (1, 2, 6):
        ingest.frame(frame(number, [row("1")]), T0)
    ingest.close()
    assert (ingest.counts.gaps, ingest.counts.frames_lost, ingest.counts.rows) == (1, 3, 3)
    ((lost, since, until, reason),) = gaps(store)
    assert (lost, reason) == (3, "frames lost on the way")
    assert since == pytest.approx(T0 + 0.2, abs=1e-4)
    assert until == pytest.approx(T0 + 0.5, abs=1e-4)


def test_an_engine_that_ran_before_the_station_has_lost_nothing(store: Store) -> None:
    ingest = Ingest(store)
    ingest.frame(frame(500, [row("1")], [arrived(1)]), T0)
    ingest.announcement(announcement([arrived(1)], frame=500), T0)
    ingest.close()
    assert ingest.counts.gaps == 0
    assert workloads(store) == {"code": 1}


def test_the_first_frames_of_a_restarted_engine_count_as_lost_when_they_are_missing(store: Store) -> None:
    ingest = Ingest(store)
    ingest.announcement(announcement(boot="b1"), T0)
    ingest.announcement(announcement(boot="b2"), T0 + 5)
    ingest.frame(frame(4, [row("1")], [arrived(1)], boot="b2"), T0 + 6)
    ingest.close()
    assert ingest.counts.frames_lost == 3


def test_a_frame_that_comes_twice_is_counted_once(store: Store) -> None:
    ingest = Ingest(store)
    ingest.announcement(announcement([arrived(1)]), T0)
    for number in (1, 1, 2):
        ingest.frame(frame(number, [row("1")]), T0)
    ingest.close()
    assert (ingest.counts.rows, ingest.counts.broken_messages) == (2, 1)


def test_a_lost_tail_shows_at_the_second_announcement(store: Store) -> None:
    ingest = Ingest(store)
    ingest.frame(frame(1, [row("1")], [arrived(1)]), T0)
    ingest.announcement(announcement(frame=5), T0 + 1)
    assert ingest.counts.frames_lost == 0, "the announcement may have overtaken the frames"
    ingest.announcement(announcement(frame=5), T0 + 11)
    assert ingest.counts.frames_lost == 4


def test_rows_before_any_introduction_wait_and_then_get_their_bucket(store: Store) -> None:
    ingest = Ingest(store)
    for number in range(1, 4):
        ingest.frame(frame(number, [row("7")]), T0)
    ingest.flush()
    assert workloads(store) == {}
    ingest.announcement(announcement([arrived(7, "chat")], frame=3), T0 + 1)
    ingest.flush()
    assert workloads(store) == {"chat": 3}
    assert ingest.counts.unattributed == 0


def test_rows_that_nobody_introduces_are_unattributed_after_fifteen_seconds_of_record_time(store: Store) -> None:
    ingest = Ingest(store)
    ingest.announcement(announcement([arrived(1)]), T0)
    ingest.frame(frame(1, [row("1"), row("9")]), T0)
    ingest.frame(frame(2, [row("1")], ts=T0 + 15.0), T0)
    ingest.flush()
    assert workloads(store) == {"code": 2}
    ingest.frame(frame(3, [row("1")], ts=T0 + 15.2), T0)
    ingest.flush()
    assert workloads(store) == {"code": 3, "unattributed": 1}
    assert ingest.counts.unattributed == 1


def test_an_engine_that_never_says_what_it_is_loses_no_rows(store: Store) -> None:
    ingest = Ingest(store)
    ingest.frame(frame(1, [row("1")], [arrived(1)]), T0)
    ingest.close()
    assert workloads(store) == {"code": 1}
    assert rows_of(store, "SELECT target FROM engines") == [("unknown",)]


def test_after_a_station_died_the_next_one_knows_the_hole_and_the_tags(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    with Store.open(path) as store:
        ingest = Ingest(store)
        ingest.announcement(announcement([arrived(1, "mine")]), T0)
        ingest.frame(frame(1, [row("1")]), T0)
        ingest.frame(frame(2, [row("1")]), T0)
        ingest.flush()
        ingest.frame(frame(3, [row("1")]), T0)  # taken, and lost with the station
    with Store.open(path) as store:
        ingest = Ingest(store)
        ingest.frame(frame(6, [row("1")]), T0 + 1)
        ingest.announcement(announcement([arrived(1, "another")], frame=6), T0 + 1)
        ingest.close()
        assert workloads(store) == {"mine": 3}, "a tag is never rewritten"
        assert rows_of(store, "SELECT count(DISTINCT sequence) FROM rows") == [(1,)]
        assert rows_of(store, "SELECT count(*) FROM engines") == [(1,)]
        ((lost, since, _, reason),) = gaps(store)
        assert (lost, reason) == (3, "the station was away")
        assert since == pytest.approx(T0 + 0.2, abs=1e-4)


def test_when_the_engine_kept_all_frames_a_new_station_has_no_gap(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    for numbers in ((1, 2), (3, 4)):
        with Store.open(path) as store:
            ingest = Ingest(store)
            ingest.announcement(announcement([arrived(1)], frame=numbers[0]), T0)
            for number in numbers:
                ingest.frame(frame(number, [row("1")]), T0)
            ingest.close()
            assert ingest.counts.gaps == 0
    with Store.open(path) as store:
        assert workloads(store) == {"code": 4}


def test_a_new_boot_may_use_the_handles_of_the_old_one_again(store: Store) -> None:
    ingest = Ingest(store)
    ingest.announcement(announcement([arrived(1, "before")]), T0)
    ingest.frame(frame(1, [row("1")]), T0)
    ingest.announcement(announcement([arrived(1, "after")], boot="b2"), T0 + 5)
    ingest.frame(frame(1, [row("1")], boot="b2", ts=T0 + 6), T0 + 6)
    ingest.close()
    assert workloads(store) == {"before": 1, "after": 1}
    (note,) = report(store.connection, source="test").notes
    assert note.startswith("e0 restarted")


def test_a_finish_that_overtakes_the_last_row_does_not_orphan_it(store: Store) -> None:
    ingest = Ingest(store)
    ingest.announcement(announcement([arrived(1)]), T0)
    ingest.frame(frame(1, [row("1")], finishes=[finished(1, T0)]), T0)
    ingest.frame(frame(2, [row("1")]), T0)
    ingest.close()
    assert workloads(store) == {"code": 2}
    assert rows_of(store, "SELECT count(*) FROM finishes") == [(1,)]


def test_a_stale_announcement_brings_no_finished_sequence_back(store: Store) -> None:
    ingest = Ingest(store)
    ingest.announcement(announcement([arrived(1)]), T0)
    ingest.frame(frame(1, [row("1")], finishes=[finished(1, T0 + 0.1)]), T0)
    ingest.announcement(announcement([arrived(1)], frame=0), T0)
    ingest.close()
    assert rows_of(store, "SELECT count(*) FROM sequences") == [(1,)]


def test_an_announcement_closes_what_the_engine_no_longer_serves(store: Store) -> None:
    ingest = Ingest(store)
    ingest.announcement(announcement([arrived(1), arrived(2)]), T0)
    ingest.frame(frame(1, [row("1")]), T0)
    ingest.announcement(announcement([arrived(2)], frame=1), T0 + 10)
    (run,) = ingest._runs.values()
    assert run.live == 1


@pytest.mark.parametrize(
    "wrong", [{"ts": float("nan")}, {"ts": -1.0}, {"duration_ms": float("inf")}, {"running": -1}, {"policy": 2**70}]
)
def test_a_step_off_the_time_axis_is_a_broken_message(store: Store, wrong: dict[str, Any]) -> None:
    ingest = Ingest(store)
    ingest.announcement(announcement([arrived(1)]), T0)
    ingest.frame(frame(1, [row("1")], **wrong), T0)
    ingest.close()
    assert (ingest.counts.broken_messages, ingest.counts.rows) == (1, 0)


def test_odd_sequences_are_taken_as_they_are(store: Store) -> None:
    odd = msgspec.structs.replace(arrived(1), temperature=float("nan"), ts=float("inf"), prompt_tokens=-3)
    huge = arrived(2, "x" * 100_000)
    ingest = Ingest(store)
    ingest.announcement(announcement([odd, huge]), T0)
    ingest.frame(frame(1, [row("1"), row("2"), row("2", context=2**31 - 1)]), T0)
    ingest.close()
    assert sorted(workloads(store)) == ["code", "x" * 256]


def test_counts_say_what_the_store_holds(store: Store) -> None:
    ingest = Ingest(store)
    ingest.announcement(announcement([arrived(1)]), T0)
    ingest.frame(frame(1, [row("1"), row("1", d=1, a=2)]), T0)
    ingest.broken_message("no msgpack")
    ingest.close()
    assert rows_of(store, "SELECT count(*) FROM rows") == [(ingest.counts.rows,)]
    assert rows_of(store, "SELECT count(*) FROM quarantine") == [(ingest.counts.quarantined,)]
    assert (ingest.counts.rows, ingest.counts.quarantined, ingest.counts.broken_messages) == (1, 1, 1)
    assert rows_of(store, "SELECT reason, accepted, name FROM quarantine") == [
        ("accepted more than was drafted", 2, "1")
    ]


def test_a_trace_record_of_the_same_boot_is_no_restart(store: Store) -> None:
    ingest = Ingest(store)
    for ts in (T0, T0 + 10):
        ingest.record(engine(ts=ts, boot="b1", resolved=STATIC))
    ingest.close()
    assert rows_of(store, "SELECT count(*) FROM engines") == [(1,)]
