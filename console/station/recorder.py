"""One thread that owns the ingest: everything received goes through its queue, in order, into DuckDB.

The event loop never waits for the disk. When DuckDB refuses (a full disk), recording stops loudly: the error is shown,
serving and the live figures go on, and the flush is tried again until it works.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Final, NamedTuple

import duckdb

from console.station.housekeeping import Housekeeping
from console.station.keeping import Keeping
from engine.frames import Announcement, Frame
from engine.records import ControlRecord, GapRecord, StateRecord
from store.attribution import IngestCounts
from store.buckets import UNATTRIBUTED
from store.database import Store, StoreError
from store.gather import rows_ever
from store.imports.observations import Observation
from store.ingest import Ingest
from store.judge.judge import Judge
from store.judge.settings import JudgeSettings
from store.kept import read_kept
from store.preload import preload
from store.retention import Keep
from store.windows import LiveWindows

log = logging.getLogger(__name__)

FLUSH_SECONDS: Final = 1.0
RETRY_SECONDS: Final = 5.0
QUEUE_LIMIT: Final = 100_000
"""Messages held while a flush hangs; beyond it frames are dropped, and their numbering shows the hole."""
GATHER_SECONDS: Final = 0.1
"""Messages are applied in batches this far apart, short against the 4 Hz of the picture: applied one by one, the
overhead of each would be taken from the engine, which shares the cores."""

_BATCH: Final = 256
"""Messages applied under one hold of the lock, so that a snapshot never waits long."""


class Broken(NamedTuple):
    """A telemetry message that was no frame."""

    reason: str


class Received(NamedTuple):
    message: Frame | Announcement
    at: float


class Remember(NamedTuple):
    """Something to be kept under its name for the next station; the last one of a name counts."""

    name: str
    value: bytes


class Note(NamedTuple):
    """A line for whoever reads the figures."""

    text: str


class Mark(NamedTuple):
    """A place in the queue: `reached` is set once all before it is in DuckDB, or was refused."""

    reached: threading.Event
    last: bool = False


class Told(NamedTuple):
    """The operator's word to the judge; `answer` gets what it says, or why not."""

    what: Callable[[Judge], object]
    answer: Future[object]


class StateAsked(NamedTuple):
    """For what the judge knows; `answer` gets it, or why not."""

    answer: Future[StateRecord]


Item = Received | Broken | GapRecord | ControlRecord | Observation | Note | Remember | Told | StateAsked


