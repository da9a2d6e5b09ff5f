"""Screen 7: what the engine is, what it executes and why, and its log as it grows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Log

from console.app import actions
from console.app.actions import Context
from console.app.drawing import numbers
from console.app.drawing.line_view import LineView
from console.app.drawing.panel import Panel
from console.app.drawing.spans import clean
from console.app.engine.facts import engine_lines
from console.app.frame.awaited import awaited
from console.app.frame.deck_screen import DeckScreen
from console.app.frame.guard import guarded
from console.app.picture import Picture
from console.feed.client import FeedError
from console.feed.messages import EngineView
from console.feed.protocol import LogChunk, LogParams, RestartParams

if TYPE_CHECKING:
    from console.app.explaining.section import Section

LOG_INTERVAL: Final = 1.0
LOG_LINES: Final = 5000

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")


class EngineScreen(DeckScreen):
    CONTEXT: ClassVar[Context] = "engine"
    BINDINGS: ClassVar[list[BindingType]] = actions.bindings("engine")

    def __init__(self) -> None:
        super().__init__()
        self._offset: int | None = None
        self._path = ""
        self._half_line = ""
        self._unseen = 0
        self._error = ""
        self._placeholder = False
        """What is in the log view is no log."""

    def body(self) -> ComposeResult:
        yield LineView(id="engine-facts")
        with Panel(id="log-panel"):
            yield Log(id="log", highlight=False, max_lines=LOG_LINES, auto_scroll=True)

    @property
    def log_view(self) -> Log:
        return self.query_one(Log)

    def copied(self) -> str | None:
        """The lines of the log that are in view."""
        log = self.log_view
        first = log.scroll_offset.y
        return "\n".join(log.lines[first : first + log.size.height]) or None

    def on_mount(self) -> None:
        self.log_view.focus()
        self._say(awaited("The engine's log shows", self.deck.picture))
        self.set_interval(LOG_INTERVAL, self._want_log)
        self._want_log()

    def draw(self, picture: Picture) -> None:
        roomy = self.size.height >= 30
        self._view("engine-facts").show(lambda width, height: engine_lines(picture, width, roomy))
        self._caption()

    def _caption(self) -> None:
        if self._error:
            state = "" if self.deck.picture.replaying else self._error
        elif self.log_view.is_vertical_scroll_end:
            self._unseen = 0
            state = "following"
        else:
            state = f"+{self._unseen} new lines, end follows"
        self.query_one("#log-panel", Panel).caption(f"log {self._path}".rstrip(), state)

    def _want_log(self) -> None:
        picture = self.deck.picture
        told = picture.replaying and self._error  # it has none, and will have none
        if picture.link.state == "connected" and picture.paused_since is None and self.is_current and not told:
            self._fetch_log()

    @work(exclusive=True, group="log", exit_on_error=False)
    async def _fetch_log(self) -> None:
        params = LogParams() if self._offset is None else LogParams(offset=self._offset)
        try:
            chunk = await self.deck.feed.request("engine_log", params, LogChunk, 4.0)
        except FeedError as error:
            self._error = error.message
            if not self._path:
                self._say(error.message)
        else:
            self._error = ""
            self._append(chunk)
        self._caption()

    def _append(self, chunk: LogChunk) -> None:
        if chunk.path != self._path or (self._offset is not None and chunk.offset < self._offset):
            self.log_view.clear()  # another engine, or a log begun anew
            self._half_line, self._placeholder = "", False
        self._path, self._offset = chunk.path, chunk.offset
        *whole, self._half_line = (self._half_line + chunk.text).split("\n")
        if not whole:
            if not self.log_view.line_count:
                self._say("Nothing was written to it so far.")
            return
        if self._placeholder:
            self.log_view.clear()
            self._placeholder = False
        following = self.log_view.is_vertical_scroll_end
        self._unseen = 0 if following else self._unseen + len(whole)
        self.log_view.write_lines([_plain(line) for line in whole], scroll_end=following)

    def _say(self, text: str) -> None:
        """In the place of a log."""
        self.log_view.clear()
        self.log_view.write_line(f"  {clean(text)}")
        self._placeholder = True

    # Actions

    def explained(self) -> list[Section]:
        from console.app.explaining.engine import engine_sections

        return engine_sections(self.deck.picture)

    @guarded
    def action_explain_engine(self) -> None:
        self.deck.explain("Explained", self.explained())

    def action_follow(self) -> None:
        self.log_view.scroll_end(animate=False)
        self._unseen = 0
        self.call_after_refresh(self._caption)

    @guarded
    def action_restart(self) -> None:
        from console.app.frame.change import Change
        from console.app.frame.dialogs import ConfirmDialog

        engine = next(engine for engine in self.deck.picture.engines if engine.owned)
        cut = (engine.running or 0) + (engine.waiting or 0)
        change = Change(
            title=f"Restart engine {engine.engine}",
            before=f"{engine.state}, {numbers.plain(engine.running)} running, {numbers.plain(engine.waiting)} waiting",
            after="stopped, then started anew with the same settings",
            effects=[
                f"Requests under way are cut off ({cut} now); the gateway stays up.",
                f"Nothing is served until it is up again{_last_start(engine)}.",
                "The outage is recorded and shows on the time axis.",
            ],
            undo="none: once it has begun it has to finish",
        )

        def confirmed(yes: bool | None) -> None:
            if yes:
                self._restart(engine)

        self.app.push_screen(ConfirmDialog(change), confirmed)

    @work(exclusive=True, group="restart", exit_on_error=False)
    async def _restart(self, engine: EngineView) -> None:
        await self.deck.act("engine_restart", RestartParams(engine.engine), "restart asked for")


def _last_start(engine: EngineView) -> str:
    seconds = sum(phase.seconds or 0.0 for phase in engine.phases)
    return f" (the last start took {numbers.duration(seconds)})" if seconds else ""


def _plain(line: str) -> str:
    """A log line without colour codes and control characters."""
    return clean(_ESCAPES.sub("", line.rstrip("\r")).expandtabs(4))
