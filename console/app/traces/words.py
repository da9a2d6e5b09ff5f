"""A recording in words: on the status line, in its panel, and what ending or replacing one means. Pure."""

from __future__ import annotations

from typing import Final

from console.app.drawing import numbers
from console.app.drawing.spans import EMPTY, Line, Part, Role, between, clean, fit, width_of, wrap
from console.app.frame.change import Change
from console.feed.messages import RecordingView
from console.feed.traces import LONGEST_SECONDS, TraceForm, form_of_name

FORMS: Final[dict[TraceForm, str]] = {
    "zst": "jsonl.zst",
    "jsonl": "jsonl",
    "compact": "compact",
    "bundle": "bundle",
    "store": "store",
}
_LONG_FORMS: Final[dict[TraceForm, str]] = {
    "zst": "compressed JSONL",
    "jsonl": "JSONL",
    "compact": "compact, Parquet",
    "bundle": "in a bundle",
    "store": "a store",
}
_STATES: Final[dict[str, tuple[str, str, Role]]] = {
    "on": ("●", "recording", "accent"),
    "writing": ("◐", "writing", "accent"),
    "written": ("✓", "written", "ok"),
}


def form_words(form: TraceForm | None) -> str:
    return "" if form is None else _LONG_FORMS[form]


def tail(path: str, width: int) -> str:
    """The end of a path is what tells it from others."""
    return path if len(path) <= width else f"…{path[len(path) - width + 1 :]}" if width > 1 else ""


def recording_part(view: RecordingView | None, now: float) -> Part:
    """What the status line says: `● rec 12m`, nothing when none goes on."""
    if view is None or view.state == "written":
        return Part(EMPTY)
    if view.note:
        return Part((("▲ rec not written", "warn"),), 1)
    word: Line = (("● rec", "accent"),)
    how = " writing" if view.state == "writing" else f" {numbers.brief(max(0.0, now - view.began))}"
    return Part((*word, (how, "text")), 4, word, short_spare=2)


def recording_lines(view: RecordingView, now: float, width: int) -> list[Line]:
    """The panel of the one that goes on, or was written just now."""
    glyph, word, role = _STATES[view.state]
    over = view.ended if view.ended is not None else now
    about = "" if view.state == "written" else "about "
    parts = [
        Part(((f" {glyph} ", role), (word, role))),
        Part((("since ", "dim"), (numbers.clock(view.began), "text")), 3),
        Part(((numbers.duration(max(0.0, over - view.began)), "bright"),), 1),
        Part(((f"{view.rows:,}", "bright"), (" rows", "dim")), 0),
        Part(((about, "dim"), (numbers.size(view.bytes), "text")), 2),
    ]
    end: Line = ()
    if view.state == "on" and view.seconds is not None and not view.note:
        end = (("ends in ", "dim"), (f"{numbers.countdown(view.until - now)} ", "bright"))
    lines = [between(fit(parts, max(20, width - 18), ("   ", "text")), end, width)]
    path = clean(view.path)
    name = len(path.rpartition("/")[2]) + 2
    asked = fit(
        [
            Part(((_asked(view), "dim"),), 1),
            Part(((f"by {clean(view.actor)}", "dim"),), 3),
            Part(((form_words(form_of_name(view.path)), "dim"),), 2),
        ],
        max(0, width - 7 - name),
        (" · ", "dim"),
    )
    lines.append((("   ", "text"), (tail(path, width - 7 - width_of(asked)), "text"), ("   ", "text"), *asked))
    note = clean(view.note)
    if view.note and view.state != "written":
        why = note.removeprefix(f"{path}: ").removeprefix("can't be written: ")
        note = f"could not be written: {why}. It goes on, nothing is lost; b writes it, there or elsewhere."
    shown: Role = "dim" if view.state == "written" else "critical"
    return [*lines, *(((f"   {part}", shown),) for part in wrap(note, max(20, width - 4))[:3])]


def _asked(view: RecordingView) -> str:
    if view.state == "written" and view.seconds is None:
        return ""
    if view.seconds is not None:
        return f"for {numbers.duration(view.seconds)}"
    return f"until it is ended, at most {numbers.duration(LONGEST_SECONDS)}"


def end_change(view: RecordingView, now: float) -> Change:
    """What ending it does."""
    folder, _, name = view.path.rpartition("/")
    lasted = numbers.duration(max(0.0, now - view.began))
    rows = f"{numbers.many(view.rows, 'row')} of {lasted} {'is' if view.rows == 1 else 'are'} written"
    effects = [f"{rows}, about {numbers.size(view.bytes)}."]
    if view.seconds is not None:
        effects.append(f"It would have ended by itself in {numbers.countdown(view.until - now)}.")
    return Change(
        "End the recording", f"recording since {numbers.clock(view.began)}, begun by {view.actor}",
        f"the file {name}, in {folder or '/'}", effects, "none; r begins another",
    )  # fmt: skip


def replace_change(path: str, what: str) -> Change:
    """`what`: the file that is there, in a few words."""
    return Change(
        "A file of that name is there", f"{path}: {what}", "replaced by the recording, when that is written",
        ["Until the recording is whole the file stays as it is."], "esc goes back: choose another name",
    )  # fmt: skip