class Recorder:
    """`lock` guards the live windows: hold it to read them."""

    def __init__(
        self,
        store: Store,
        ingest: Ingest,
        windows: LiveWindows,
        tell: Callable[[str, str], None],
        keep: Keep | None = None,
        settings: JudgeSettings | None = None,
    ) -> None:
        self.store = store
        self.ingest = ingest
        self.windows = windows
        self.lock = threading.Lock()
        self.error: str | None = None
        self.on_control: Callable[[ControlRecord], None] = lambda record: None
        """Hears of what is done, as it is put."""
        self._stored_before = _stored_counts(store)
        self.overflowed = 0
        self._tell = tell
        self._urgent = threading.Event()
        self._queue: queue.SimpleQueue[Item | Mark] = queue.SimpleQueue()
        self._flush_at = time.monotonic() + FLUSH_SECONDS
        self._keeping = Keeping(store.cursor())
        self.house = Housekeeping(store, windows, keep, settings, tell)
        self._thread = threading.Thread(target=self._run, name="specdeck-recorder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @contextlib.contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection of its own to the same database, for queries from any thread while recording goes on."""
        cursor = self.store.connection.cursor()
        try:
            yield cursor
        finally:
            cursor.close()

    def counts(self) -> IngestCounts:
        """What was taken in since the store began."""
        before, since = self._stored_before, self.ingest.counts
        names = IngestCounts.__struct_fields__
        return IngestCounts(**{name: getattr(before, name) + getattr(since, name) for name in names})

    def kept(self, name: str) -> bytes | None:
        """What an earlier station kept under a name (`Remember`); None for nothing."""
        with self.reading() as connection:
            return read_kept(connection, name)

    def last_heard(self, engine: str) -> float | None:
        """When the store last heard of an engine, Unix seconds."""
        with self.reading() as connection:
            found = connection.execute("SELECT max(last_ts) FROM engines WHERE engine = ?", [engine]).fetchone()
        return float(found[0]) if found and found[0] is not None else None

    def highest_policy(self) -> int:
        """The highest policy version that the store knows of, 0 for none."""
        query = "SELECT greatest((SELECT max(policy) FROM controls), (SELECT max(policy) FROM steps))"
        with self.reading() as connection:
            found = connection.execute(query).fetchone()
        return int(found[0]) if found and found[0] is not None else 0

    def put(self, item: Item) -> None:
        """Never blocks."""
        if self._queue.qsize() >= QUEUE_LIMIT and isinstance(item, Received):
            self.overflowed += 1
            return
        if isinstance(item, ControlRecord):
            self.on_control(item)
        self._queue.put(item)

    def tell_judge(self, what: Callable[[Judge], object]) -> Future[object]:
        """Let the judge know something, on the thread that feeds it."""
        answer: Future[object] = Future()
        self._queue.put(Told(what, answer))
        return answer

    def judge_state(self) -> Future[StateRecord]:
        """What the judge knows, told by the thread that feeds it."""
        answer: Future[StateRecord] = Future()
        self._queue.put(StateAsked(answer))
        return answer

    def flush_and_wait(self, seconds: float = 30.0) -> bool:
        """Whether everything put before is in DuckDB now. Blocks: not for the event loop."""
        mark = Mark(threading.Event())
        self._mark(mark)
        return mark.reached.wait(seconds) and self.error is None

    def _mark(self, mark: Mark) -> None:
        """Queue a mark, and have what is before it applied without gathering more."""
        self._queue.put(mark)
        self._urgent.set()

    def stop(self) -> None:
        """Apply what is queued, flush, end the thread, close the store. Blocks."""
        self._mark(Mark(threading.Event(), last=True))
        self._thread.join(timeout=60)
        try:
            self.ingest.close()  # rows that still waited for their sequence
        except StoreError as error:
            log.error("the last records could not be written: %s", error)
        self._keeping.write()
        self.house.save()
        self.store.close()

    def _run(self) -> None:
        while True:
            items, mark = self._take()
            with self.lock:
                for item in items:
                    self._apply(item)
                self.ingest.digest()  # the live windows take their share here, not in a flush outside the lock
            if mark is not None or time.monotonic() >= self._flush_at:
                self._flush()
            if mark is not None:
                mark.reached.set()
                if mark.last:
                    return

    def _take(self) -> tuple[list[Item], Mark | None]:
        """The next messages up to a mark, at most `_BATCH`. Waits no longer than to the next flush."""
        items: list[Item] = []
        timeout: float = max(0.0, self._flush_at - time.monotonic())
        try:
            while len(items) < _BATCH:
                item = self._queue.get(timeout=timeout)
                if isinstance(item, Mark):
                    self._urgent.clear()
                    return items, item
                if not items and self._queue.qsize() < _BATCH:
                    self._urgent.wait(GATHER_SECONDS)
                items.append(item)
                timeout = 0.0
        except queue.Empty:
            pass
        return items, None

    def _apply(self, item: Item) -> None:
        if isinstance(item, Received):
            if isinstance(item.message, Frame):
                self.ingest.frame(item.message, item.at)
            else:
                self.ingest.announcement(item.message, item.at)
        elif isinstance(item, Broken):
            self.ingest.broken_message(item.reason)
        elif isinstance(item, GapRecord):
            self.ingest.gap(item)
        elif isinstance(item, Observation):
            self.ingest.observation(item)
        elif isinstance(item, Note):
            now = time.time()
            self.ingest.note(item.text, now, now)
        elif isinstance(item, Remember):
            self._keeping.put(item.name, item.value)
        elif isinstance(item, Told):
            self._pass_on(item)
        elif isinstance(item, StateAsked):
            self._tell_state(item)
        else:
            self.ingest.control(item)

    def _pass_on(self, told: Told) -> None:
        try:
            told.answer.set_result(self.house.tell(told.what))
        except Exception as error:  # whoever asked is told; recording goes on
            told.answer.set_exception(error)

    def _tell_state(self, asked: StateAsked) -> None:
        try:
            asked.answer.set_result(self.house.state())
        except Exception as error:  # as above
            asked.answer.set_exception(error)

    def _flush(self) -> None:
        try:
            self.ingest.flush()
        except Exception as error:  # whatever DuckDB raises: recording stops, serving doesn't
            self._refused(error)
        else:
            if self.error is not None:
                self._tell("store", "recording again")
                self.error = None
            self._flush_at = time.monotonic() + FLUSH_SECONDS
            self._keeping.write()
            self.house.after_flush(self.lock)

    def _refused(self, error: Exception) -> None:
        remedy = "see that the disk has space and the file can be written"
        text = f"NOT RECORDING: {_first_line(error)}; {remedy}, it is tried again every {RETRY_SECONDS:.0f} s"
        if self.error is None:
            log.error("%s", text)
            self._tell("store", text)
        self.error = text
        self._flush_at = time.monotonic() + RETRY_SECONDS


def open_recorder(path: Path, tell: Callable[[str, str], None], settings: JudgeSettings | None = None) -> Recorder:
    """Open the store and everything that records into it. `settings`: of the judge.

    Raises:
        StoreBusy, NewerSchema, StoreError: as `Store.open`.
    """
    store = Store.open(path)
    windows = LiveWindows()
    try:
        preload(windows, store.connection, time.time())
    except duckdb.Error as error:  # the figures of the last hours are then missing on the screen, nothing else
        log.warning("the live windows begin empty: %s", error)
    gc.freeze()  # what was made until now stays: to search it for garbage would hold up a picture for long
    return Recorder(store, Ingest(store, windows), windows, tell, settings=settings)


def _stored_counts(store: Store) -> IngestCounts:
    """What earlier stations have stored. Messages that were no frames are nowhere stored: they are counted anew."""
    found = store.connection.execute(
        """SELECT (SELECT count(*) FROM gaps), (SELECT coalesce(sum(frames_lost), 0)::BIGINT FROM gaps),
             (SELECT count(*) FROM quarantine) + (SELECT coalesce(sum(count), 0)::BIGINT FROM quarantine_1h)"""
    ).fetchall()
    gaps, lost, quarantined = found[0]
    return IngestCounts(
        rows=rows_ever(store.connection),
        gaps=gaps,
        frames_lost=lost,
        quarantined=quarantined,
        unattributed=rows_ever(store.connection, UNATTRIBUTED),
    )


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
