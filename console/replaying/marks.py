"""Moments of a record that one may want to go to: alerts that fired, actions, other versions and restarts, gaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import duckdb

from console.feed.messages import ReplayMark
from console.picturing.history_text import action_text
from engine.records import ControlRecord
from store.control_history import SCORE
from store.judge.alerts import Alert
from store.judge.sentence import place

MARKS_A_KIND: Final = 200
"""Of each kind at most one in so many parts of the span: more could not be told apart on a time bar."""


def marks(
    connection: duckdb.DuckDBPyConnection, controls: Iterable[ControlRecord], alerts: Iterable[Alert]
) -> list[ReplayMark]:
    """All of them, in the order of time."""
    found = [*_firings(alerts), *_versions(connection), *_gaps(connection)]
    found += [
        ReplayMark(record.ts, "control", action_text(record, record.ts))
        for record in controls
        if record.action != SCORE
    ]
    return sorted(found, key=lambda mark: mark.ts)


def thinned(found: Sequence[ReplayMark], start: float, end: float) -> list[ReplayMark]:
    """Of each kind the first in each of `MARKS_A_KIND` parts of [start, end]."""
    taken: set[tuple[str, int]] = set()
    kept = []
    for mark in found:
        if start <= mark.ts <= end:
            part = int((mark.ts - start) / (end - start) * MARKS_A_KIND) if end > start else 0
            if (mark.kind, part) not in taken:
                taken.add((mark.kind, part))
                kept.append(mark)
    return kept


def neighbour(found: Sequence[ReplayMark], kind: str, ts: float, count: int) -> ReplayMark | None:
    """The `count`-th mark of a kind after `ts`, before it where negative; the last there is where there are fewer."""
    same = [mark for mark in found if mark.kind == kind]
    later = [mark for mark in same if mark.ts > ts]
    earlier = [mark for mark in reversed(same) if mark.ts < ts]
    wanted = later if count > 0 else earlier
    return wanted[min(abs(count), len(wanted)) - 1] if wanted and count else None


def _firings(alerts: Iterable[Alert]) -> Iterator[ReplayMark]:
    """When they fired: a moment earlier there is nothing to be seen of them yet."""
    for alert in alerts:
        if alert.started is not None:
            fired = alert.started if alert.confirmed is None else alert.confirmed
            yield ReplayMark(fired, "alert", f"{alert.kind} {place(alert)}")


def _versions(connection: duckdb.DuckDBPyConnection) -> list[ReplayMark]:
    """Every start of an engine but its first."""
    rows = connection.execute(
        """SELECT ts, engine, model_version, lag(model_version) OVER runs FROM engines
           WINDOW runs AS (PARTITION BY engine ORDER BY id) QUALIFY row_number() OVER runs > 1"""
    ).fetchall()
    return [
        ReplayMark(ts, "version", f"{engine} restarted" if version == before else f"{engine} runs {version}")
        for ts, engine, version, before in rows
    ]


def _gaps(connection: duckdb.DuckDBPyConnection) -> list[ReplayMark]:
    rows = connection.execute("SELECT coalesce(since, ts), engine, frames_lost, reason FROM gaps").fetchall()
    return [ReplayMark(ts, "gap", gap_text(engine, lost, reason)) for ts, engine, lost, reason in rows]


def gap_text(engine: str, frames_lost: int, reason: str | None) -> str:
    what = f"{engine}: {frames_lost} frames lost" if frames_lost else f"{engine}: nothing known of a stretch"
    return f"{what} ({reason})" if reason else what
