"""Every key of the console, once: bindings, key line, help page, command palette and README table come from here.

An action's `id` is the id of its Textual binding, so a keymap can move it to another key. Its method is
`action_<id>` on the screen, dialog or app of its context. No default uses ctrl+s, ctrl+a, ctrl+b or ctrl+j: terminal
multiplexers take those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from textual.binding import Binding, BindingType

from console.app.frame.needs import CHECKS, Need
from console.app.live.demo import goes_on
from console.app.picture import Picture

Context = Literal[
    "everywhere", "replay", "live", "bucket", "policy", "alerts", "map", "traces", "engine", "choose", "edit",
    "export", "rehearse", "record", "confirm", "leave", "go", "what_if", "compare", "web", "page", "balance",
]  # fmt: skip

CONTEXT_TITLES: Final[dict[Context, str]] = {
    "everywhere": "Everywhere",
    "replay": "In a replay",
    "live": "Live",
    "bucket": "Bucket",
    "policy": "Policy",
    "alerts": "Alerts",
    "map": "Map",
    "traces": "Traces",
    "engine": "Engine",
    "choose": "Choosing a mode",
    "edit": "Editing a schedule",
    "rehearse": "Choosing a plan",
    "export": "Exporting",
    "record": "Choosing where to record to",
    "confirm": "Confirming",
    "leave": "Leaving",
    "go": "Going to a moment",
    "what_if": "Asking what if",
    "compare": "Comparing",
    "web": "In a browser",
    "page": "Help and explanations",
    "balance": "What speculation cost and saved",
}


DIALOGS: Final[frozenset[Context]] = frozenset(
    {
        "choose",
        "edit",
        "rehearse",
        "export",
        "record",
        "confirm",
        "leave",
        "go",
        "what_if",
        "compare",
        "web",
        "page",
        "balance",
    }
)
"""Contexts that lie over a screen and keep its keys out."""


@dataclass(frozen=True)
class Action:
    """One thing a key does. `keys`: Textual key names, comma separated; the first is the one that is shown."""

    id: str
    keys: str
    label: str
    """As short as the key line needs it."""
    description: str
    context: Context
    shown: bool = True
    """Whether the key line names it; the help page always does."""
    spare: int = 5
    """Where the key line is too short, the highest goes first."""
    dangerous: bool = False
    """Shows what will change and how to undo it, and waits for confirmation."""
    needs: tuple[Need, ...] = ()
    priority: bool = False
    """Works from inside a dialog or a text field too."""
    display: str = ""
    """How the key is written, where Textual's own way is clumsy."""


_PLAYER: Final[tuple[Need, ...]] = ("replay", "station")

