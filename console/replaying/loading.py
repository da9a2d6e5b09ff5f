"""Takes a trace into a store while it is played already: on a thread of its own, judged as it comes."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import duckdb

from console.replaying.read_share import read_share, records_in
from engine.records import Record
from store.database import Store, StoreError
from store.ingest import Ingest
from store.judge.settings import JudgeSettings
from store.judging import Judging
from store.rollup import roll_up
from store.source import take_in_pieces
from store.trace import Steps, TraceNotes, read_pieces

log = logging.getLogger(__name__)

EARLY_SECONDS: Final = (0.2, 0.7, 2.0, 4.0)
"""So long after the beginning what was read is flushed besides: one can look at it at once."""
FIRST_SECONDS: Final = 1.0
_PATIENCE_SECONDS: Final = 5.0


class _Stopped(Exception):
    """It is not wanted any more."""


class Loading:
    """`changed` is called on this thread whenever more can be read from the store, or there is nothing more to come.

    What is known of it may be read from any thread.
    """

    def __init__(self, path: Path, store: Store, settings: JudgeSettings | None, changed: Callable[[], None]) -> None:
        self.complete = False
        self.error: str | None = None
        """Why the rest of the trace can't be read."""
        self._path = path
        self._changed = changed
        self._ingest = Ingest(store)
        self._connection = store.cursor()
        self._judging = Judging(store.cursor(), settings)
        self._stopping = False
        self._early: list[float] = []
        self._share = 0.0
        self._taken = 0
        self._records: int | None = None
        self.seen = threading.Event()
        """Somebody has shown a first part of it."""
        self._thread = threading.Thread(target=self._run, name="loading", daemon=True)

    @property
    def share(self) -> float:
        """How much of the file was read, 0 to 1."""
        if self.complete:
            return 1.0
        taken = self._taken / self._records if self._records else read_share(self._path)
        self._share = min(1.0, max(self._share, taken))  # of a file that is closed by now nothing can be told
        return self._share

    @property
    def rows(self) -> int:
        return self._ingest.counts.rows

    def start(self) -> None:
        began = time.monotonic()
        self._early = [began + seconds for seconds in EARLY_SECONDS]
        self._thread.start()

    def stop(self) -> None:
        """Leave it at what there is. Comes back when the store may be closed."""
        self._stopping = True
        self._connection.interrupt()
        self._thread.join(_PATIENCE_SECONDS)

    def _run(self) -> None:
        try:
            self._take_in()
            roll_up(self._connection, math.inf)
            self._judging.finish()
        except _Stopped:
            return
        except Exception as error:
            if self._stopping:
                return
            log.exception("taking in %s", self._path)
            self.error = f"{self._path}: {next(iter(str(error).splitlines()), '') or type(error).__name__}"
        self.complete = True
        self._changed()

    def _take_in(self) -> None:
        """What comes before a fault is kept."""
        self._records = records_in(self._path)
        notes = TraceNotes()
        pieces = self._watched(read_pieces(self._path, notes))
        try:
            take_in_pieces(pieces, self._ingest, flushed=self._flushed, notes=notes)
        except StoreError as error:
            self.error = str(error)
            self._ingest.close()

    def _watched(self, pieces: Iterator[Record | Steps]) -> Iterator[Record | Steps]:
        """The same pieces, with a look between them at what should be done meanwhile."""
        for piece in pieces:
            if self._stopping:
                raise _Stopped
            self._taken += piece.stop - piece.start if isinstance(piece, Steps) else 1
            if self._early and time.monotonic() >= self._early[0] and self._ingest.buffered_rows:
                del self._early[0]
                self._ingest.flush()
                self._changed()
                self.seen.wait(FIRST_SECONDS)  # else the first picture would have to share the CPU with this
            yield piece

    def _flushed(self, ts: float) -> None:
        self._changed()
        if self._stopping:
            raise _Stopped
        try:
            self._judging.catch_up()
        except duckdb.Error as error:  # the next time it goes on from there
            log.warning("judging waits: %s", error)
