"""A box with captions in its border. Captions are literal text, and set only when they change."""

from __future__ import annotations

from textual.containers import Vertical
from textual.content import Content

from console.app.drawing.spans import clean


class Panel(Vertical):
    """A bordered group; where the screen is small the style sheet takes the border away."""

    can_focus = False
    _captions: tuple[str, str] = ("", "")

    def caption(self, title: str, subtitle: str = "") -> None:
        """Set the captions in the upper and the lower border."""
        if (title, subtitle) == self._captions:
            return
        self._captions = (title, subtitle)
        self.border_title = Content(clean(title))
        self.border_subtitle = Content(clean(subtitle))
