"""What every screen has: the status line above, the alert and key lines below, and a page for a terminal too small."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, cast

from textual.app import ComposeResult
from textual.screen import Screen

from console.app import actions
from console.app.actions import Action, Context
from console.app.drawing.line_view import LineView
from console.app.drawing.spans import EMPTY, Line
from console.app.frame.statusline import alert_line, key_line, status_line
from console.app.picture import Picture
from console.app.replay.time_bar_view import TimeBar
from console.feed.protocol import HistoryEntry

if TYPE_CHECKING:
    from console.app.application import SpecdeckApp

LEAST_WIDTH, LEAST_HEIGHT = 60, 15
WIDTHS: Final = [(0, "-slim"), (LEAST_WIDTH, "-narrow"), (120, "-wide")]
HEIGHTS: Final = [(0, "-flat"), (LEAST_HEIGHT, "-short"), (30, "-tall")]
"""Classes of every screen and dialog by the size of the terminal. Below the least size all say `_too_small` alone."""


class DeckScreen(Screen[None]):
    """A screen by number key. Subclasses compose `body` and draw a picture in `draw`."""

    CONTEXT: ClassVar[Context] = "everywhere"

    @property
    def deck(self) -> SpecdeckApp:
        return cast("SpecdeckApp", self.app)

    def compose(self) -> ComposeResult:
        yield LineView(id="status")
        yield from self.body()
        yield LineView(id="alerts")
        yield TimeBar(id="time-bar")
        yield LineView(id="keys")
        yield LineView(id="too-small")

    @property
    def marked_change(self) -> HistoryEntry | None:
        """The line of the policy's history that `u` is about, None for the newest change."""
        return None

    def body(self) -> ComposeResult:
        """The widgets between the status line and the alert line."""
        raise NotImplementedError

    def draw(self, picture: Picture) -> None:
        """Bring the body up to date."""
        raise NotImplementedError

    def show(self, picture: Picture) -> None:
        """Draw a picture. The last one stays, dimmed, while the station is away."""
        if not self.is_mounted:
            return
        self.set_class(picture.link.state == "lost", "-stale")
        self.set_class(picture.replay is not None, "-replay")
        shown = self.shown_actions()
        keymap = self.deck.keymap
        self._view("status").show(lambda width, height: [status_line(picture, width)])
        self._view("alerts").show(lambda width, height: [alert_line(picture, width)])
        self.query_one(TimeBar).show_replay(picture)
        self._view("keys").show(lambda width, height: [key_line(shown, picture, keymap, width, self.CONTEXT)])
        self._view("too-small").show(_too_small)
        self.draw(picture)

    def shown_actions(self) -> list[Action]:
        """What the key line may name, in its order: screens, a replay's, the screen's own, the rest."""
        everywhere = actions.in_context("everywhere")
        screens = [action for action in everywhere if action.keys.isdigit()]
        rest = [action for action in everywhere if not action.keys.isdigit()]
        return [*screens, *actions.in_context("replay"), *actions.in_context(self.CONTEXT), *rest]

    def on_mount(self) -> None:
        self.show(self.deck.picture)

    def on_screen_resume(self) -> None:
        self.show(self.deck.picture)

    def on_resize(self) -> None:
        """What a screen draws may depend on its size; without this it would change with the next picture only."""
        self.show(self.deck.picture)

    def _view(self, id: str) -> LineView:
        return self.query_one(f"#{id}", LineView)


def _too_small(width: int, height: int) -> list[Line]:
    texts = [
        "specdeck: too small here",
        f"{width}×{height}, needs {LEAST_WIDTH}×{LEAST_HEIGHT}",
        "q leaves; esc closes what is open",
    ]
    above: list[Line] = [EMPTY] * max(0, (height - len(texts)) // 2)
    return [*above, *(((text.center(width), "dim"),) for text in texts)]
