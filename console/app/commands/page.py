"""The page of the command log: follows what is asked and done while it is open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from textual import work
from textual.containers import VerticalScroll

from console.app.commands.rows import log_lines, log_rows
from console.app.drawing.line_view import LineView
from console.app.drawing.spans import Line
from console.app.frame.inquiry import Inquiry
from console.app.frame.pages import Page
from console.feed.client import FeedError
from console.feed.protocol import History, HistoryEntry, HistoryParams

if TYPE_CHECKING:
    from console.app.application import SpecdeckApp

LOOK_SECONDS: Final = 0.5
AGAIN_SECONDS: Final = 10.0
ENTRIES: Final = 500


class CommandLogPage(Page):
    """Newest last; it stands at its end until it is scrolled."""

    def __init__(self) -> None:
        super().__init__("Command log", self._page)
        self._entries: list[HistoryEntry] = []
        self._trouble = ""
        self._inquiry = Inquiry(AGAIN_SECONDS)
        self._shown: object = None

    @property
    def _deck(self) -> SpecdeckApp:
        return cast("SpecdeckApp", self.app)

    def on_mount(self) -> None:
        self.set_interval(LOOK_SECONDS, self._look)
        self._look()
        self._to_end()

    def _look(self) -> None:
        picture, log = self._deck.picture, self._deck.command_log
        snapshot = picture.snapshot
        if snapshot is not None:
            about = (snapshot.policy_version, snapshot.acts, log.changes)
            if self._inquiry.begin(picture, about):
                self._fetch()
        if self._shown != (log.changes, self._entries, self._trouble):
            self._draw()

    @work(exclusive=True, group="history", exit_on_error=False)
    async def _fetch(self) -> None:
        try:
            history = await self._deck.feed.request("policy_history", HistoryParams(limit=ENTRIES), History, 4.0)
        except FeedError as error:
            self._trouble = f"What others did can't be read: {error.message}"
        else:
            self._entries, self._trouble = history.entries, ""
        finally:
            self._inquiry.end()
        self._draw()

    def _draw(self) -> None:
        scroll = self.query_one(VerticalScroll)
        at_end = scroll.is_vertical_scroll_end
        self._shown = (self._deck.command_log.changes, self._entries, self._trouble)
        self.query_one(LineView).show(lambda width, height: self._page(width))
        if at_end:
            self._to_end()

    def _to_end(self) -> None:
        self.call_after_refresh(self.query_one(VerticalScroll).scroll_end, animate=False)

    def _page(self, width: int) -> list[Line]:
        deck, replaying = self._deck, self._deck.picture.replaying
        asked = [] if replaying else list(deck.command_log)
        rows = log_rows(asked, self._entries, deck.actor, None if replaying else deck.command_log.began)
        return log_lines(rows, deck.actor, deck.picture.moment, width, self._trouble)
