"""The time bar as a widget: it shows where a replay stands, and a click on its track goes there."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from console.app.drawing.line_view import LineView
from console.app.drawing.spans import Line
from console.app.picture import Picture
from console.app.replay.time_bar import bar_lines, make_bar

if TYPE_CHECKING:
    from textual import events

    from console.app.application import SpecdeckApp


class TimeBar(LineView):
    """Empty, and not displayed, where there is no replay."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._picture: Picture | None = None

    def show_replay(self, picture: Picture) -> None:
        self._picture = picture
        self.show(lambda width, height: _lines(picture, width, height))

    def on_click(self, event: events.Click) -> None:
        """Seek to where the track was clicked."""
        picture = self._picture
        if picture is None or picture.replay is None or picture.link.state != "connected":
            return
        bar = make_bar(picture.replay, picture.moment, picture.loop_from, self.size.width, picture.now)
        ts = bar.moment_at(event.x)
        if ts is not None:
            cast("SpecdeckApp", self.app).replay_desk.seek(ts)


def _lines(picture: Picture, width: int, height: int) -> list[Line]:
    if picture.replay is None:
        return []
    bar = make_bar(picture.replay, picture.moment, picture.loop_from, width, picture.now)
    return bar_lines(bar, width, height)
