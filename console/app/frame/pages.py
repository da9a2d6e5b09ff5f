"""Pages over a screen: help and explanations. They scroll, and any of a few keys closes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final, cast

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen

from console.app import actions
from console.app.actions import CONTEXT_TITLES, Context, key_name, unmet
from console.app.drawing.line_view import LineView
from console.app.drawing.panel import Panel
from console.app.drawing.spans import EMPTY, Line, Role, Span, left, wrap
from console.app.live.explanation import explain
from console.app.picture import Picture
from console.feed.messages import BucketView, Snapshot

if TYPE_CHECKING:
    from console.app.application import SpecdeckApp


class Page(ModalScreen[None]):
    """Lines in a box, scrolled with the arrow keys."""

    BINDINGS: ClassVar[list[BindingType]] = actions.bindings("page")

    def __init__(self, title: str, draw: Callable[[int], list[Line]]) -> None:
        super().__init__()
        self._title = title
        self._draw_page = draw

    def compose(self) -> ComposeResult:
        with Panel(id="page"), VerticalScroll(id="page-scroll"):
            yield LineView(id="page-lines")

    def on_mount(self) -> None:
        self.query_one(Panel).caption(self._title, "↑ ↓ scroll · esc closes")
        self.query_one(LineView).show(lambda width, height: self._draw_page(width))
        self.query_one(VerticalScroll).focus()

    def action_close(self) -> None:
        self.dismiss()


class HelpPage(Page):
    """The keys of a screen and of everywhere, and what the signs mean."""

    def __init__(self, context: Context) -> None:
        super().__init__("Help", lambda width: help_lines(context, self._picture, self._keymap, width))

    @property
    def _picture(self) -> Picture:
        return cast("SpecdeckApp", self.app).picture

    @property
    def _keymap(self) -> dict[str, str]:
        return cast("SpecdeckApp", self.app).keymap


class ExplainPage(Page):
    """Why the acceptance rate and the speedup of a bucket are what they are."""

    def __init__(self, bucket: BucketView, snapshot: Snapshot) -> None:
        super().__init__("Explained", lambda width: explain(bucket, snapshot, width))


def help_lines(context: Context, picture: Picture, keymap: dict[str, str], width: int) -> list[Line]:
    """The help page. Keys whose need is not met now are there too, with the reason."""
    lines: list[Line] = []
    parts: tuple[Context, ...] = (context, "everywhere")
    if picture.replaying:
        parts = ("replay", *parts)
    for part in dict.fromkeys(parts):
        lines.append(((CONTEXT_TITLES[part], "title"),))
        for action in actions.in_context(part):
            why = unmet(action, picture)
            asks = " (asks first)" if action.dangerous else ""
            name, room = left(key_name(action, keymap), 9), max(20, width - 11)
            does = wrap(f"{action.description}{asks}", room)
            role: Role = "text" if why is None else "dim"
            lines.append(((f"  {name}", "key"), (does[0], role)))
            if why is not None:
                does += wrap(f"not now: {why.split(': ', 1)[1]}", room)
            lines += [((f"{'':11}{part}", role),) for part in does[1:]]
        if part == "policy":
            lines.append((("  ↑ ↓      ", "key"), ("Go along the workloads and on into the history; or click", "text")))
        if part == "map":
            lines.append((("  ↑ ↓ ← →  ", "key"), ("Select a cell; page up, page down, home, end; or click", "text")))
        if part == "replay":
            lines.append((("  click    ", "key"), ("On the time bar: to that moment", "text")))
        if part == "live":
            lines.append((("  ↑ ↓      ", "key"), ("Select a bucket; page up, page down, home, end; or click", "text")))
        lines.append(EMPTY)
    return [*lines, *_legend()]


def _legend() -> list[Line]:
    lines: list[Line] = [(("Signs", "title"),)]
    for entries in _SIGNS:
        spans: list[Span] = [("  ", "text")]
        for sign, role, meaning in entries:
            spans += [(f"{sign} ", role), (f"{meaning}   ", "text")]
        lines.append(tuple(spans))
    return lines


_SIGNS: Final[tuple[tuple[tuple[str, Role, str], ...], ...]] = (
    (("●", "ok", "ok"), ("◐", "accent", "calibrating"), ("○", "dim", "few, idle or nothing drafted")),
    (("▲", "warn", "warning"), ("■", "critical", "critical"), ("◆", "fallback", "fallback"), ("⇥", "fallback", "lane")),
    (("α", "alpha", "acceptance rate"), ("±", "dim", "half its 95 % interval")),
    (("AL", "dim", "mean acceptance length"), ("n", "dim", "sequences in the window")),
    (("K", "k", "draft length"), ("01234", "k", "share of decode rows at each K")),
    (("━", "text", "speedup, experienced"), ("◇", "accent", "marginal gain"), ("░", "faint", "95 % interval")),
    (("—", "dim", "absent: nothing to divide by"), ("≠", "warn", "executed is not what was configured")),
    (
        ("=", "dim", "on the map: no difference"),
        ("·", "dim", "not measured"),
        ("╱", "dim", "stale"),
        ("w/o", "dim", "without speculation"),
    ),
    (
        ("c", "accent", "in charts and time bar: control"),
        ("v", "accent", "version"),
        ("↻", "warn", "restart"),
        ("░", "warn", "gap"),
    ),
)