_ALL: Final[tuple[Action, ...]] = (
    Action("live", "1", "Live", "Live: every bucket, and charts of the selected one", "everywhere", spare=2),
    Action("bucket", "2", "Bucket", "Bucket: one through time, by position and by K", "everywhere", spare=2),
    Action("policy", "3", "Policy", "Policy: what is asked and executed, workloads, history", "everywhere", spare=2),
    Action("alerts", "4", "Alerts", "Alerts: firing, pending and past; what speaks for them", "everywhere", spare=2),
    Action("map", "5", "Map", "Map: the best draft length by workload and load; rehearsals", "everywhere", spare=2),
    Action("traces", "6", "Traces", "Traces: record, open, replay", "everywhere", spare=2),
    Action("engine", "7", "Engine", "Engine: log, versions, configured | resolved | executed", "everywhere", spare=2),
    Action(
        "mode", "m", "mode", "Mode: off, static, schedule, adaptive or advise", "everywhere",
        spare=3, dangerous=True, needs=("station", "write", "policy", "engine"),
    ),
    Action(
        "fallback", "f", "fallback", "Fall back to K 0 for all workloads, or end that", "everywhere", spare=3,
        dangerous=True, needs=("station", "write", "policy"),
    ),
    Action(
        "cap_down", "minus", "cap", "Operator's cap one down, at once",
        "everywhere", spare=7, display="-", needs=("station", "write", "policy", "engine"),
    ),
    Action(
        "cap_up", "plus", "cap", "Operator's cap one up; past the maximum none", "everywhere",
        spare=7, dangerous=True, display="+", needs=("station", "write", "policy", "engine"),
    ),
    Action(
        "undo", "u", "undo", "Undo the newest change, or the marked one", "everywhere",
        spare=3, dangerous=True, needs=("station", "write", "policy"),
    ),
    Action(
        "pause", "p", "pause", "Hold the picture still; recording goes on", "everywhere", spare=4, needs=("live",)
    ),
    Action(
        "export", "x", "export", "Export what was recorded, as a trace, a store or a table", "everywhere", spare=6,
        needs=("station", "files"),
    ),
    Action("copy", "y", "copy", "Copy what the cursor is on, as text", "everywhere", spare=9),
    Action(
        "command_log", "at", "log", "Command log: what was asked of the station, from here and by others",
        "everywhere", shown=False, display="@",
    ),
    Action("theme", "t", "theme", "Next theme: dark, light, colour-blind safe", "everywhere", spare=8),
    Action("how", "h", "how", "How figures come about: what is marked, then the status line", "everywhere", spare=8),
    Action(
        "web", "w", "web", "In a browser: how, and an address to open there", "everywhere", spare=9,
        needs=("terminal",),
    ),
    Action("help", "question_mark", "help", "This page", "everywhere", spare=0, display="?"),
    Action(
        "command_palette", "ctrl+p", "palette", "Find an action by name", "everywhere", shown=False, display="ctrl+p"
    ),
    Action("leave", "q", "leave", "Leave: detach, or stop everything", "everywhere", spare=1),
    Action(
        "interrupt", "ctrl+c,ctrl+q", "leave", "Leave, from anywhere; a second time detaches at once", "everywhere",
        shown=False, priority=True, display="ctrl+c",
    ),
    Action(
        "suspend_process", "ctrl+z", "suspend", "Back to the shell; its `fg` comes back here", "everywhere",
        shown=False, priority=True, display="ctrl+z",
    ),
    Action("play", "space", "play", "Play, or stand still", "replay", spare=1, needs=_PLAYER),
    Action("step_on", "full_stop", "step", "One engine step on", "replay", spare=4, display=".", needs=_PLAYER),
    Action(
        "step_back", "comma", "step", "One engine step back", "replay", spare=4, shown=False, display=",",
        needs=_PLAYER,
    ),
    Action(
        "faster", "greater_than_sign", "faster", "Faster: ×0.1 … ×1000, then as fast as it goes", "replay", spare=3,
        display=">", needs=_PLAYER,
    ),
    Action(
        "slower", "less_than_sign", "slower", "Slower", "replay", spare=9, display="<", needs=_PLAYER
    ),
    Action("next_alert", "n", "alert", "To the next alert", "replay", spare=3, needs=_PLAYER),
    Action("previous_alert", "N", "alert", "To the alert before", "replay", shown=False, needs=_PLAYER),
    Action("next_control", "c", "control", "To the next control action", "replay", spare=6, needs=_PLAYER),
    Action(
        "previous_control", "C", "control", "To the control action before", "replay", shown=False, needs=_PLAYER
    ),
    Action("next_version", "v", "version", "To the next change of version", "replay", spare=8, needs=_PLAYER),
    Action(
        "previous_version", "V", "version", "To the change of version before", "replay", shown=False,
        needs=_PLAYER,
    ),
    Action("go", "g", "go to", "Go to a time, an offset or a share of the trace", "replay", spare=2, needs=_PLAYER),
    Action(
        "loop", "o", "loop", "Loop: marks its beginning, then its end, then ends it", "replay", spare=6,
        needs=_PLAYER,
    ),
    Action(
        "what_if", "i", "what if", "What another policy would have done, in the loop or in all", "replay",
        spare=5, needs=_PLAYER,
    ),
    Action(
        "to_start", "0", "start", "To the start of the trace", "replay", shown=False,
        needs=_PLAYER,
    ),
    Action(
        "to_end", "dollar_sign", "end", "To the end of the trace", "replay", shown=False, display="$",
        needs=_PLAYER,
    ),
    Action(
        "explain", "enter", "explain", "Explain every figure of the selected bucket, with its SQL", "live",
        needs=("bucket",),
    ),
    Action(
        "filter", "slash", "filter", "Show only buckets that contain a text", "live", spare=6, display="/",
        needs=("bucket",),
    ),
    Action(
        "sort", "s", "sort", "Sort by the next column; rows then keep their place", "live", spare=7, needs=("bucket",)
    ),
    Action(
        "sort_again", "S", "sort again", "Sort by the same column again", "live", shown=False, display="S",
        needs=("bucket",),
    ),
    Action(
        "longer_window", "right_square_bracket", "window", "Fix a window for all figures: 5 min, 1 h, 6 h", "live",
        spare=5, display="]", needs=("station", "bucket"),
    ),
    Action(
        "shorter_window", "left_square_bracket", "window", "A shorter window; after the shortest, each bucket its own",
        "live", shown=False, display="[", needs=("station", "bucket"),
    ),
    Action(
        "compare", "equals_sign", "compare", "Mark a bucket to compare with another, or twice: with its own past",
        "live", spare=5, display="=", needs=("station", "bucket"),
    ),
    Action(
        "bucket_lane", "l", "lane", "Selected workload into the vanilla lane, or out", "live", spare=5,
        dangerous=True, needs=("station", "write", "policy", "bucket"),
    ),
    Action(
        "balance", "b", "balance", "What speculation cost and saved each workload, and who paid for whose drafts",
        "live", spare=6, needs=("station", "bucket"),
    ),
    Action(
        "demo_traffic", "d", "demo traffic", "Send the demo's traffic where there is none yet; or end it", "live",
        spare=1, dangerous=True, needs=("station", "write", "demo"),
    ),
    Action("back", "escape", "back", "Drop the mark of a comparison; then filter and sorting", "live", shown=False,
           display="esc"),
    Action(
        "earlier", "left", "moment", "Read the series out one point earlier", "bucket", spare=2, display="←",
        needs=("bucket",),
    ),
    Action("later", "right", "moment", "One point later", "bucket", shown=False, display="→", needs=("bucket",)),
    Action("newest", "end", "newest", "Read out the newest point again", "bucket", shown=False, needs=("bucket",)),
    Action("next_mark", "tab", "mark", "To the next mark: control, alert, version, gap", "bucket", spare=3,
           needs=("bucket",)),
    Action("previous_mark", "shift+tab", "mark", "To the mark before", "bucket", shown=False, needs=("bucket",)),
    Action("shorter", "left_square_bracket", "window", "Shorter window: 6 h, 1 h, 15 min", "bucket", spare=2,
           display="[", needs=("bucket",)),
    Action("longer", "right_square_bracket", "window", "Longer window", "bucket", shown=False, display="]",
           needs=("bucket",)),
    Action("next_bucket", "down", "bucket", "The next bucket, in the order of Live", "bucket", spare=5,
           display="↓", needs=("bucket",)),
    Action("previous_bucket", "up", "bucket", "The bucket before", "bucket", shown=False, display="↑",
           needs=("bucket",)),
    Action("explain_bucket", "enter", "explain", "Explain the figures; on a control mark: its line in the history",
           "bucket", spare=2, needs=("bucket",)),
    Action("this_lane", "l", "lane", "Its workload into the vanilla lane, or out", "bucket", spare=6,
           dangerous=True, needs=("station", "write", "policy", "bucket")),
    Action("back_to_live", "escape", "back", "Back to the newest point, then to Live", "bucket", spare=3,
           display="esc"),
    Action(
        "keep", "k", "confirm raise", "Confirm the raise that waits, so that it stays", "policy", spare=0,
        needs=("station", "write", "policy", "unconfirmed"),
    ),
    Action(
        "edit_schedule", "e", "schedule", "Edit the draft schedule, previewed as you type", "policy", spare=4,
        dangerous=True, needs=("station", "write", "policy", "engine"),
    ),
    Action(
        "lane", "l", "lane", "Selected workload into the vanilla lane, or out", "policy", spare=4,
        dangerous=True, needs=("station", "write", "policy", "workload"),
    ),
    Action(
        "go_to_change", "enter", "go there", "To a change's moment in a bucket; explain a workload, or the columns",
        "policy", spare=5,
    ),
    Action("other_list", "tab", "history", "From the workloads to the history, and back", "policy", spare=6),
    Action(
        "explain_cell", "enter", "explain", "Explain the selected cell: formula, counts, interval, what was left out",
        "map", needs=("map",),
    ),
    Action(
        "rehearse", "r", "rehearse", "Rehearse: traffic like the day's measures each draft length", "map", spare=1,
        dangerous=True, needs=("station", "write", "policy", "engine", "no_rehearsal"),
    ),
    Action(
        "stop_rehearsal", "b", "break off", "Break the rehearsal off; what was measured is kept", "map", spare=1,
        dangerous=True, needs=("station", "write", "rehearsal"),
    ),
    Action(
        "deploy_map", "d", "deploy", "Deploy the map's schedule; refused while the map is stale", "map", spare=2,
        dangerous=True, needs=("station", "write", "policy", "engine", "no_rehearsal", "map", "map_schedule"),
    ),
    Action("open_trace", "enter", "open", "Open the marked trace; leaving it comes back here", "traces", spare=1),
    Action("record", "r", "record", "Record into a trace file from now on, with or without a console", "traces",
           spare=1, needs=("station", "write", "no_recording")),
    Action("end_recording", "b", "end recording", "End the recording and write its file", "traces", spare=1,
           dangerous=True, needs=("station", "write", "recording")),
    Action("next_place", "tab", "place", "To the traces of the next place: yours, here, samples", "traces", spare=6),
    Action("traces_back", "escape", "back", "Back to Live", "traces", shown=False, display="esc"),
    Action(
        "restart", "r", "restart", "Restart the engine that specdeck started", "engine", dangerous=True,
        needs=("station", "write", "own_engine"),
    ),
    Action("explain_engine", "enter", "explain", "Explain what stands here, and executed K", "engine", spare=5),
    Action("follow", "end", "follow", "Go to the end of the log and follow it", "engine", spare=6, display="end"),
    Action("pick", "enter", "choose", "Choose the marked mode; asks before it is applied", "choose"),
    Action(
        "go_to_alert", "enter", "go there", "To its moment in the series of its bucket", "alerts", spare=1,
    ),
    Action(
        "acknowledge", "a", "acknowledge", "Say that you have seen it", "alerts", spare=1,
        needs=("station", "write"),
    ),
    Action(
        "snooze", "z", "snooze 1 h", "Keep it quiet for an hour; it goes on", "alerts", spare=1,
        needs=("station", "write"),
    ),
    Action(
        "accept", "A", "accept level", "The level that it complains of is right from now on", "alerts", spare=5,
        dangerous=True, display="A", needs=("station", "write"),
    ),
    Action("cancel_choice", "escape", "cancel", "Change nothing", "choose", display="esc"),
    Action("submit", "enter", "next", "Take the schedule; asks before it is applied", "edit"),
    Action("cancel_edit", "escape", "cancel", "Change nothing", "edit", display="esc"),
    Action("choose_plan", "enter", "next", "Take the marked plan, or the one that is written; asks first", "rehearse"),
    Action("other_plan", "tab", "write a path", "Write the path of a plan, or back to the list", "rehearse"),
    Action("cancel_plan", "escape", "cancel", "Rehearse nothing", "rehearse", display="esc"),
    Action("export_there", "enter", "export", "Export to the path that is written; asks before it replaces a file",
           "export"),
    Action("other_export_field", "tab", "range", "From the path to the ranges, and back", "export"),
    Action("cancel_export", "escape", "cancel", "Export nothing", "export", display="esc"),
    Action("start_recording", "enter", "next", "Record there; asks before a file is replaced", "record"),
    Action("other_record_field", "tab", "next field", "Name, form, how long", "record"),
    Action("cancel_recording", "escape", "cancel", "Record nothing", "record", display="esc"),
    Action("confirm", "y", "yes, do it", "Do it", "confirm"),
    Action("refuse", "escape,n", "no", "Change nothing", "confirm", display="esc"),
    Action("detach", "d", "detach", "Leave; the engine keeps serving", "leave"),
    Action(
        "stop", "s", "stop everything", "Stop station, gateway and engine", "leave", needs=("write",)
    ),
    Action("stay", "escape", "stay", "Stay here", "leave", display="esc"),
    Action("go_there", "enter", "go", "Go to the moment that is written", "go"),
    Action("cancel_go", "escape", "cancel", "Stay at this moment", "go", display="esc"),
    Action("tick", "space", "choose", "Take the marked policy in, or leave it out", "what_if"),
    Action("ask_what_if", "enter", "ask", "Work it out for the policies that are chosen", "what_if"),
    Action("other_field", "tab", "write one", "Write a policy, or back to the list", "what_if"),
    Action("leave_what_if", "escape", "leave", "Back to the replay; what is being worked out is dropped", "what_if",
           display="esc"),
    Action("copy_page", "y", "copy", "Copy the page as text", "page"),
    Action("compare_these", "enter", "compare", "Compare it with the marked one", "compare"),
    Action("leave_compare", "escape", "cancel", "Compare nothing", "compare", display="esc"),
    Action("next_section", "tab", "next", "To the next figure", "page"),
    Action("previous_section", "shift+tab", "back", "To the figure before", "page", shown=False),
    Action("serve", "enter", "serve", "Serve it from here, read-only, until this console is left", "web"),
    Action("copy_address", "y", "copy", "Copy the address, token included", "web"),
    Action("end_serving", "s", "stop", "Serve it no longer; its tabs end", "web"),
    Action("leave_web", "escape,q", "close", "Close this; what is served stays so", "web", display="esc"),
    Action("close", "escape,q,enter", "close", "Close the page", "page", display="esc"),
    Action("close_balance", "escape,q,enter,b", "close", "Close the page", "balance", display="esc"),
)  # fmt: skip

