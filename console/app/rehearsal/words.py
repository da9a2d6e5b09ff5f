"""A rehearsal in words: on the status line, in the panel of the Map screen, and what a plan is going to do. Pure."""

from __future__ import annotations

from typing import Final

from console.app.drawing import numbers
from console.app.drawing.spans import Line, Part, Role, Span, between, clean, clip, fit, wrap
from console.feed.messages import RehearsalView
from store.rehearsal.plan import WITHOUT, Plan, fixed_k

GOING_ON: Final = ("starting", "running", "fallback_test")

_STATES: Final[dict[str, tuple[str, str, Role]]] = {
    "starting": ("◐", "starting", "accent"),
    "running": ("◐", "running", "accent"),
    "fallback_test": ("◐", "fallback test", "accent"),
    "over": ("✓", "over", "ok"),
    "stopped": ("○", "stopped", "dim"),
    "failed": ("■", "failed", "critical"),
}


def goes_on(view: RehearsalView | None) -> bool:
    return view is not None and view.state in GOING_ON


def rehearsal_part(view: RehearsalView | None) -> Part:
    """What the status line says: `rehearsal 3/10 k2`, the bare word where room is short, nothing when none goes on."""
    if view is None or view.state in ("over", "stopped"):
        return Part(())
    if view.state == "failed":
        return Part((("rehearsal failed", "warn"),), 4)
    word: Span = ("rehearsal", "accent")
    where = "" if view.state == "starting" else " fallback test"
    if view.state == "running" and view.passes:
        where = f" {view.pass_number}/{view.passes} {clip(clean(view.arm), 9)}"
    return Part((word, (where.rstrip(), "text")), 4, (word,), short_spare=2)


def rehearsal_lines(view: RehearsalView, width: int) -> list[Line]:
    """The panel that watches one: where it is and for how long, counts and folder, and its note."""
    glyph, word, role = _STATES[view.state]
    state: Line = ((f" {glyph} ", role), (word, role))
    parts = [
        Part(state),
        Part((("pass ", "dim"), (f"{view.pass_number} of {view.passes}", "bright")) if view.passes else (), 1),
        Part((("arm ", "dim"), (clean(view.arm), "bright")) if view.arm and goes_on(view) else (), 1),
        Part((("phase ", "dim"), (clean(view.phase), "text")) if view.phase and goes_on(view) else (), 2),
    ]
    end: Line = ()
    if view.seconds_left is not None and goes_on(view):
        end = ((numbers.countdown(view.seconds_left), "bright"), (" left ", "dim"))
    start = fit(parts, max(20, width - 16 - len(progress_bar(view, 10))), ("   ", "text"))
    room = max(8, min(40, width - sum(len(text) for text, _ in (*start, *end)) - 6))
    lines = [between((*start, ("   ", "text"), (progress_bar(view, room), role)), end, width)]
    counts: Line = (
        ("   sent ", "dim"), (f"{view.sent:,}", "text"), ("  done ", "dim"), (f"{view.done:,}", "text"),
        ("  errors ", "dim"), (f"{view.errors:,}", "warn" if view.errors else "text"),
    )  # fmt: skip
    folder = _tail(clean(view.folder), max(0, width - sum(len(text) for text, _ in counts) - 4))
    lines.append(between(counts, ((f"{folder} ", "dim"),) if folder else (), width))
    note_role: Role = "critical" if view.state == "failed" else "text"
    return [*lines, *(((f"   {part}", note_role),) for part in wrap(clean(view.note), max(20, width - 4))[:2])]


def progress_bar(view: RehearsalView, width: int) -> str:
    """Passes that came to their end, shaded the one that goes on."""
    if not view.passes or width <= 0:
        return ""
    over = view.state in ("over", "fallback_test")
    done = view.passes if over else max(0, view.pass_number - 1)
    filled = min(width, done * width // view.passes)
    going = 0 if over or not goes_on(view) else max(1, (done + 1) * width // view.passes - filled)
    return "█" * filled + "▒" * min(going, width - filled) + "░" * max(0, width - filled - going)


def passes_of(plan: Plan) -> int:
    """Passes on a station's own engine, which has a drafter and so can't be the `without` arm."""
    arms = [arm for arm in plan.arms if arm != WITHOUT]
    survey = min(plan.survey, plan.repeats)
    return survey * sum(fixed_k(arm) is not None for arm in arms) + (plan.repeats - survey) * len(arms)


def arms_words(plan: Plan) -> str:
    return " ".join(arm for arm in plan.arms if arm != WITHOUT)


def plan_words(plan: Plan) -> str:
    """How long it takes and what it tries, one line."""
    passes = passes_of(plan)
    minutes = numbers.duration(passes * plan.seconds)
    return f"{minutes} of traffic · {passes} pass{'es' * (passes != 1)} · {arms_words(plan)}"


def _tail(path: str, width: int) -> str:
    """The end of a path is what tells it from others."""
    return path if len(path) <= width else f"…{path[len(path) - width + 1 :]}" if width > 8 else ""
