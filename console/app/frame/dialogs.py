"""Dialogs: choosing a mode, confirming a change, leaving. Each shows what will happen before it happens."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from console.app import actions
from console.app.actions import ACTIONS, key_name, unmet
from console.app.drawing import numbers
from console.app.drawing.line_view import LineView
from console.app.drawing.panel import Panel
from console.app.drawing.spans import EMPTY, Line, clean, clip, wrap
from console.app.frame.change import Change, change_lines
from console.app.frame.guard import guarded
from console.app.frame.outcome import Outcome
from console.app.picture import Picture
from console.app.policy.words import mode_words, same_mode
from engine.records import PolicyMode
from engine.schedule import DraftSchedule, parse_schedule
from engine.schedule_file import to_line


class ModeDialog(ModalScreen[PolicyMode | None]):
    """Choose a mode. Nothing is sent from here: the choice goes to a `ConfirmDialog`."""

    BINDINGS: ClassVar[list[BindingType]] = actions.bindings("choose")

    def __init__(self, current: PolicyMode, max_k: int, schedule: DraftSchedule | None) -> None:
        """`schedule`: the one in force or used last, None where none is known."""
        super().__init__()
        self._current = current
        self._max_k = max_k
        self._modes = offered_modes(max_k, schedule)

    def compose(self) -> ComposeResult:
        with Panel(classes="dialog"):
            yield LineView(id="mode-now")
            yield OptionList(*(self._option(mode) for mode in self._modes), id="modes", markup=False)

    def on_mount(self) -> None:
        self.query_one(Panel).caption("Mode", "↑ ↓ choose · enter next · esc cancel")
        now: Line = (("now  ", "dim"), (clean(mode_words(self._current)), "bright"))
        self.query_one(LineView).show(lambda width, height: [now, EMPTY])
        modes = self.query_one(OptionList)
        modes.highlighted = next((index for index, mode in enumerate(self._modes) if same_mode(mode, self._current)), 0)
        modes.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._modes[event.option_index])

    def action_pick(self) -> None:
        self.query_one(OptionList).action_select()

    def action_cancel_choice(self) -> None:
        self.dismiss(None)

    def _option(self, mode: PolicyMode) -> Option:
        mark = "●" if same_mode(mode, self._current) else "○"
        name = numbers.mode(mode)
        if mode.mode == "adaptive" and mode.schedule is not None:
            name += " within"
        return Option(Content.assemble(f"{mark} {name:<16}", (_what(mode, self._max_k), "$dim")))


def offered_modes(max_k: int, schedule: DraftSchedule | None) -> list[PolicyMode]:
    """The modes to choose from: those with a schedule only where one is known."""
    modes = [PolicyMode(mode="off"), *(PolicyMode(mode="static", k=k) for k in range(1, max_k + 1))]
    if schedule is not None:
        modes.append(PolicyMode(mode="schedule", schedule=list(schedule)))
        modes += [PolicyMode(mode="adaptive", schedule=list(schedule), act=act) for act in (True, False)]
    modes += [PolicyMode(mode="adaptive", act=act) for act in (True, False)]
    return modes


def _what(mode: PolicyMode, max_k: int) -> str:
    """What a mode does, short enough for its line."""
    if mode.schedule is not None:
        return clip(to_line(parse_schedule(mode.schedule)), 38)
    if mode.mode == "adaptive":
        return "the controller sets K" if mode.act else f"it only advises; K {max_k} executes"
    if mode.mode == "off":
        return "nothing is drafted"
    return f"at most {mode.k} draft token{'s' * (mode.k != 1)} a step"


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
        width, height = min(64, self.app.size.width * 96 // 100) - 6, self.app.size.height * 9 // 10 - 4
        short = len(change_lines(self._change, width)) > height  # the end of a long change is not seen
        self.query_one(Panel).caption(self._change.title, "y yes, do it · esc no" if short else "")
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


def leave_lines(picture: Picture, width: int) -> list[Line]:
    """The choices of leaving, with what each means now."""
    where = f" on {clean(picture.base_url)}" if picture.base_url else ""
    running = sum((engine.running or 0) + (engine.waiting or 0) for engine in picture.engines)
    not_ours = [clean(engine.engine) for engine in picture.engines if not engine.owned]
    cut = f" {numbers.many(running, 'request')} under way {'is' if running == 1 else 'are'} cut off." if running else ""
    keeps = f" Engine {', '.join(not_ours)} was not started by specdeck and stays." if not_ours else ""
    recording = picture.snapshot.recording if picture.snapshot is not None else None
    on = recording is not None and recording.state != "written"
    later = " The recording is taken up, and can be written, once a station runs on this store again." if on else ""
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
            ((f"   {text}", "dim"),)
            for text in wrap(f"Ends station, gateway and engine.{cut}{keeps}{later}", width - 3)
        ]
        lines.append(EMPTY)
    lines.append(((key_name(ACTIONS["stay"]), "key"), ("  stay", "bright")))
    return lines
