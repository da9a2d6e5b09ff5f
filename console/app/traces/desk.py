"""What the keys of the Traces screen do: begin and end a recording, and open a trace."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from console.app.drawing import numbers
from console.app.drawing.spans import clean
from console.app.traces.words import end_change, replace_change
from console.feed.client import FeedError
from console.feed.messages import RecordingView
from console.feed.protocol import Method
from console.feed.traces import RecordingBegin, RecordingEnd, TraceLook, Traces

if TYPE_CHECKING:
    from console.app.application import SpecdeckApp
    from console.app.traces.record_dialog import Wanted

ANSWER_SECONDS: Final = 45.0
"""All that came is stored before one begins."""
OLDER: Final = (
    "This station is older than the console and makes no recordings by itself; `specdeck trace record` does it from a "
    "shell."
)


class TracesDesk:
    """The methods assume what their actions need: a station that answers and may be told."""

    def __init__(self, app: SpecdeckApp) -> None:
        self._app = app

    def record(self, found: Traces) -> None:
        """Ask where to, then begin."""
        from console.app.traces.record_dialog import RecordDialog

        def chosen(wanted: Wanted | None) -> None:
            if wanted is not None:
                self._unless_there(wanted, begin)

        def begin(wanted: Wanted) -> None:
            params = RecordingBegin(path=wanted.path, seconds=wanted.seconds, replace=wanted.there)
            self._run("recording_begin", params, f"recording into {wanted.path}: it goes on without this console, too")

        name = proposed_name(self._app.picture.now, {look.path for look in found.traces}, found.folder)
        self._app.push_screen(RecordDialog(name, found.folder, self._app.here), chosen)

    def end(self, found: Traces | None) -> None:
        """Ask, then write it; one that could not be written is written where one says."""
        from console.app.frame.dialogs import ConfirmDialog
        from console.app.traces.record_dialog import RecordDialog

        view = self._recording

        def end(path: str | None = None, replaced: bool = False) -> None:
            params = RecordingEnd(id=view.id, path=path, replace=replaced)
            self._run("recording_end", params, f"the recording is being written to {path or view.path}")

        def confirmed(yes: bool | None) -> None:
            if yes:
                end()

        def chosen(wanted: Wanted | None) -> None:
            if wanted is not None:
                self._unless_there(wanted, lambda wanted: end(wanted.path, wanted.there))

        if view.note:
            folder = found.folder if found is not None else str(Path(view.path).parent)
            self._app.push_screen(RecordDialog(view.path, folder, self._app.here, again=view.note), chosen)
        else:
            self._app.push_screen(ConfirmDialog(end_change(view, self._app.picture.now)), confirmed)

    def open(self, look: TraceLook) -> None:
        """Show it; one that can't be is told of."""
        if look.state == "broken":
            self._app.tell(f"It is broken: {clean(look.reason)}", severity="warning")
        elif look.state == "held":
            self._app.tell(f"It can't be opened now: {clean(look.reason)}.", severity="warning")
        else:
            self._app.open_trace(look.path)

    @property
    def _recording(self) -> RecordingView:
        snapshot = self._app.picture.snapshot
        view = snapshot.recording if snapshot is not None else None
        assert view is not None  # the action needs it
        return view

    def _unless_there(self, wanted: Wanted, go_on: Callable[[Wanted], None]) -> None:
        """Ask before a file is replaced."""
        from console.app.frame.dialogs import ConfirmDialog

        if not wanted.there:
            go_on(wanted)
            return

        def confirmed(yes: bool | None) -> None:
            if yes:
                go_on(wanted)

        self._app.push_screen(ConfirmDialog(replace_change(wanted.path, _file_words(Path(wanted.path)))), confirmed)

    def _run(self, method: Method, params: msgspec.Struct, done: str) -> None:
        async def ask() -> None:
            try:
                await self._app.feed.request(method, params, RecordingView, ANSWER_SECONDS)
            except FeedError as error:
                text = OLDER if error.code == "unknown_method" else f"the recording: {error.message}"
                self._app.tell(text, severity="warning")
            else:
                self._app.tell(done)

        self._app.run_worker(ask(), group="act", exit_on_error=False)


def proposed_name(now: float, taken: set[str], folder: str) -> str:
    """By the time, and another than those that are there."""
    stem = time.strftime("%Y-%m-%d_%H%M", time.localtime(now))
    names = (f"{stem}{'' if number == 1 else f'-{number}'}.jsonl.zst" for number in range(1, 1000))
    return next(name for name in names if str(Path(folder) / name) not in taken)


def _file_words(path: Path) -> str:
    try:
        stat = path.stat()
    except OSError:
        return "it is gone by now"
    return f"{numbers.size(stat.st_size)}, of {numbers.day(stat.st_mtime)} {numbers.minutes(stat.st_mtime)}"
