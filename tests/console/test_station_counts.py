"""A station counts what was recorded since its store began, also what is no longer kept row by row."""

from __future__ import annotations

from pathlib import Path

from console.station.recorder import open_recorder
from store.database import Store
from store.ingest import Ingest
from store.levels import DAY
from store.retention import Retention
from store.rollup import roll_up
from tests.store.builders import T0, engine, row, sequence, step


def test_rows_that_had_their_time_still_count(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    with Store.open(path) as store:
        ingest = Ingest(store)
        ingest.record(engine())
        ingest.record(sequence("a"))
        for number in range(1, 101):
            ingest.record(step(number, [row("a"), row("stranger"), row("a", d=1, a=2)], ts=T0 + number))
        ingest.close()
        roll_up(store.connection, T0 + 3 * DAY)
        keeper = Retention(store.cursor(), store.path)
        while keeper.slice(T0 + 3 * DAY):
            pass
        assert store.connection.execute("SELECT count(*) FROM rows").fetchall() == [(0,)]
    recorder = open_recorder(path, lambda kind, text: None)
    try:
        counts = recorder.counts()
        assert (counts.rows, counts.quarantined, counts.unattributed) == (200, 100, 100)
    finally:
        recorder.store.close()
