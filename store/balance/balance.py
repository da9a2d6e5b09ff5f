"""The balance of a window of a store: read from its raw rows, as far back as they are kept."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import duckdb
import numpy as np

from engine.step_time.model import StepModel
from store import progress
from store.balance.amounts import amounts, tells
from store.balance.ledger import SERVING, Ledger
from store.balance.reading import Span, buckets_in, read_steps, span_of
from store.balance.records import Balance, LeftOut
from store.blocks import block_seconds
from store.figures import Window
from store.load import Runner
from store.report import ReportError
from store.report_notes import written
from store.sql import only_row


def balance(
    connection: duckdb.DuckDBPyConnection,
    models: Mapping[Runner, StepModel],
    *,
    source: str,
    window: float | None = None,
    at: float | None = None,
    most_rows: int | None = None,
) -> Balance:
    """What speculation cost and saved each workload; see `store.balance.settling` for what that means.

    Args:
        models: step times of each engine and model version, see `store.step_models`.
        source: what the connection is on, as the answer names it.
        window: seconds of record time back from `at`; None: everything that is kept row by row.
        at: Unix seconds at which it ends; None: the last step.
        most_rows: read only the newest steps where there are more decode rows, and say so.

    Raises:
        ReportError: a window that is not positive, or a moment that is none.
    """
    if window is not None and not window > 0:
        raise ReportError(f"window: must be more than 0 seconds, not {window}")
    if at is not None and not math.isfinite(at):
        raise ReportError(f"at: must be a moment in Unix seconds, not {at}")
    with _as_of_now(connection):
        start, end = _bounds(connection, window, at)
        span = span_of(connection, start, end, most_rows)
        ledger, held = _ledger(connection, span, models)
        return _balance(connection, source, ledger, span, held, (start, end))


@contextmanager
def _as_of_now(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Whatever is written meanwhile, all questions are about the same rows."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


def _bounds(connection: duckdb.DuckDBPyConnection, window: float | None, at: float | None) -> tuple[float, float]:
    if at is None:
        (at,) = only_row(connection, "SELECT max(ts) FROM steps")
    if at is None:
        return -math.inf, math.inf
    return (-math.inf if window is None else at - window), at


def _ledger(
    connection: duckdb.DuckDBPyConnection, span: Span | None, models: Mapping[Runner, StepModel]
) -> tuple[Ledger, Window | None]:
    """The sums over the steps, and when the first of them began and the last ended."""
    runs = connection.execute("SELECT id, engine, model_version FROM engines").fetchall()
    runners = {run: Runner(engine, version) for run, engine, version in runs}
    if span is None:
        return Ledger([], runners, models, 1), None
    began, ended = only_row(
        connection,
        "SELECT min(ts - duration_ms / 1000), max(ts) FROM steps WHERE id BETWEEN ? AND ? AND ts > ? AND ts <= ?",
        [span.first, span.last, span.since, span.until],
    )
    held = Window(max(began, span.since), ended)
    of = dict(connection.execute("SELECT id, workload FROM buckets").fetchall())
    buckets = buckets_in(connection, span)
    workloads = sorted({of[bucket] for bucket in buckets})
    place = np.zeros(max(buckets, default=-1) + 1, dtype=np.int64)
    for bucket in buckets:
        place[bucket] = workloads.index(of[bucket])
    ledger = Ledger(workloads, runners, models, block_seconds(held.end - held.start))
    for read in read_steps(connection, span, place, len(workloads)):
        ledger.add(read)
    return ledger, held


def _balance(
    connection: duckdb.DuckDBPyConnection,
    source: str,
    ledger: Ledger,
    span: Span | None,
    held: Window | None,
    asked: tuple[float, float],
) -> Balance:
    telling = tells(ledger)
    total = amounts(ledger, None, telling)
    order = [int(place) for place in np.argsort(-ledger.time, kind="stable") if ledger.rows[place]]
    left_out = LeftOut(**{why: ledger.seconds[why] for why in LeftOut.__struct_fields__})
    gaps, lost = only_row(
        connection, "SELECT count(*), coalesce(sum(frames_lost), 0)::BIGINT FROM gaps WHERE ts > ? AND ts <= ?", asked
    )
    return Balance(
        source=source,
        window=held,
        steps=0 if span is None else span.steps,
        engine_seconds=ledger.seconds[SERVING] + left_out.no_decode_rows + left_out.calibration,
        covered=total.covered,
        left_out=left_out,
        gaps=int(gaps),
        frames_lost=int(lost),
        total=total,
        workloads=[amounts(ledger, place, telling) for place in order],
        paid=(ledger.sums.paid[np.ix_(order, order)] / 1000).tolist() if telling else None,
        notes=list(_notes(connection, span, asked)),
    )


def _notes(connection: duckdb.DuckDBPyConnection, span: Span | None, asked: tuple[float, float]) -> Iterator[str]:
    start, _ = asked
    raw = progress.up_to(connection, progress.RAW_FROM)
    if max(start, 0.0) < raw:
        yield f"rows up to {written(raw)} are no longer kept one by one: this begins after them"
    if span is not None and span.shortened:
        yield f"only the newest {span.rows:,} decode rows were read: this begins at {written(span.since)}"
