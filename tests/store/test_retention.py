"""What is kept for how long: raw rows by age and size, rollups by their level, sequences as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from store import progress, retention
from store.database import Store
from store.figures import Figures
from store.gather import rows_ever
from store.imports.observations import Observation
from store.ingest import Ingest
from store.levels import DAY
from store.report import report
from store.retention import Keep, Retention, Space
from store.rollup import roll_up
from tests.store.builders import T0, engine, row, sequence, step

HOUR = 3600.0


def recorded(store: Store, hours: float, every: float = 60.0) -> Ingest:
    """A step of two rows every minute, a new sequence each hour."""
    ingest = Ingest(store)
    ingest.record(engine())
    number, name = 0, ""
    while number * every <= hours * HOUR:
        ts = T0 + number * every
        if number % (HOUR // every) == 0:
            name = f"s{number}"
            ingest.record(sequence(name, ts=ts))
        ingest.record(step(number + 1, [row(name, d=4, a=number % 5), row(name, d=2, a=1)], ts=ts))
        number += 1
        if number % 500 == 0:
            ingest.flush()
    ingest.close()
    return ingest


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store.duckdb") as opened:
        yield opened


def emptied(keeper: Retention, now: float) -> None:
    for _ in range(1000):
        if not keeper.slice(now):
            return
    raise AssertionError("there is always more to remove")


def count(store: Store, table: str) -> int:
    return int(store.connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])


def whole(store: Store) -> Figures:
    found = report(store.connection, source="test").total
    assert found is not None
    return found


def test_raw_rows_go_after_two_days_and_the_counts_stay(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "SLICE_STEPS", 100)
    recorded(store, 60)
    before = whole(store)
    keeper = Retention(store.cursor(), store.path)
    now = T0 + 60 * HOUR
    assert keeper.slice(now)
    assert count(store, "steps") >= 3601 - 100, "a slice at a time"
    emptied(keeper, now)
    ((oldest,),) = store.connection.execute("SELECT min(ts) FROM steps").fetchall()
    assert now - 2 * DAY <= oldest <= now - 2 * DAY + 60
    assert count(store, "rows") == 2 * count(store, "steps")
    after = whole(store)
    assert (after.steps, after.drafted, after.accepted, after.emitted) == (
        before.steps, before.drafted, before.accepted, before.emitted,
    )  # fmt: skip
    assert after.alpha == before.alpha
    assert after.k_histogram == before.k_histogram
    assert after.sequences == before.sequences


def test_intervals_stay_within_5_percent_when_sequences_are_booked_whole(store: Store) -> None:
    recorded(store, 60)
    before = whole(store)
    emptied(Retention(store.cursor(), store.path), T0 + 60 * HOUR)
    assert count(store, "sequence_totals") > 0
    after = whole(store)
    assert after.alpha_high is not None
    assert before.alpha_high is not None
    assert (after.alpha_high - after.alpha_low) == pytest.approx(before.alpha_high - before.alpha_low, rel=0.05)  # type: ignore[operator]


def test_too_large_a_file_gives_up_its_oldest_rows_first(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "SLICE_STEPS", 100)
    recorded(store, 5)
    sizes = iter([Space(10, 0, 1.0)] * 2 + [Space(1, 0, 1.0)] * 100)
    monkeypatch.setattr(retention, "space", lambda *_: next(sizes))
    keeper = Retention(store.cursor(), store.path, Keep(raw_bytes=5))
    emptied(keeper, T0 + 5 * HOUR)
    assert count(store, "steps") == 301 - 200, "two slices, and then it was small enough"
    assert progress.up_to(store.connection, progress.RAW_FROM) == T0 + 199 * 60


def test_a_full_disk_takes_what_the_file_has_no_room_for_but_never_the_last_minutes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(store, 5)
    monkeypatch.setattr(retention, "space", lambda *_: Space(0, 0, 0.05))
    emptied(Retention(store.cursor(), store.path), T0 + 5 * HOUR)
    ((oldest,),) = store.connection.execute("SELECT min(ts) FROM steps").fetchall()
    assert oldest == pytest.approx(T0 + 5 * HOUR - retention.LEAST_RAW_SECONDS, abs=60)


def test_a_full_disk_is_no_matter_while_the_file_has_room(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(store, 5)
    monkeypatch.setattr(retention, "space", lambda *_: Space(0, retention.SPARE_BYTES, 0.05))
    emptied(Retention(store.cursor(), store.path), T0 + 5 * HOUR)
    assert count(store, "steps") == 301


def test_nothing_raw_goes_before_it_is_rolled_up(store: Store) -> None:
    recorded(store, 1)
    store.connection.execute("UPDATE progress SET up_to = 0 WHERE name = 'rollup_10s'")
    assert not Retention(store.cursor(), store.path)._crowded()
    emptied(Retention(store.cursor(), store.path), T0 + 100 * DAY)
    assert count(store, "steps") == 61


def test_numbers_of_steps_and_sequences_are_never_given_out_again(store: Store) -> None:
    recorded(store, 1)
    roll_up(store.connection, T0 + 30 * DAY)
    emptied(Retention(store.cursor(), store.path), T0 + 30 * DAY)
    assert count(store, "steps") == 0
    assert count(store, "sequences") == 0
    ingest = Ingest(store)
    for record in (engine(ts=T0 + 31 * DAY), sequence("later", ts=T0 + 31 * DAY)):
        ingest.record(record)
    ingest.record(step(1, [row("later")], ts=T0 + 31 * DAY))
    ingest.close()
    assert store.connection.execute("SELECT min(id) FROM steps").fetchall() > [(61,)]
    assert store.connection.execute("SELECT min(id) FROM sequences").fetchall() > [(2,)]


def test_a_step_that_came_early_in_its_place_stays_until_its_own_time_comes(store: Store) -> None:
    ingest = Ingest(store)
    ingest.record(engine())
    ingest.record(sequence("a"))
    for number, offset in enumerate((0.0, 9000.0, 10.0, 20.0, 30.0), 1):  # the second's clock was ahead
        ingest.record(step(number, [row("a")], ts=T0 + offset))
    ingest.close()
    emptied(Retention(store.cursor(), store.path), T0 + 2 * DAY + 100)
    assert store.connection.execute("SELECT ts - ? FROM steps", [T0]).fetchall() == [(9000.0,)]
    assert count(store, "rows") == 1
    assert whole(store).decode_rows == 5
    (late,) = report(store.connection, source="test", window=5000.0, at=T0 + 9000.0).buckets
    assert late.decode_rows == 1


def test_quarantined_rows_go_with_their_steps_and_are_counted_for_ever(store: Store) -> None:
    ingest = Ingest(store)
    ingest.record(engine())
    ingest.record(sequence("a"))
    for number in range(1, 201):
        ingest.record(step(number, [row("a", d=1, a=2), row("a"), row("a", d=-1)], ts=T0 + number * 60))
    ingest.close()
    roll_up(store.connection, T0 + 30 * DAY)
    emptied(Retention(store.cursor(), store.path), T0 + 100 * DAY)
    assert (count(store, "quarantine"), count(store, "rows")) == (0, 0)
    assert report(store.connection, source="test").quarantined == 400
    assert count(store, "quarantine_1h") < 12
    assert rows_ever(store.connection) == 200


def test_what_was_told_goes_after_two_months_and_alerts_after_two_years(store: Store) -> None:
    ingest = Ingest(store)
    ingest.record(engine())
    ingest.note("of all of it")
    ingest.note("of a moment", T0, T0)
    ingest.observation(Observation(engine="e7", since=T0, ts=T0 + 60, drafts=1, draft_tokens=4, accepted_tokens=2))
    ingest.close()
    store.connection.execute("INSERT INTO remarks VALUES (?, 'mix', 'more chat', '{}')", [T0])
    for number, ended in enumerate((T0, None), 1):
        store.connection.execute(
            f"INSERT INTO alerts (id, kind, state, ended) VALUES ({number}, 'drift', 'resolved', ?)", [ended]
        )
    for days, kept in ((59, (2, 1, 1, 2)), (61, (1, 0, 0, 2)), (731, (1, 0, 0, 1))):
        emptied(Retention(store.cursor(), store.path), T0 + days * DAY)
        assert tuple(count(store, name) for name in ("notes", "remarks", "observations", "alerts")) == kept


def test_the_last_hour_of_a_record_is_found_though_its_steps_are_gone(store: Store) -> None:
    recorded(store, 3)
    roll_up(store.connection, T0 + 4 * DAY)
    emptied(Retention(store.cursor(), store.path), T0 + 4 * DAY)
    assert count(store, "steps") == 0
    (bucket,) = report(store.connection, source="test", window=HOUR).buckets
    assert bucket.decode_rows == pytest.approx(120, abs=2)


def test_where_sequences_are_gone_their_number_is_unknown_and_said_so(store: Store) -> None:
    recorded(store, 2)
    roll_up(store.connection, T0 + 100 * DAY)
    emptied(Retention(store.cursor(), store.path), T0 + 100 * DAY)
    found = report(store.connection, source="test")
    assert found.total is not None
    assert (found.total.steps, found.total.sequences, found.total.alpha_low) == (242, None, None)
    assert [note.split()[0] for note in found.notes] == ["steps", "sequences"]
    assert report(store.connection, source="test", window=60.0, at=T0 + 100 * DAY).notes == []


def test_a_cell_that_is_not_in_the_next_level_yet_stays(store: Store) -> None:
    recorded(store, 2)
    before = whole(store)
    emptied(Retention(store.cursor(), store.path), T0 + 80 * DAY)
    after = whole(store)
    assert (after.steps, after.emitted) == (before.steps, before.emitted)


def test_fine_cells_go_before_coarse_ones(store: Store) -> None:
    recorded(store, 2)
    roll_up(store.connection, T0 + 8 * DAY)
    keeper = Retention(store.cursor(), store.path)
    emptied(keeper, T0 + 8 * DAY)
    assert (count(store, "rollup_10s"), count(store, "load_10s")) == (0, 0)
    assert count(store, "rollup_5m") > 0
    assert whole(store).steps == 2 * 121
