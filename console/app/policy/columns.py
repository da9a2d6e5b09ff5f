"""Configured | resolved | executed of an engine, and why they differ: on the Policy and on the Engine screen. Pure."""

from __future__ import annotations

from typing import Final

from console.app.drawing import numbers
from console.app.drawing.spans import Line, Role, clean, clip, left, wrap
from console.app.policy.words import mode_words, same_mode
from console.feed.messages import EngineView
from engine.records import PolicyMode

LABEL_WIDTH: Final = 14
_TITLES: Final = ("configured", "resolved", "executed")

UNKNOWN: Line = (
    (left("   policy", LABEL_WIDTH), "dim"),
    ("unknown, as is executed K: this engine is only observed", "text"),
)


def column_titles(width: int, label: str = "policy") -> Line:
    cell = _cell(width)
    return (*_label(label), *((left(name, cell), "dim") for name in _TITLES))


def column_row(engine: EngineView, width: int, label: str = "") -> Line:
    """The three of one engine; what differs from its left neighbour is bright or marked."""
    cell = _cell(width)
    executed = numbers.ABSENT if engine.executed_k is None else f"K {engine.executed_k}"
    limit = f" set by {clean(engine.executed_limit)}" if engine.executed_limit and engine.executed_k is not None else ""
    return (
        *_label(label),
        (_mode(engine.configured, cell), "bright"),
        (_mode(engine.resolved, cell), "warn" if _changed(engine) else "bright"),
        (executed, "critical" if engine.unexplained else "bright"),
        (limit, "dim"),
    )


def column_reasons(engine: EngineView, width: int) -> list[Line]:
    """Why they differ, one sentence each; nothing where they agree."""
    return [
        (*_label(""), (f"{'≠ ' if row == 0 else '  '}{text}", role))
        for reason, role in reasons(engine)
        for row, text in enumerate(wrap(clean(reason), max(20, width - LABEL_WIDTH - 2)))
    ]


def reasons(engine: EngineView) -> list[tuple[str, Role]]:
    """The same, bare."""
    known: list[tuple[str | None, Role]] = [
        (engine.resolved.reason if engine.resolved is not None else None, "warn"),
        (engine.mismatch, "critical" if engine.unexplained else "dim"),
        (engine.policy_error, "critical"),
        (_reverted(engine), "warn"),
        (_orphaned(engine), "warn"),
    ]
    return [(reason, role) for reason, role in known if reason]


def policy_versions(engine: EngineView) -> Line:
    """Whether the engine applied what it was sent."""
    if engine.policy_sent is None:
        return (*_label(""), ("no policy sent yet", "dim"))
    if engine.policy_applied == engine.policy_sent:
        return (*_label(""), (f"version {engine.policy_sent}, applied", "dim"))
    applied = "none" if engine.policy_applied is None else str(engine.policy_applied)
    return (*_label(""), (f"version {engine.policy_sent} sent, {applied} applied so far", "accent"))


def _changed(engine: EngineView) -> bool:
    return (
        engine.resolved is not None
        and engine.configured is not None
        and not same_mode(engine.resolved, engine.configured)
    )


def _reverted(engine: EngineView) -> str | None:
    if engine.reverted is None:
        return None
    return f"the engine took back an unconfirmed raise at {numbers.minutes(engine.reverted)}"


def _orphaned(engine: EngineView) -> str | None:
    if engine.orphaned is None:
        return None
    return f"no station was heard since {numbers.minutes(engine.orphaned)}: adaptive's own K is left out"


def _mode(mode: PolicyMode | None, cell: int) -> str:
    words = clean(mode_words(mode))
    return left(words if len(words) < cell else clip(numbers.mode(mode), cell - 1), cell)


def _cell(width: int) -> int:
    """Cells of a column: 30 as long as that leaves room for what executes, more on a large terminal."""
    return max(14, min(30 if width < 150 else 48, (width - LABEL_WIDTH) // 3))


def _label(name: str) -> Line:
    return ((left(f"   {name}", LABEL_WIDTH), "dim"),)
