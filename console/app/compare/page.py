"""The page with a comparison: it opens at once, and is filled when the station has answered."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, cast

from textual import work

from console.app.compare.asking import Answer, ask
from console.app.compare.lines import asking_lines, comparison_lines, refused_lines
from console.app.compare.questions import Question
from console.app.drawing.line_view import LineView
from console.app.drawing.spans import Line
from console.app.frame.pages import Page
from console.feed.client import FeedError

if TYPE_CHECKING:
    from console.app.application import SpecdeckApp

WAITING_SECONDS: Final = 1.0
NOT_HERE: Final = "this station is older than the console and takes no sides; restart it to compare"


class ComparePage(Page):
    def __init__(self, question: Question) -> None:
        super().__init__("Compared", self._content)
        self._question = question
        self._asked_at = time.monotonic()
        self._refusal = ""
        self.answer: Answer | None = None

    @property
    def answered(self) -> bool:
        return self.answer is not None or bool(self._refusal)

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(WAITING_SECONDS, self._waiting)
        self._ask()

    @work(exclusive=True, group="compare", exit_on_error=False)
    async def _ask(self) -> None:
        try:
            self.answer = await ask(cast("SpecdeckApp", self.app).feed, self._question)
        except FeedError as error:
            self._refusal = NOT_HERE if error.code == "unknown_method" else error.message
        self._redraw()

    def _waiting(self) -> None:
        if not self.answered:
            self._redraw()

    def _redraw(self) -> None:
        self.query_one(LineView).show(lambda width, height: self._content(width))

    def _content(self, width: int) -> list[Line]:
        if self.answer is not None:
            return comparison_lines(self._question, self.answer, width)
        if self._refusal:
            return refused_lines(self._question, self._refusal, width)
        return asking_lines(self._question, time.monotonic() - self._asked_at, width)
