"""Where the record of what is shown can be asked, and which of it a figure's window takes. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from console.app.drawing import numbers
from console.app.explaining.section import Query
from console.feed.messages import Snapshot
from store.figure_sql.scope import Scope
from store.figures import BucketKey, Window

BY_ROWS_SECONDS: Final = 900.0
"""Longer windows are read from cells: a snapshot of a live station holds the rows of its last hour."""
LATE: Final = "Rows that came after the picture was drawn are in it too."


@dataclass(frozen=True)
class Record:
    """`source`: the file of a replay; None for the station. `now`: the time that is shown, Unix seconds."""

    source: str | None
    now: float

    @classmethod
    def of(cls, snapshot: Snapshot) -> Record:
        return cls(snapshot.replay.path if snapshot.replay is not None else None, snapshot.ts)

    def query(self, sql: str, note: str = "") -> Query:
        return Query(sql, self.source, note)

    def scope(self, key: BucketKey, window: Window, engine: str | None = None) -> Scope:
        """The rows of a bucket in a window."""
        long = window.end - window.start > BY_ROWS_SECONDS
        late = self.source is None and self.now - window.start > BY_ROWS_SECONDS
        return Scope(key=key, start=window.start, end=window.end, engine=engine, by_cells=long or late)


def window_words(window: Window | None, label: str = "") -> str:
    """`5 min (14:10:00 – 14:15:00)`."""
    if window is None:
        return label or "none: nothing was recorded"
    span = f"{numbers.clock(window.start)} – {numbers.clock(window.end)}"
    return f"{label} ({span})" if label else span
