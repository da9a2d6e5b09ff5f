"""Dialogs: choosing a mode, confirming a change, leaving. Each shows what will happen before it happens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from console.app import actions, numbers
from console.app.actions import ACTIONS, key_name, unmet
from console.app.guard import guarded
from console.app.line_view import LineView
from console.app.outcome import Outcome
from console.app.panel import Panel
from console.app.picture import Picture
from console.app.spans import EMPTY, Line, clean, wrap
from engine.records import PolicyMode


@dataclass(frozen=True)
class Change:
    """Something about to be done: what is, what will be, what that means, and the way back."""

    title: str
    before: str
    after: str
    effects: Sequence[str] = field(default_factory=list)
    undo: str = ""


class ModeDialog(ModalScreen[PolicyMode | None]):
    """Choose a mode. Nothing is sent from here: the choice goes to a `ConfirmDialog`."""

    BINDINGS: ClassVar[list[BindingType]] = actions.bindings("choose")

    def __init__(self, current: PolicyMode, max_k: int) -> None:
        super().__init__()
        self._current = current
        self._modes = [PolicyMode(mode="off"), *(PolicyMode(mode="static", k=k) for k in range(1, max_k + 1))]

    def compose(self) -> ComposeResult:
        with Panel(classes="dialog"):
            yield LineView(id="mode-now")
            yield OptionList(*(self._option(mode) for mode in self._modes), id="modes", markup=False)

    def on_mount(self) -> None:
        self.query_one(Panel).caption("Mode", "↑ ↓ choose · enter next · esc cancel")
        now: Line = (("now  ", "dim"), (numbers.mode(self._current), "bright"))
        self.query_one(LineView).show(lambda width, height: [now, EMPTY])
        modes = self.query_one(OptionList)
        modes.highlighted = next(
            (index for index, mode in enumerate(self._modes) if _same(mode, self._current)), len(self._modes) - 1
        )
        modes.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._modes[event.option_index])

    def action_pick(self) -> None:
        self.query_one(OptionList).action_select()

    def action_cancel_choice(self) -> None:
        self.dismiss(None)

    def _option(self, mode: PolicyMode) -> Option:
        what = (
            "nothing is drafted" if mode.mode == "off" else f"at most {mode.k} draft token{'s' * (mode.k != 1)} a step"
        )
        mark = "●" if _same(mode, self._current) else "○"
        return Option(Content.assemble(f"{mark} {numbers.mode(mode):<10}", (what, "$dim")))


class ConfirmDialog(ModalScreen[bool]):
    """Before → after, what it means and how to undo it. `y` does it; `enter` does nothing, so that it can't slip."""

    BINDINGS: ClassVar[list[BindingType]] = actions.bindings("confirm")

    def __init__(self, change: Change) -> None:
        super().__init__()
        self._change = change

    def compose(self) -> ComposeResult:
        with Panel(classes="dialog"):
            yield LineView(id="change")

    def on_mount(self) -> None:
        self.query_one(Panel).caption(self._change.title)
        self.query_one(LineView).show(lambda width, height: change_lines(self._change, width))

    def action_confirm(self) -> None:
        self.dismiss(True)

    def action_refuse(self) -> None:
        self.dismiss(False)


class LeaveDialog(ModalScreen[Outcome | None]):
    """Detach, stop everything, or stay."""

    BINDINGS: ClassVar[list[BindingType]] = actions.bindings("leave")

    def __init__(self, picture: Picture) -> None:
        super().__init__()
        self._picture = picture

    def compose(self) -> ComposeResult:
        with Panel(classes="dialog"):
            yield LineView(id="leaving")

    def on_mount(self) -> None:
        self.query_one(Panel).caption("Leave")
        self.query_one(LineView).show(lambda width, height: leave_lines(self._picture, width))

    def action_detach(self) -> None:
        self.dismiss(Outcome.DETACH)

    @guarded
    def action_stop(self) -> None:
        self.dismiss(Outcome.STOP)

    def action_stay(self) -> None:
        self.dismiss(None)


def mode_change(before: PolicyMode, after: PolicyMode, running: int) -> Change:
    """What another mode does, in words."""
    if after.mode == "off":
        effect = "No sequence drafts any more. The drafter stays loaded, so this is K=0, not vanilla."
    else:
        effect = f"Every sequence drafts at most {after.k} token{'s' * (after.k != 1)} a step."
    return Change(
        title="Change the mode",
        before=numbers.mode(before),
        after=numbers.mode(after),
        effects=[effect, f"It holds from the next step on, for the {running} running sequences too."],
        undo=f"m, then {numbers.mode(before)}",
    )


def change_lines(change: Change, width: int) -> list[Line]:
    lines: list[Line] = [
        (("before  ", "dim"), (clean(change.before), "text")),
        (("after   ", "dim"), (clean(change.after), "bright")),
        EMPTY,
    ]
    for effect in change.effects:
        lines += [((text, "text"),) for text in wrap(clean(effect), width)]
    lines += [EMPTY, (("undo    ", "dim"), (clean(change.undo), "text")), EMPTY]
    lines.append((("y", "key"), (" yes, do it    ", "text"), ("esc", "key"), (" no", "text")))
    return lines


def leave_lines(picture: Picture, width: int) -> list[Line]:
    """The choices of leaving, with what each means now."""
    where = f" on {clean(picture.base_url)}" if picture.base_url else ""
    running = sum((engine.running or 0) + (engine.waiting or 0) for engine in picture.engines)
    not_ours = [clean(engine.engine) for engine in picture.engines if not engine.owned]
    cut = f" {running} requests under way are cut off." if running else ""
    keeps = f" Engine {', '.join(not_ours)} was not started by specdeck and stays." if not_ours else ""
    lines: list[Line] = [(("d", "key"), ("  detach", "bright"))]
    lines += [
        ((f"   {text}", "dim"),)
        for text in wrap(
            f"The engine keeps serving{where}, recording goes on. `specdeck attach` comes back.", width - 3
        )
    ]
    lines.append(EMPTY)
    why = unmet(ACTIONS["stop"], picture)
    if why is None:
        lines.append((("s", "key"), ("  stop everything", "bright")))
        lines += [
            ((f"   {text}", "dim"),) for text in wrap(f"Ends station, gateway and engine.{cut}{keeps}", width - 3)
        ]
        lines.append(EMPTY)
    lines.append(((key_name(ACTIONS["stay"]), "key"), ("  stay", "bright")))
    return lines


def _same(one: PolicyMode, other: PolicyMode) -> bool:
    return one.mode == other.mode and (one.mode != "static" or one.k == other.k)
