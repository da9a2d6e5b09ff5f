"""Which plan to rehearse: those that are built in, or the path of one's own, checked before anything is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import ModalScreen
from textual.widgets import Input

from console.app import actions
from console.app.drawing.line_view import LineView
from console.app.drawing.panel import Panel
from console.app.drawing.pick_list import PickList
from console.app.drawing.spans import EMPTY, Line, Role, clean, clip, left, wrap
from console.app.rehearsal.words import plan_words
from store.rehearsal.plan import Plan

ReadPlan = Callable[[str], Plan]
"""Reads a plan by name or path. Raises ValueError naming what is wrong and what to do."""


class Chosen(NamedTuple):
    """`source`: as the feed takes it, a name or an absolute path."""

    source: str
    plan: Plan


class RehearsalDialog(ModalScreen[Chosen | None]):
    """Choose a plan. Nothing is sent from here: the choice goes to a `ConfirmDialog`."""

    BINDINGS: ClassVar[list[BindingType]] = actions.bindings("rehearse")

    def __init__(self, plans: Mapping[str, Plan], read: ReadPlan) -> None:
        super().__init__()
        self._plans = plans
        self._read = read

    def compose(self) -> ComposeResult:
        with Panel(classes="dialog broad"):
            yield LineView(id="rehearsal-what")
            yield PickList(id="rehearsal-plans")
            yield Input(id="rehearsal-path", placeholder="or the path of a plan of your own (.toml)", compact=True)
            yield LineView(id="rehearsal-said")

    def on_mount(self) -> None:
        self.query_one(Panel).caption("Rehearse on this engine", "↑ ↓ choose · enter next · esc cancel")
        what = "Traffic shaped like the day meets each arm in turn; what is measured becomes the operating map."
        view = self.query_one("#rehearsal-what", LineView)
        view.show(lambda width, height: [*(((part, "dim"),) for part in wrap(what, width)), EMPTY])
        self._list.styles.height = len(self._plans)
        self._draw()
        self._list.focus()
        self._say("Nothing is sent yet: the next step says what it does to this engine.", "dim")

    @property
    def _list(self) -> PickList:
        return self.query_one(PickList)

    @on(PickList.Moved)
    @on(PickList.Resized)
    def _draw(self) -> None:
        width = self._list.size.width
        rows = [(name, _row(name, plan, width)) for name, plan in self._plans.items()]
        self._list.show(rows, lambda width: [EMPTY])

    @on(PickList.Left)
    def _past_the_list(self, event: PickList.Left) -> None:
        if event.step > 0:
            self.query_one(Input).focus()

    @on(Input.Changed)
    def _typing(self) -> None:
        self._say("", "dim")

    def action_other_plan(self) -> None:
        field = self.query_one(Input)
        (self._list if field.has_focus else field).focus()

    @on(Input.Submitted)
    def action_choose_plan(self) -> None:
        """`enter`. A path that can't be meant stays, with its complaint."""
        path = self.query_one(Input).value.strip()
        if not (path and self.query_one(Input).has_focus):
            name = self._list.cursor
            if name is not None:
                self.dismiss(Chosen(name, self._plans[name]))
            return
        try:
            source = path if path in self._plans else str(Path(path).expanduser().absolute())
            plan = self._read(source)
        except (ValueError, RuntimeError) as error:  # the latter: nobody of that name has a home here
            self._say(f"■ {error}", "critical")
            self.app.bell()
        else:
            self.dismiss(Chosen(source, plan))

    def action_cancel_plan(self) -> None:
        self.dismiss(None)

    def _say(self, text: str, role: Role) -> None:
        def lines(width: int, height: int) -> list[Line]:
            said: list[Line] = [((part, role),) for part in wrap(clean(text), width)]
            return [EMPTY, *(said or [EMPTY])]

        self.query_one("#rehearsal-said", LineView).show(lines)


def _row(name: str, plan: Plan, width: int) -> Line:
    return ((left(f" {clean(name)}", 9), "text"), (clip(clean(plan_words(plan)), max(10, width - 10)), "dim"))
