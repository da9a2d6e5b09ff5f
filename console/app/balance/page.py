"""The page over the Live screen: the balance of all workloads, asked for anew while it is open."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final, cast

from textual import work
from textual.binding import BindingType

from console.app import actions
from console.app.balance.page_lines import page_lines
from console.app.balance.reader import BalanceReader
from console.app.drawing.line_view import LineView
from console.app.drawing.spans import Line, clean
from console.app.frame.pages import Page
from console.feed.protocol import BalanceParams

if TYPE_CHECKING:
    from console.app.application import SpecdeckApp

LOOK_SECONDS: Final = 0.5


class BalancePage(Page):
    """`window`: seconds that are looked at, as the table below shows them."""

    BINDINGS: ClassVar[list[BindingType]] = actions.bindings("balance")

    def __init__(self, reader: BalanceReader, window: Callable[[], float]) -> None:
        super().__init__("What speculation cost and saved", self._lines)
        self._reader = reader
        self._window = window

    @property
    def deck(self) -> SpecdeckApp:
        return cast("SpecdeckApp", self.app)

    def on_mount(self) -> None:
        self.add_class("-balance")
        super().on_mount()
        self.set_interval(LOOK_SECONDS, self._look)
        self._look()

    def action_close_balance(self) -> None:
        self.dismiss()

    def _look(self) -> None:
        params = self._reader.due(self.deck.picture, self._window())
        if params is not None:
            self._ask(params)

    @work(group="balance", exit_on_error=False)
    async def _ask(self, params: BalanceParams) -> None:
        await self._reader.read(self.deck.feed, params)
        if self.is_mounted:
            self.query_one(LineView).show(lambda width, height: self._lines(width))

    def _lines(self, width: int) -> list[Line]:
        reader = self._reader
        if reader.answer is None:
            waiting = "the station is being asked" if not reader.trouble else clean(reader.trouble)
            return [((waiting, "warn" if reader.trouble else "dim"),)]
        lines = page_lines(reader.answer, width)
        if reader.trouble:
            lines = [((f"no newer answer: {clean(reader.trouble)}", "warn"),), *lines]
        return lines
