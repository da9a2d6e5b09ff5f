"""What `x` does: choose, ask before anything is replaced, have the station write, and say how far it is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

from console.app.bucket.facts import SPANS
from console.app.drawing import numbers
from console.app.exporting.choice import RANGES, Choice, Range, form_of, proposed
from console.app.frame.change import Change
from console.feed.client import FeedError
from console.feed.protocol import ExportParams

if TYPE_CHECKING:
    from console.app.application import SpecdeckApp

MOST_SECONDS: Final = 600.0
"""As long as a station works on one question."""
LOOK_SECONDS: Final = 1.0


class ExportDesk:
    """One export at a time: a second would only slow the first down."""

    def __init__(self, app: SpecdeckApp, folder: Path) -> None:
        """`folder`: where the console was started. The station's own may be another, so paths are absolute."""
        self._app = app
        self._folder = folder
        self._busy = ""

    def open(self, window: str | None) -> None:
        """`window`: name of the one that the Bucket screen shows, where that is the screen."""
        from console.app.exporting.dialog import ExportDialog

        if self._busy:
            self._app.tell(f"{self._busy} is still being exported: one at a time.", severity="warning")
            return
        picture = self._app.picture
        taken = [picture.snapshot.store.path] if picture.snapshot is not None else []
        if picture.replay is not None:
            taken.append(picture.replay.path)
        self._app.push_screen(
            ExportDialog(
                proposed(self._folder, picture.now), self._ranges(window), self._folder, picture.moment,
                [path for path in taken if path],
            ),
            self._chosen,
        )  # fmt: skip

    def _ranges(self, window: str | None) -> list[Range]:
        """A replay is exported whole, wherever its clock stands."""
        if self._app.picture.replaying:
            return [Range("the whole record", None)]
        shown = next((span for span in SPANS if span.name == window), None)
        own = [Range(f"what this screen shows, {shown.name}", shown.seconds)] if shown is not None else []
        return [*RANGES, *own]

    def _chosen(self, choice: Choice | None) -> None:
        from console.app.frame.dialogs import ConfirmDialog

        if choice is None:
            return
        if not choice.replaces:
            self._start(choice)
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self._start(choice)

        self._app.push_screen(ConfirmDialog(_replacing(choice)), answered)

    def _start(self, choice: Choice) -> None:
        self._busy = choice.path.name
        self._app.run_worker(self._run(choice), group="export", exit_on_error=False)

    async def _run(self, choice: Choice) -> None:
        params = ExportParams(path=str(choice.path), since=choice.since, replace=choice.replaces)
        began = self._app.clock()
        work = asyncio.ensure_future(self._app.feed.request("export", params, object, MOST_SECONDS))
        try:
            while not (await asyncio.wait({work}, timeout=LOOK_SECONDS))[0]:
                self._app.show_export(f"exporting {size_words(_written(choice.path))}")
            await work
        except FeedError as error:
            self._app.tell(_failed(choice, error), severity="warning")
        else:
            took = numbers.duration(max(0.0, self._app.clock() - began))
            size = await asyncio.to_thread(_size, choice.path)
            self._app.tell(f"Exported {choice.range.name} to {choice.path}: {size_words(size)} in {took}.")
        finally:
            work.cancel()
            self._busy = ""
            self._app.show_export("")


def here() -> Path:
    """The folder that the console was started in; of one that is gone the operator's own."""
    try:
        return Path.cwd()
    except OSError:
        return Path.home()


def size_words(size: int) -> str:
    return numbers.size(size) if size else "…"


def _replacing(choice: Choice) -> Change:
    before = f"{choice.path}, {size_words(_size(choice.path))}"
    return Change(
        "Replace a file", before, f"{form_of(choice.path.name)}, {choice.range.name}",
        ["What is in the file now is lost once the export is complete; until then it stays."],
        "none: keep a copy of it first, or choose another name",
    )  # fmt: skip


def _failed(choice: Choice, error: FeedError) -> str:
    if error.code == "deadline":
        return f"No answer within 10 min: {choice.path} may still be written; it has its name once it is complete."
    if error.code == "unknown_method":
        return "This station can't export: restart it with this specdeck."
    return f"Nothing was exported: {error.message}"


def _written(path: Path) -> int:
    """Bytes of what is not complete yet: the station writes under another name beside it."""
    try:
        return sum(_size(one) for one in path.parent.glob(f".{_literal(path.name)}.partial-*"))
    except OSError:
        return 0


def _size(path: Path) -> int:
    try:
        files = list(path.iterdir()) if path.is_dir() else [path]
        return sum(file.stat().st_size for file in files)
    except OSError:
        return 0


def _literal(name: str) -> str:
    """As a pattern that means only itself."""
    import glob

    return glob.escape(name)