ACTIONS: Final[Mapping[str, Action]] = {action.id: action for action in _ALL}


def in_context(context: Context) -> list[Action]:
    return [action for action in _ALL if action.context == context]


def bindings(context: Context) -> list[BindingType]:
    """The Textual bindings of a context, one for each key of each action."""
    return list(_bindings(context))


def unmet(action: Action, picture: Picture) -> str | None:
    """Why an action can't be done now, with the remedy; None when it can."""
    for need in action.needs:
        reason = CHECKS[need](picture)
        if reason is not None:
            return f"{action.label}: {reason}"
    return None


def label_of(action: Action, picture: Picture) -> str:
    """What a key does now, where that changes."""
    if action.id == "pause" and picture.paused_since is not None:
        return "resume"
    if action.id == "longer_window" and picture.window:
        return f"{picture.window} fixed"
    if action.id == "compare" and picture.compared is not None:
        return "compare with…"
    if action.id == "demo_traffic" and picture.snapshot is not None and goes_on(picture.snapshot.demo):
        return "end the demo"
    if action.id == "play" and picture.replay is not None and picture.replay.playing:
        return "hold"
    if action.id == "loop" and picture.replay is not None:
        if picture.replay.loop is not None:
            return "end loop"
        return "loop to here" if picture.loop_from is not None else "loop"
    return action.label


