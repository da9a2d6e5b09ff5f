"""The command log as lines: what this console asked for and what others did, by time, newest last. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from console.app.commands.log import Asked
from console.app.commands.words import command_of_entry
from console.app.drawing import numbers
from console.app.drawing.spans import EMPTY, Line, Role, clean, wrap
from console.feed.protocol import HistoryEntry

OF_THEMSELVES: Final = frozenset({"adaptive", "rehearsal", "drill"})
"""They act all the time; the Policy screen's history has them."""

_DAY_SECONDS: Final = 86_400.0
_HOW: Final[dict[str, tuple[str, Role]]] = {
    "asked": ("… not answered yet", "accent"), "done": ("✓ done", "ok"), "refused": ("✗ refused", "warn"),
    "failed": ("✗ failed", "critical"), "unknown": ("? not known whether it was done", "warn"),
}  # fmt: skip


class Row(NamedTuple):
    ts: float
    actor: str
    what: str
    command: str | None
    how: str
    detail: str = ""
    policy: int | None = None
    taken_back: str = ""
    """By what."""


def log_rows(asked: Iterable[Asked], entries: Sequence[HistoryEntry], own: str, began: float | None) -> list[Row]:
    """`entries`: newest first, as the station has them. `own`: the name of this console, which knows what it asked for
    since `began`; None: it knows of nothing, as in a replay."""
    back = _taken_back(entries)
    rows = [
        Row(one.ts, own, one.what, one.command, one.how, one.detail, one.policy, back.get(one.policy or -1, ""))
        for one in asked
    ]
    for entry in entries:
        mine = entry.actor == own and began is not None and entry.ts >= began
        if mine or entry.actor in OF_THEMSELVES or entry.action == "begin":
            continue
        what = entry.text.partition(f"{entry.actor}: ")[2] or entry.text or entry.action
        rows.append(
            Row(entry.ts, entry.actor, what, command_of_entry(entry), "done", "", entry.policy,
                back.get(entry.policy or -1, ""))
        )  # fmt: skip
    return sorted(rows, key=lambda row: row.ts)


def _taken_back(entries: Sequence[HistoryEntry]) -> dict[int, str]:
    """By version of the policy: what took the change to it back."""
    back: dict[int, str] = {}
    reverting: HistoryEntry | None = None
    for entry in entries:
        facts = entry.numbers or {}
        undone = facts.get("undone")
        if entry.action == "undo" and isinstance(undone, int):
            back.setdefault(undone, f"by {entry.actor}, policy {entry.policy}")
        elif entry.action == "revert":
            reverting = entry
        elif entry.action == "confirm":
            reverting = None
        elif reverting is not None and "confirm_by" in facts and entry.policy is not None:
            why = f": {reverting.why}" if reverting.why else ""
            back.setdefault(entry.policy, f"by the station, policy {reverting.policy}{why}")
            reverting = None
    return back


def log_lines(rows: Sequence[Row], own: str, now: float, width: int, trouble: str = "") -> list[Line]:
    """Three lines or more for each: when, who and how it went; what; and the command that does the same."""
    lines: list[Line] = []
    for row in rows:
        lines += [*_row_lines(row, own, now, width), EMPTY]
    if not rows:
        lines += _text("Nothing was asked of the station yet. m + - f l u change the policy.", width, "dim", "")
    if trouble:
        lines += _text(trouble, width, "warn", "")
    return lines


def _row_lines(row: Row, own: str, now: float, width: int) -> list[Line]:
    when = numbers.clock(row.ts)
    if now - row.ts >= _DAY_SECONDS:
        when = f"{numbers.day(row.ts)} {when}"
    how, role = _HOW[row.how]
    if row.taken_back:
        how, role = "↶ taken back", "warn"
    policy = f", policy {row.policy}" if row.policy is not None else ""
    here = " (this console)" if row.actor == own else ""
    lines: list[Line] = [
        ((when, "dim"), (f"  {clean(row.actor)}", "bright"), (here, "dim"), (f"  {how}{policy}", role))
    ]
    lines += _text(row.what, width, "text")
    for detail in (row.detail, row.taken_back):
        lines += _text(detail, width, "warn") if detail else []
    return [*lines, *_text(f"$ {row.command}", width, "dim")] if row.command else lines


def _text(text: str, width: int, role: Role, margin: str = "  ") -> list[Line]:
    return [((f"{margin}{part}", role),) for part in wrap(clean(text), max(20, width - len(margin)))]
