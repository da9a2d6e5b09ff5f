"""The recording into a trace file that goes on: begun and ended by any console, and outliving all of them.

All that it needs is what the judge knew at its beginning; its rows are in the store like all others. It is remembered
there: a station that is started again on the same store takes it up, its own absence a gap in it. One that can't be
written goes on, so nothing is lost.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from console.feed.messages import RecordingView
from console.feed.server import FeedError
from console.feed.traces import LONGEST_SECONDS, RecordingBegin, RecordingEnd, form_of_name
from console.station import queries, recording_file
from console.station.events import Condition
from console.station.recorder import Recorder, Remember
from console.station.recording_file import NoTarget
from engine.records import StateRecord
from store.database import StoreError

if TYPE_CHECKING:
    from console.station.station import Station

KEPT: Final = "trace_recording"
LOOK_SECONDS: Final = 0.5
AGAIN_SECONDS: Final = 60.0
"""After one whose time is over could not be written."""
SHOWN_SECONDS: Final = 600.0
"""How long one that was written is shown."""
WAIT_SECONDS: Final = 20.0
"""Of a station that ends, for one that is being written."""


class Going(msgspec.Struct, frozen=True, kw_only=True):
    """What is remembered of a recording. `rows_before`: of all that the store ever took, those that it does not hold.
    `ended`: it is to be written."""

    id: str
    path: str
    actor: str
    began: float
    seconds: float | None
    replace: bool
    rows_before: int
    state: StateRecord
    ended: float | None = None

    @property
    def until(self) -> float:
        return self.began + (LONGEST_SECONDS if self.seconds is None else self.seconds)


class TraceRecording:
    """On the event loop; what takes its time is done in threads."""

    def __init__(
        self,
        recorder: Recorder,
        tell: Callable[[str, str], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._recorder = recorder
        self._tell = tell
        self._now = now
        self._going = _remembered(recorder.kept(KEPT))
        self._note = ""
        self._busy = False
        self._writing: asyncio.Task[None] | None = None
        self._not_before = 0.0
        self._last: RecordingView | None = None
        if self._going is not None:
            tell("recording", f"the recording into {self._going.path} goes on, begun by {self._going.actor}")

    def view(self) -> RecordingView | None:
        """The one that goes on; else the last one, for a while."""
        going = self._going
        if going is not None:
            return self._view(going)
        last = self._last
        fresh = last is not None and last.ended is not None and self._now() - last.ended < SHOWN_SECONDS
        return last if fresh else None

    def conditions(self) -> list[Condition]:
        """What is wrong with it."""
        if self._going is None or not self._note or self._writing is not None:
            return []
        text = f"The recording could not be written: {self._note}. It goes on, nothing is lost; 6 and b write it."
        return [Condition("recording", "recording_unwritten", "warn", text)]

    async def begin(
        self, params: RecordingBegin, actor: str, state: Callable[[], Awaitable[StateRecord]]
    ) -> RecordingView:
        """Raises FeedError: another one goes on, or this one can't be."""
        if params.seconds is not None and not 0 < params.seconds <= LONGEST_SECONDS:
            raise FeedError("bad_params", "recording_begin: at most 1 d, since older steps may be removed by then")
        if self._going is not None or self._busy:
            what = (
                "one is just being begun" if self._going is None else f"into {self._going.path}, by {self._going.actor}"
            )
            raise FeedError("refused", f"a recording goes on already, {what}; end it first")
        self._busy = True
        try:
            await asyncio.to_thread(recording_file.prepare, self._recorder, params.path, replace=params.replace)
            known = await state()
            since = await asyncio.to_thread(recording_file.rows_since, self._recorder, known.ts)
        except NoTarget as error:
            raise FeedError("refused", str(error)) from error
        finally:
            self._busy = False
        before = self._recorder.counts().rows - since
        going = Going(
            id=uuid.uuid4().hex[:12], path=params.path, actor=actor, began=self._now(), seconds=params.seconds,
            replace=params.replace, rows_before=before, state=known,
        )  # fmt: skip
        self._note = ""
        self._keep(going)
        await asyncio.to_thread(self._recorder.flush_and_wait)  # a station that is killed now still knows of it
        self._tell("recording", f"{actor} records into {params.path}")
        return self._view(going)

    async def end(self, params: RecordingEnd, actor: str) -> RecordingView:
        """Begin to write it. Raises FeedError: there is none, or it can't be written there."""
        going = self._going
        if going is None:
            raise FeedError("refused", "no recording goes on")
        if params.id is not None and params.id != going.id:
            raise FeedError("refused", f"that recording is over; the one into {going.path} goes on")
        if self._writing is not None or going.ended is not None:
            raise FeedError("refused", f"it is being written already, into {going.path}")
        if params.path is not None:
            try:
                await asyncio.to_thread(recording_file.check_target, params.path, replace=params.replace)
            except NoTarget as error:
                raise FeedError("refused", str(error)) from error
            if self._going != going:
                raise FeedError("refused", "somebody else has just ended it")
            going = replace(going, path=params.path, replace=params.replace)
        self._tell("recording", f"{actor} ended the recording into {going.path}")
        self._write(going)
        return self._view(self._going or going)

    async def run(self) -> None:
        """For ever: end the one whose time is over, and write what an earlier station was writing."""
        while True:
            going, now = self._going, self._now()
            due = going is not None and (going.ended is not None or now >= going.until)
            if going is not None and due and self._writing is None and now >= self._not_before:
                await self._take_up(going)
            await asyncio.sleep(LOOK_SECONDS)

    async def stop(self) -> None:
        """The station ends. One that is being written has a while left; else the next station writes it."""
        if self._writing is not None:
            await asyncio.wait([self._writing], timeout=WAIT_SECONDS)
        if self._going is not None:
            self._tell("recording", f"the recording into {self._going.path} goes on once a station runs again")

    async def _take_up(self, going: Going) -> None:
        ended = going.ended
        if ended is not None and await asyncio.to_thread(recording_file.was_written, going.path, ended):
            self._tell("recording", f"recorded into {going.path} before the last station ended")
            self._keep(None)
        elif self._going == going:
            self._write(going)

    def _write(self, going: Going) -> None:
        self._keep(replace(going, ended=self._now()))
        self._writing = asyncio.create_task(self._written())

    async def _written(self) -> None:
        going = self._going
        assert going is not None
        try:
            done = await asyncio.to_thread(
                recording_file.write_recording, self._recorder, going.path, going.state, replace=going.replace
            )
        except asyncio.CancelledError:
            raise
        except Exception as error:  # whatever it is: the rows are in the store, and the recording goes on
            self._writing = None
            self._failed(going, error)
        else:
            self._writing = None
            view = self._view(going)
            self._last = replace(view, state="written", bytes=done.bytes, note=done.note)
            self._keep(None)
            self._tell("recording", f"recorded into {going.path}: {view.rows} rows")

    def _failed(self, going: Going, error: Exception) -> None:
        known = isinstance(error, StoreError | NoTarget)
        text = next(iter(str(error).splitlines()), "") or type(error).__name__
        self._note = text if known else f"{going.path}: {text}"
        self._not_before = self._now() + AGAIN_SECONDS
        self._keep(replace(going, ended=None))
        self._tell("recording", f"the recording could not be written and goes on: {self._note}")

    def _keep(self, going: Going | None) -> None:
        self._going = going
        self._recorder.put(Remember(KEPT, b"" if going is None else msgspec.json.encode(going)))

    def _view(self, going: Going) -> RecordingView:
        rows = max(0, self._recorder.counts().rows - going.rows_before)
        per_row = recording_file.BYTES_PER_ROW[form_of_name(going.path) or "zst"]
        return RecordingView(
            id=going.id, path=going.path, state="on" if self._writing is None else "writing", actor=going.actor,
            began=going.began, since=going.state.ts, seconds=going.seconds, until=going.until, rows=rows,
            bytes=int(rows * per_row), ended=going.ended, note=self._note if self._writing is None else "",
        )  # fmt: skip


def _remembered(kept: bytes | None) -> Going | None:
    try:
        return msgspec.json.decode(kept, type=Going) if kept else None
    except msgspec.DecodeError:  # of another version: its rows are in the store all the same
        return None


async def recording_begin(station: Station, params: RecordingBegin, actor: str) -> RecordingView:
    if station.control is None:
        raise FeedError("refused", "this station only observes: it has counters, and no steps that could be recorded")
    return await station.recording.begin(params, actor, lambda: queries.trace_state(station, None, actor))


async def recording_end(station: Station, params: RecordingEnd, actor: str) -> RecordingView:
    return await station.recording.end(params, actor)