def spare_of(action: Action, picture: Picture) -> int:
    """Where the key line is too short, the highest goes first; not what a key has begun and can end."""
    begun = {"compare": picture.compared is not None, "longer_window": bool(picture.window)}
    return 1 if begun.get(action.id, False) else action.spare


def key_name(action: Action, keymap: Mapping[str, str] | None = None) -> str:
    """The key as it is written on screen, after the operator's own keymap."""
    moved = (keymap or {}).get(action.id)
    if moved is not None:
        return moved.split(",")[0]
    return action.display or action.keys.split(",")[0]


def markdown_table() -> str:
    """The keys as a Markdown table, for the README."""
    lines = ["| key | where | does |", "| --- | --- | --- |"]
    for action in _ALL:
        asks = " (asks first)" if action.dangerous else ""
        does = action.description.replace("|", "\\|")
        lines.append(f"| `{key_name(action)}` | {CONTEXT_TITLES[action.context].lower()} | {does}{asks} |")
    return "\n".join(lines) + "\n"


def _bindings(context: Context) -> Iterator[Binding]:
    for action in in_context(context):
        yield Binding(
            action.keys,
            action.id,
            action.label,
            show=False,  # our own key line shows them
            id=action.id,
            priority=action.priority,
            key_display=action.display or None,
        )
