"""Reads the rows of a record sequence by sequence, in chunks, and the facts of their steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import msgspec
import numpy as np
import numpy.typing as npt

from engine.records import EngineRecord
from store.buckets import CALIBRATION
from store.counts import PREFILL, Bools, Ints
from store.load import Runner

CHUNK_ROWS: Final = 250_000
Floats = npt.NDArray[np.float64]

_ROWS: Final = "sequence, step, bucket, k_asked, drafted, accepted, emitted, context, cause"
_LARGEST: Final = 2**62


@dataclass(frozen=True)
class Bucket:
    """A bucket by its number. `place`: its place in `Record.buckets`."""

    place: int
    engine: str
    workload: str
    context: str
    temperature: str
    model_version: str

    @property
    def runner(self) -> Runner:
        return Runner(self.engine, self.model_version)


@dataclass(frozen=True)
class Steps:
    """Steps of the stretch, by id ascending. Arrays of one length."""

    id: Ints
    run: Ints
    """Place of its run in `Record.runs`."""
    asked_at: Ints
    """Sequences scheduled in the step before: for so many a schedule was looked up when the drafts verified here were
    asked for. Of the first step of a run its own."""
    batch: Ints
    """Decode rows."""
    k_draft: Ints
    ts: Floats
    """End, Unix seconds."""
    duration_ms: Floats
    prefill: Ints


@dataclass(frozen=True)
class Rows:
    """All rows of some sequences, in the order of sequence and step. Arrays of one length; `step` and `bucket` are
    places in `Steps` and `Record.buckets`, `bars`: whether the request itself allows no speculation."""

    sequence: Ints
    step: Ints
    bucket: Ints
    k_asked: Ints
    drafted: Ints
    accepted: Ints
    emitted: Ints
    context: Ints
    cause: Ints
    bars: Bools

    def __len__(self) -> int:
        return len(self.sequence)

    @property
    def decode(self) -> Bools:
        return np.asarray(self.cause != PREFILL)


class Record:
    """A stretch (start, end] of a store, Unix seconds, without specdeck's own calibration requests."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, start: float, end: float) -> None:
        self._connection = connection
        self.start, self.end = start, end
        self.runs = _runs(connection)
        self.buckets = _buckets(connection)
        self._bucket_ids = np.array([number for number, _ in self.buckets], dtype=np.int64)
        self.steps = self._read_steps()

    def chunks(self) -> Iterator[Rows]:
        """Whole sequences, at least one at a time and about `CHUNK_ROWS` rows."""
        counted = self._connection.execute(
            f"SELECT sequence, count(*) FROM rows WHERE {self._inside()} GROUP BY sequence ORDER BY sequence"
        ).fetchnumpy()
        sequences, counts = (column.astype(np.int64) for column in counted.values())
        if not len(sequences):
            return
        number = (np.cumsum(counts) - counts) // CHUNK_ROWS
        ends = np.flatnonzero(np.r_[np.diff(number) > 0, True])
        first = 0
        for last in ends.tolist():
            yield self._rows(int(sequences[first]), int(sequences[last]))
            first = last + 1

    def joint(self) -> dict[str, Ints]:
        """Rows by bucket (its place), k_asked, drafted, accepted and cause: `count` of each."""
        query = f"""SELECT bucket, k_asked, drafted, accepted, cause, count(*) AS count FROM rows
          WHERE {self._inside()} GROUP BY ALL ORDER BY ALL"""
        found = {name: column.astype(np.int64) for name, column in self._query(query).items()}
        found["bucket"] = np.searchsorted(self._bucket_ids, found["bucket"])
        return found

    def _rows(self, first: int, last: int) -> Rows:
        inside = f"{self._inside()} AND sequence BETWEEN {first} AND {last}"
        columns = {
            name: column.astype(np.int64)
            for name, column in self._query(f"SELECT {_ROWS} FROM rows WHERE {inside} ORDER BY sequence, step").items()
        }
        columns["step"] = np.searchsorted(self.steps.id, columns["step"])
        columns["bucket"] = np.searchsorted(self._bucket_ids, columns["bucket"])
        barred = self._query(
            f"""SELECT id FROM sequences WHERE id BETWEEN {first} AND {last}
                AND (disable_speculation OR lane = 'vanilla')"""
        )["id"].astype(np.int64)
        return Rows(**columns, bars=np.isin(columns["sequence"], barred))

    def _query(self, text: str) -> dict[str, np.ndarray[Any, Any]]:
        return dict(self._connection.execute(text).fetchnumpy())

    def _inside(self) -> str:
        first, last = (int(self.steps.id[0]), int(self.steps.id[-1])) if len(self.steps.id) else (_LARGEST, _LARGEST)
        others = ", ".join(str(number) for number, bucket in self.buckets if bucket.workload == CALIBRATION)
        return f"step BETWEEN {first} AND {last}" + (f" AND bucket NOT IN ({others})" if others else "")

    def _read_steps(self) -> Steps:
        """Steps whose ids lie between the first and the last of the stretch: records are taken in by time."""
        bounds = {"start": self.start, "end": self.end}
        found = self._connection.execute(
            """SELECT id, engine_run,
                 coalesce(lag(running) OVER (PARTITION BY engine_run ORDER BY id), running) AS asked,
                 decode_rows, k_draft, ts, duration_ms, prefill_tokens
               FROM steps WHERE ts > $start AND ts <= $end ORDER BY id""",
            bounds,
        ).fetchnumpy()
        ids, run, asked, batch, k_draft, ts, duration, prefill = found.values()
        runs = np.array(sorted(self.runs), dtype=np.int64)
        return Steps(
            ids.astype(np.int64), np.searchsorted(runs, run.astype(np.int64)), asked.astype(np.int64),
            batch.astype(np.int64), k_draft.astype(np.int64), ts.astype(np.float64), duration.astype(np.float64),
            prefill.astype(np.int64),
        )  # fmt: skip


def _runs(connection: duckdb.DuckDBPyConnection) -> dict[int, EngineRecord]:
    rows = connection.execute("SELECT id, record FROM engines ORDER BY id").fetchall()
    return {number: msgspec.json.decode(text, type=EngineRecord) for number, text in rows}


def _buckets(connection: duckdb.DuckDBPyConnection) -> list[tuple[int, Bucket]]:
    rows = connection.execute(
        "SELECT id, engine, workload, context, temperature, model_version FROM buckets ORDER BY id"
    ).fetchall()
    return [(number, Bucket(place, *names)) for place, (number, *names) in enumerate(rows)]
