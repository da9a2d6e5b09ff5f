"""What `[` and `]` do on the Live screen: fix a window, and ask for its figures at most once a second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from console.app.frame.inquiry import Inquiry
from console.app.live.fixed_window import TableWindow
from console.feed.client import FeedError
from console.feed.fixed_window import FixedFigures, FixedWindow
from store.window_spans import SPANS

if TYPE_CHECKING:
    from console.app.application import SpecdeckApp
    from console.app.frame.deck_screen import DeckScreen

ASK_SECONDS: Final = 1.0
ANSWER_SECONDS: Final = 4.0

_NEVER: Final = frozenset({"unknown_method", "bad_params", "refused"})
"""Answers after which asking again is no use."""
_TOO_OLD: Final = "this station is older than the console and shows each bucket's own window; restart it to fix one"
_HELD: Final = "The picture is held, and nothing is asked meanwhile: p lets it go on, then fix a window."


class WindowDesk:
    """`screen`: drawn anew when there is something else to show."""

    def __init__(self, screen: DeckScreen) -> None:
        self.window = TableWindow()
        self._screen = screen
        self._inquiry = Inquiry(ASK_SECONDS / 2)  # the caller's clock has the second

    @property
    def _app(self) -> SpecdeckApp:
        return self._screen.deck

    def change(self, step: int) -> None:
        if self._app.picture.paused_since is not None:
            self._app.tell(_HELD, severity="warning")
            return
        first = self.window.seconds is None
        if not self.window.change(step):
            self._app.tell(_edge(step))
            return
        if first:
            self._app.tell("For this console alone. Alerts and states keep the judge's windows.")
        self._changed()
        self.look()

    def look(self) -> None:
        """Ask, where figures are due."""
        picture, seconds = self._app.picture, self.window.seconds
        if seconds is not None and self._inquiry.begin(picture, seconds):
            self._app.run_worker(self._ask(seconds), group="window", exit_on_error=False)

    async def _ask(self, seconds: float) -> None:
        try:
            answer = await self._app.feed.request("buckets", FixedWindow(window=seconds), FixedFigures, ANSWER_SECONDS)
        except FeedError as error:
            if error.code in _NEVER and self.window.seconds == seconds:
                self.window.drop()
                self._app.tell(_TOO_OLD if error.code == "unknown_method" else error.message, severity="warning")
                self._changed()
            return  # else the title says that there is none, and it is asked again
        finally:
            self._inquiry.end()
        if self._app.picture.paused_since is not None:
            return
        if self.window.take(answer):
            self._draw()
        else:
            self.look()  # another was chosen meanwhile

    def _changed(self) -> None:
        self._app.show_window(self.window.label)
        self._draw()

    def _draw(self) -> None:
        if self._screen.is_mounted:
            self._screen.draw(self._app.picture)


def _edge(step: int) -> str:
    if step > 0:
        return f"{SPANS[-1][2]} is the longest that a station holds; `specdeck report --window 24h` goes further back."
    return "Each bucket shows the smallest window with 30 sequences already; ] fixes one."
