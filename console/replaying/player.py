"""A replay as it is played: its clock, the windows that follow it, and the pictures of where it stands."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Final

from console.feed.fixed_window import FixedFigures
from console.feed.messages import ReplayMark, ReplayView, Series, Snapshot
from console.feed.protocol import SeriesParams
from console.picturing.bucket_views import BucketViews
from console.picturing.marginal_points import decided_gains, with_marginals
from console.replaying.clock import Clock
from console.replaying.marks import thinned
from console.replaying.moving import FEW_ROWS, Moving
from console.replaying.opened import Opened
from console.replaying.picture import Picture, picture_of
from console.replaying.snapshots import Station, snapshot_of
from console.replaying.timeline import Timeline
from engine.step_time.model import StepModel
from store.figures import BucketKey
from store.levels import FINEST
from store.load import Runner
from store.moments import last_step_before, moment_of_work, played_span, told_notes
from store.series import range_of
from store.series_detail import detailed

PICTURE_SECONDS: Final = 0.25
"""From one picture to the next while it plays."""
WORK_SECONDS: Final = 0.2
"""As fast as it goes: each picture moves on as far as takes so long."""
_ROWS_AT_ONCE: Final = (500, 200_000)
REREAD_SECONDS: Final = 1.0
"""What happened is read anew so often at most while more is taken in."""


class NothingYet(Exception):
    """There is no moment on record so far that could be shown."""


class Player:
    """Its methods may be called from any thread; those that read the store take milliseconds to a second."""

    def __init__(self, opened: Opened, *, wall: Callable[[], float] = time.monotonic) -> None:
        self.id = uuid.uuid4().hex[:12]
        self.opened = opened
        self._wall = wall
        self._lock = threading.RLock()
        self._started = time.time()
        self._connection = opened.store.cursor()
        self._moving = Moving(self._connection)
        self._views = BucketViews()
        self._timeline = Timeline(self._connection)
        self._notes: list[str] = []
        self._stale = True
        self._reread_at = 0.0
        self._number = 0
        self._shown: Picture | None = None
        self._marks: list[ReplayMark] = []
        self._position = ""
        self._rows_at_once = FEW_ROWS
        self._clock: Clock | None = None

    def more(self) -> None:
        """There is more on record than before, or all. From any thread, at once."""
        self._stale = True

    @property
    def clock(self) -> Clock:
        """Raises NothingYet."""
        with self._lock:
            self._take_in_more()
            if self._clock is None:
                raise NothingYet
            return self._clock

    @property
    def timeline(self) -> Timeline:
        return self._timeline

    def now(self) -> float:
        """Where the clock stands, Unix seconds of the record. Raises NothingYet."""
        with self._lock:
            return self.clock.tick(self._wall())

    @property
    def models(self) -> Mapping[Runner, StepModel]:
        """Step times, of all that was taken in."""
        return self._moving.models

    def act(self, what: Callable[[Clock, float], None]) -> ReplayView:
        """Move the clock, given the wall time too; where the replay stands then."""
        with self._lock:
            what(self.clock, self._wall())
            return self.view()

    def view(self) -> ReplayView:
        clock = self.clock
        return ReplayView(
            path=str(self.opened.path),
            start=clock.start,
            end=clock.end,
            complete=clock.complete,
            loaded_share=self.opened.share,
            playing=clock.playing,
            speed=clock.speed,
            loop=clock.loop,
            marks=self._marks,
            position=self._position,
            notes=[*self._notes, *([self.opened.error] if self.opened.error else [])],
        )

    def take(self) -> Snapshot:
        """The picture of where the clock has come to. Raises NothingYet."""
        with self._lock:
            began = time.perf_counter()
            ts = self._move_on()
            if self._shown is None or self._moving.ts != ts:  # else it is the same picture
                self._moving.to(ts, self._ahead())
                self._shown = self._picture(ts)
            self._number += 1
            if self.opened.loading is not None:
                self.opened.loading.seen.set()
            shown_by = Station(self.id, self._number, self._started)
            snapshot = snapshot_of(self._shown, shown_by, self.view(), self.opened, self._timeline.last_events(ts))
            self._pace(time.perf_counter() - began)
            return snapshot

    def series(self, params: SeriesParams) -> Series:
        """The last stretch before the clock; while it plays, before the picture that was shown last."""
        key = None if params.key is None else BucketKey(*params.key)
        with self._lock:
            ts = self._stand()
            points = self._moving.windows.series(key, params.seconds, params.points, ts)
            marks = self._timeline.events_since(ts - params.seconds, ts)
            controls = self._timeline.controls_until(ts)
        width = float(range_of(params.seconds, params.points, ts).cell_seconds)
        if params.detail and key is not None:
            with self.opened.reading() as connection:
                points = detailed(connection, key, points, int(width), self.models, ts)
            points = with_marginals(points, width, decided_gains(controls, key.workload))
        return Series(key=key, cell_seconds=width, points=points, marks=marks)

    def fixed(self, window: float) -> FixedFigures:
        """The bucket table over a window of so many seconds, of the moment that `series` is of, too."""
        with self._lock:
            ts = self._stand()
            found, total = self._moving.windows.buckets(ts, window), self._moving.windows.total(ts, window)
        return FixedFigures(ts=ts, window=window, total=total, buckets=BucketViews().of(found))

    def _stand(self) -> float:
        """The moment that questions are answered for: where the clock stands; while it plays, that of the last
        picture."""
        if self._shown is None or not self.clock.playing:
            self._moving.to(self.now())
        return self._moving.ts

    def _move_on(self) -> float:
        """Let the clock follow the wall, or the work that can be done where it goes as fast as it can."""
        clock = self.clock
        clock.tick(self._wall())
        if clock.playing and clock.speed is None:
            reached = moment_of_work(self._connection, clock.ts, self._rows_at_once)
            limit = clock.end if clock.loop is None else clock.loop[1]
            clock.move((limit if reached is None else min(reached, limit)) - clock.ts)
        return clock.ts

    def _ahead(self) -> float:
        """Seconds of record to the next picture; 0 where it stands, or goes as fast as it can."""
        clock = self.clock
        return PICTURE_SECONDS * clock.speed if clock.playing and clock.speed is not None else 0.0

    def _pace(self, seconds: float) -> None:
        """How many rows to take at once, by how long the last ones took."""
        if self._clock is not None and self._clock.playing and self._clock.speed is None:
            wanted = int(self._rows_at_once * min(2.0, max(0.5, WORK_SECONDS / max(seconds, 1e-3))))
            self._rows_at_once = min(max(wanted, _ROWS_AT_ONCE[0]), _ROWS_AT_ONCE[1])

    def _take_in_more(self) -> None:
        complete = self.opened.complete
        if not self._stale or (time.monotonic() < self._reread_at and not complete):
            return
        self._stale = False
        span = played_span(self._connection)
        if span is None or not (span.steps or complete):
            return
        self._reread_at = time.monotonic() + REREAD_SECONDS
        if self._clock is None:
            self._clock = Clock(span.start, span.end, complete=complete)
        self._clock.extend(span.end, complete=complete)
        self._timeline = Timeline(self._connection)
        self._notes = told_notes(self._connection)
        self._marks = thinned(self._timeline.marks, self._clock.start, self._clock.end)
        self._moving.renew(afresh=complete)
        self._shown = None

    def _picture(self, ts: float) -> Picture:
        last = last_step_before(self._connection, ts)
        self._position = "" if last is None else f"step {last[1]} of {last[0]}"
        judged = ts if ts < self.clock.end else ts + FINEST.seconds  # the last cell is judged at its end
        return picture_of(ts, judged, self._moving.windows, self._views, self._timeline, self._connection)
