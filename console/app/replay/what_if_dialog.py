"""Which policies to ask about: a list, a line to write another one, and the asking, which may take long."""

from __future__ import annotations

import time
from typing import ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import ModalScreen
from textual.widgets import Input

from console.app import actions
from console.app.drawing import numbers
from console.app.drawing.line_view import LineView
from console.app.drawing.panel import Panel
from console.app.drawing.pick_list import PickList
from console.app.drawing.spans import EMPTY, Line, Role, clean, wrap
from console.app.picture import Picture
from console.app.policy.words import mode_words
from console.app.replay.moment import span_text
from console.app.replay.what_if_table import what_if_lines
from console.feed.client import Feed, FeedError
from console.feed.protocol import WhatIfParams
from engine.policy.state import PolicyError
from engine.policy.words import describe, parse_mode
from engine.records import PolicyMode
from store.whatif.figures import WhatIf

PATIENCE_SECONDS: Final = 1800.0
"""The operator gives up, not the console."""

LINES: Final = 2
"""Of what is said about the question, always as many."""


class WhatIfDialog(ModalScreen[None]):
    """Asks `feed` about the loop of a replay, or about all of its trace."""

    BINDINGS: ClassVar[list[BindingType]] = actions.bindings("what_if")

    def __init__(self, feed: Feed, picture: Picture) -> None:
        super().__init__()
        self._feed = feed
        self._picture = picture
        self._offered = offered(picture)
        self._chosen = {word for word in self._offered if not word.startswith("schedule")}
        self._asked_at: float | None = None

    def compose(self) -> ComposeResult:
        with Panel(classes="dialog"):
            yield LineView(id="what-if-over")
            yield PickList(id="what-if-list")
            yield Input(id="what-if-text", placeholder="or another: static:3, schedule:FILE or JSON", compact=True)
            yield LineView(id="what-if-said")

    def on_mount(self) -> None:
        self.query_one(Panel).caption("What would another policy have done?", "space choose · enter ask · esc leave")
        self.query_one("#what-if-over", LineView).show(self._over)
        self._list.styles.height = len(self._offered)
        self._draw()
        self._list.focus()
        self._say("Nothing is changed: this is worked out from the recorded tokens.", "dim")
        self.set_interval(1.0, self._tell_progress)

    @property
    def _list(self) -> PickList:
        return self.query_one(PickList)

    @property
    def _typed(self) -> str:
        return self.query_one(Input).value.strip()

    @property
    def span(self) -> tuple[float, float] | None:
        """The loop; None for the whole trace."""
        return self._picture.replay.loop if self._picture.replay is not None else None

    @on(PickList.Moved)
    @on(PickList.Resized)
    def _draw(self) -> None:
        rows = [(word, self._row(word, mode)) for word, mode in self._offered.items()]
        self._list.show(rows, lambda width: [EMPTY])

    @on(PickList.Left)
    def _past_the_list(self, event: PickList.Left) -> None:
        if event.step > 0:
            self.query_one(Input).focus()

    def _row(self, word: str, mode: PolicyMode) -> Line:
        chosen = word in self._chosen
        mark: Line = ((" ● " if chosen else " ○ ", "accent" if chosen else "dim"),)
        return (*mark, (clean(mode_words(mode)), "text" if chosen else "dim"))

    def _over(self, width: int, height: int) -> list[Line]:
        view = self._picture.replay
        assert view is not None  # the key needs a replay
        start, end = self.span or (view.start, view.end)
        what = "the loop" if self.span is not None else "the whole trace" if view.complete else "what was read so far"
        return [(("over  ", "dim"), (span_text(start, end), "text"), (f"  {what}", "dim")), EMPTY]

    def _say(self, text: str, role: Role) -> None:
        def lines(width: int, height: int) -> list[Line]:
            said: list[Line] = [((part, role),) for part in wrap(clean(text), width)]
            return [EMPTY, *said, EMPTY][: 1 + LINES] if len(said) < LINES else [EMPTY, *said]

        self.query_one("#what-if-said", LineView).show(lines)

    def _tell_progress(self) -> None:
        if self._asked_at is not None:
            seconds = numbers.duration(time.monotonic() - self._asked_at)
            self._say(f"◐ working it out, {seconds} · esc leaves it", "accent")

    # Actions

    def action_tick(self) -> None:
        word = self._list.cursor
        if word is not None:
            self._chosen ^= {word}
            self._draw()

    def action_other_field(self) -> None:
        field = self.query_one(Input)
        (self._list if field.has_focus else field).focus()

    @on(Input.Submitted)
    def action_ask_what_if(self) -> None:
        """`enter`. What can't be meant stays, with its complaint."""
        words = [word for word in self._offered if word in self._chosen]
        try:
            if self._typed:
                words.append(describe(parse_mode(self._typed)))
        except PolicyError as error:
            self._say(f"■ {error}", "critical")
            return
        if not words and self._list.cursor is not None:
            words = [self._list.cursor]
        if self._asked_at is None:
            self._asked_at = time.monotonic()
            self._tell_progress()
            self._ask(list(dict.fromkeys(words)))

    def action_leave_what_if(self) -> None:
        self.dismiss()

    @work(exclusive=True, exit_on_error=False)
    async def _ask(self, words: list[str]) -> None:
        from console.app.frame.pages import Page

        start, end = self.span or (None, None)
        params = WhatIfParams(policies=words, start=start, end=end)
        try:
            answers = await self._feed.request("whatif", params, list[WhatIf], PATIENCE_SECONDS)
        except FeedError as error:
            self._say(f"■ {error.message}", "critical")
            return
        finally:
            self._asked_at = None
        self._say("Choose others, or esc goes back to the replay.", "dim")
        self.app.push_screen(Page("What if", lambda width: what_if_lines(answers, self._over(width, 0)[0], width)))


def offered(picture: Picture) -> dict[str, PolicyMode]:
    """What can be chosen, by the words that the feed takes: off, some fixed K, and the schedule in force."""
    most = max((engine.max_k or 0 for engine in picture.engines), default=0)
    modes = [PolicyMode(mode="off")]
    modes += [PolicyMode(mode="static", k=k) for k in sorted({1, 2, 4, most}) if 1 <= k <= most]
    policy = picture.snapshot.policy if picture.snapshot is not None else None
    in_force = [policy, *(engine.configured for engine in picture.engines)]
    schedule = next((mode.schedule for mode in in_force if mode is not None and mode.schedule is not None), None)
    if schedule is not None:
        modes.append(PolicyMode(mode="schedule", schedule=schedule))
    return {describe(mode): mode for mode in modes}
