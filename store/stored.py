"""What an ingest needs to know of an earlier one's work: numbers to go on from, and an adopted engine's sequences."""

from __future__ import annotations

import duckdb
import msgspec

from engine.records import EngineRecord
from store import progress
from store.buckets import TAG_IDLE_SECONDS, UNATTRIBUTED, BucketBook, BucketName, Edges
from store.runs import EngineRun, Known
from store.sql import first_row, only_row


class Stored:
    """Look-ups in the store, made when an engine is first heard of and when a handle is unknown."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._highest: dict[int, int] = {}
        """Of each run that goes on: the highest handle that was stored. An engine counts its handles up."""

    def next_ids(self) -> tuple[int, int, int]:
        """The first free run, sequence and step."""
        run, sequence, step = only_row(
            self._connection,
            """SELECT 1 + greatest(coalesce((SELECT max(id) FROM engines), 0),
                    coalesce((SELECT max(engine_run) FROM steps), 0),
                    coalesce((SELECT max(engine_run) FROM sequences), 0)),
                 1 + greatest(coalesce((SELECT max(id) FROM sequences), 0),
                    coalesce((SELECT max(sequence) FROM sequence_rollup_10s), 0),
                    coalesce((SELECT max(sequence) FROM sequence_totals), 0)),
                 1 + coalesce((SELECT max(id) FROM steps), 0)""",
        )
        step = max(step, 1 + progress.up_to(self._connection, progress.LAST_STEP))
        return int(run), int(sequence), int(step)

    def buckets(self) -> list[tuple[int, BucketName]]:
        rows = self._connection.execute(
            "SELECT id, engine, workload, context, temperature, model_version FROM buckets ORDER BY id"
        ).fetchall()
        return [(row[0], (row[1], row[2], row[3], row[4], row[5])) for row in rows]

    def recent_tags(self) -> list[tuple[str, float]]:
        """Workloads that arrived in the last hour of record time, and when."""
        return self._connection.execute(
            """SELECT workload, max(ts) FROM sequences GROUP BY workload
               HAVING max(ts) > (SELECT max(ts) FROM sequences) - ? ORDER BY 2""",
            [TAG_IDLE_SECONDS],
        ).fetchall()

    def run(self, engine: str, boot: str, book: BucketBook) -> EngineRun | None:
        """The run of a boot that was recorded before, with the sequences that have not finished."""
        found = first_row(
            self._connection,
            "SELECT id, record, last_frame, last_ts FROM engines WHERE engine = ? AND boot = ? ORDER BY id DESC",
            [engine, boot],
        )
        if found is None:
            return None
        run = EngineRun(found[0], engine, boot)
        run.record = msgspec.json.decode(found[1], type=EngineRecord)
        run.stored = run.adopted = True
        run.last_frame, run.last_ts = found[2], found[3]
        (self._highest[run.number],) = only_row(
            self._connection,
            "SELECT coalesce(max(try_cast(name AS BIGINT)), 0) FROM sequences WHERE engine_run = ?",
            [run.number],
        )
        for handle, known in self._unfinished(run, book.edges):
            run.introduce(handle, known, book)
        return run

    def sequence(self, run: EngineRun, handle: int) -> tuple[int, str] | None:
        """Id and counted tag of a sequence that an earlier station stored."""
        if not run.adopted or handle > self._highest[run.number]:
            return None
        found = first_row(
            self._connection,
            "SELECT id, workload FROM sequences WHERE engine_run = ? AND name = ? AND workload <> ? ORDER BY id DESC",
            [run.number, str(handle), UNATTRIBUTED],
        )
        return None if found is None else (int(found[0]), str(found[1]))

    def _unfinished(self, run: EngineRun, edges: Edges) -> list[tuple[int, Known]]:
        rows = self._connection.execute(
            """SELECT name, id, workload, temperature FROM sequences s WHERE engine_run = ? AND workload <> ?
                 AND NOT EXISTS (FROM finishes f WHERE f.engine_run = s.engine_run AND f.name = s.name)""",
            [run.number, UNATTRIBUTED],
        ).fetchall()
        return [
            (int(name), Known(sequence, workload, edges.temperature_label(temperature), 0))
            for name, sequence, workload, temperature in rows
            if name.lstrip("-").isdigit()
        ]
