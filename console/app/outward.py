"""What leaves the console: notes, the desktop, the clipboard, files; and the keys that send it there."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

from textual.app import App
from textual.notifications import SeverityLevel

from console.app.drawing.spans import clean
from console.app.frame.copying import HINT, copied_words, copyable
from console.app.frame.deck_screen import DeckScreen
from console.app.frame.guard import guarded
from console.app.frame.outcome import Ending
from console.app.notices.terminal import Form, notification
from console.app.picture import Picture

if TYPE_CHECKING:
    from console.app.application import SpecdeckApp
    from console.app.exporting.desk import ExportDesk


class Outward(App[Ending], inherit_bindings=False):
    """Part of `SpecdeckApp`."""

    picture: Picture
    folder: Path | None
    """That the console was started in; None where it is gone."""
    _now: Callable[[], float]
    _hinted = False
    """It was said what a terminal needs to take what is copied."""

    @cached_property
    def export_desk(self) -> ExportDesk:
        from console.app.exporting.desk import ExportDesk

        return ExportDesk(cast("SpecdeckApp", self), self.folder or Path.home())

    def tell(self, text: str, *, severity: SeverityLevel = "information", seconds: float = 6.0) -> None:
        """A passing note, always literal text: whatever stands in it moves no cursor."""
        said = "\n".join(clean(line) for line in text.split("\n"))
        self.notify(said, severity=severity, markup=False, timeout=seconds)

    def clock(self) -> float:
        """The wall clock, Unix seconds."""
        return self._now()

    def desktop_notification(self, text: str, form: Form) -> None:
        """Have the terminal tell the desktop. A browser has no such terminal."""
        if self._driver is not None and not self.is_headless and not self.is_web:
            self._driver.write(notification(text, form, tmux="TMUX" in os.environ))

    def copy_out(self, text: str | None) -> None:
        """To the clipboard of whoever sits at the terminal, by OSC 52, and say what."""
        said = copyable(text or "")
        if not said:
            self.tell("There is nothing to copy here.")
            return
        self.copy_to_clipboard(said)
        hint, self._hinted = "" if self._hinted else f"\n{HINT}", True
        self.tell(f"{copied_words(said)}{hint}")

    def show_export(self, text: str) -> None:
        """How far an export is; empty when none goes on."""
        self.picture = replace(self.picture, exporting=text)
        self._draw()

    def _draw(self) -> None:
        """Bring the screens up to date."""
        raise NotImplementedError

    @guarded
    def action_export(self) -> None:
        screen = self.screen
        self.export_desk.open(screen.window if isinstance(screen, DeckScreen) else None)

    def action_copy(self) -> None:
        screen = self.screen
        self.copy_out(screen.copied() if isinstance(screen, DeckScreen) else None)

    def action_command_log(self) -> None:
        from console.app.commands.page import CommandLogPage

        self.push_screen(CommandLogPage())
