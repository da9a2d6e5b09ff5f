"""The console in a browser: the commands for it, and a server that is started from here and ends with this console."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar, Final, cast
from urllib.parse import urlsplit

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import ModalScreen

from console.app import actions
from console.app.drawing.line_view import LineView
from console.app.drawing.panel import Panel
from console.app.drawing.spans import EMPTY, Line, Role, clean, wrap
from console.app.frame.serving import Serving, ServingError

if TYPE_CHECKING:
    from console.app.application import SpecdeckApp

STATION_COMMAND: Final = "specdeck web"


class WebDialog(ModalScreen[None]):
    """`serving`: None where the command that opened the console brought none; it is then only told how."""

    BINDINGS: ClassVar[list[BindingType]] = actions.bindings("web")

    def __init__(self, serving: Serving | None) -> None:
        super().__init__()
        self._serving = serving
        self._busy = ""
        self._trouble = ""

    @property
    def _deck(self) -> SpecdeckApp:
        return cast("SpecdeckApp", self.app)

    @property
    def _address(self) -> str | None:
        return self._serving.address if self._serving is not None else None

    def compose(self) -> ComposeResult:
        with Panel(classes="dialog broad"):
            yield LineView(id="web-lines")

    def on_mount(self) -> None:
        self._draw()

    def action_serve(self) -> None:
        if self._serving is None:
            self._deck.tell("This console can't serve itself; the command above does.", severity="warning")
        elif self._address is None and not self._busy:
            self._set(busy="starting …")
            self._start(self._serving)
        else:
            self.app.bell()

    def action_end_serving(self) -> None:
        if self._serving is None or self._address is None:
            self._deck.tell("Nothing is served from here.", severity="warning")
        elif not self._busy:
            self._set(busy="ending …")
            self._stop(self._serving)

    def action_copy_address(self) -> None:
        address = self._address
        if address is None:
            self._deck.tell("There is no address yet: enter serves this console.", severity="warning")
            return
        self.app.copy_to_clipboard(address)
        self._deck.tell("The address was handed to the terminal's clipboard.")

    def action_leave_web(self) -> None:
        self.dismiss()

    @work(thread=True, group="serving")
    def _start(self, serving: Serving) -> None:
        trouble = ""
        try:
            serving.start()
        except ServingError as error:
            trouble = str(error)
        self.app.call_from_thread(self._set, trouble=trouble)

    @work(thread=True, group="serving")
    def _stop(self, serving: Serving) -> None:
        serving.stop()
        self.app.call_from_thread(self._set)

    def _set(self, *, busy: str = "", trouble: str = "") -> None:
        self._busy, self._trouble = busy, trouble
        if self.is_attached:  # it may have been closed meanwhile
            self._draw()

    def _draw(self) -> None:
        keys = "y copy the address · s stop serving · esc close" if self._address else "enter serve it · esc close"
        self.query_one(Panel).caption("In a browser", keys)
        self.query_one(LineView).show(lambda width, height: self._lines(width))

    def _lines(self, width: int) -> list[Line]:
        command = self._serving.command if self._serving is not None else STATION_COMMAND
        lines = web_lines(command, self._address, width, replaying=self._deck.picture.replaying, ssh=_over_ssh())
        if self._busy or self._trouble:
            role: Role = "critical" if self._trouble else "accent"
            lines += [EMPTY, *(((part, role),) for part in wrap(clean(self._trouble or self._busy), width))]
        return lines


def web_lines(command: str, address: str | None, width: int, *, replaying: bool, ssh: bool) -> list[Line]:
    """How to open this console in a browser. `address`: while it is served; `ssh`: the operator sits elsewhere."""
    lines: list[Line] = [(("in a shell on this machine", "dim"),), ((f"  {clean(command)}", "bright"),)]
    if replaying:
        lines += _said("Each tab then plays the trace for itself.", width)
    else:
        lines += [((f"  {command} --write", "bright"), ("   may change the policy too", "dim"))]
    lines.append(EMPTY)
    if address is None:
        return [*lines, (("enter", "key"), ("  serve it from here, read-only, until this console is left", "text"))]
    lines.append((("served, read-only, until this console is left", "dim"),))
    lines += [((address[start : start + width], "accent"),) for start in range(0, len(address), max(1, width))]
    lines += _said("Whoever has the address sees what this console sees.", width)
    if ssh and (port := urlsplit(address).port):
        lines += _said(
            f"You are here over ssh: on your own machine, ssh -N -L {port}:127.0.0.1:{port} THIS-HOST", width
        )
    return lines


def _said(text: str, width: int) -> list[Line]:
    return [((part, "dim"),) for part in wrap(text, width)]


def _over_ssh() -> bool:
    return "SSH_CONNECTION" in os.environ
