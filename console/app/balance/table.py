"""The balance as tables: what each workload saved and of what that is made, and who paid for whose drafts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from console.app.balance.amounts import amount, half_width, places, share, sign_of
from console.app.drawing.spans import Line, Role, Span, clean, left, right
from store.balance.records import Balance, WorkloadBalance

NAMES: Final = (14, 24)
"""Cells of a workload's name, the glyph before it included: at least, and where there is room."""
CELL: Final = 8
PAID_CELL: Final = 9
TOTAL: Final = "together"


class _Column(NamedTuple):
    title: str
    field: str
    signed: bool = False
    wide: bool = False
    """Only where there is room for more than the sum is made of."""


_COLUMNS: Final = (
    _Column("used", "used"),
    _Column("vanilla", "vanilla", wide=True),
    _Column("saved", "saved", signed=True),
    _Column("brought", "brought"),
    _Column("own", "paid_own"),
    _Column("others'", "paid_others"),
    _Column("rest", "unexplained"),
)
_EXTRA: Final = 7
"""Cells of ±."""
_MEASURED: Final = 10


def saved_table(balance: Balance, width: int) -> list[Line]:
    """A line a workload, all of them at the end."""
    everyone = [*balance.workloads, balance.total]
    wide = width >= NAMES[0] + CELL * len(_COLUMNS) + _EXTRA + _MEASURED
    columns = [column for column in _COLUMNS if wide or not column.wide]
    name = _name_width(width - CELL * len(columns) - _EXTRA - (_MEASURED if wide else 0))
    decimals = places(getattr(one, column.field) for one in everyone for column in columns)
    titles = "".join(right(column.title, CELL) for column in columns)
    head = left("", name) + titles + right("±", _EXTRA) + (right("measured", _MEASURED) if wide else "")
    lines: list[Line] = [((head, "dim"),)]
    for one in everyone:
        spans = [*_name(one, name), *(_cell(one, column, decimals) for column in columns)]
        spans.append((right(_error(one, decimals), _EXTRA), "dim"))
        if wide:
            spans.append((right(share(one.measured), _MEASURED), "dim"))
        lines.append(tuple(spans))
    return lines


def paid_table(balance: Balance, width: int) -> list[Line]:
    """Who paid (lines) for whose drafts (columns), with the sums of both; whose drafts cost least are put together
    where there are more than fit."""
    assert balance.paid is not None
    drafting = [n for n, one in enumerate(balance.workloads) if one.draft_tokens]
    drafting.sort(key=lambda n: -(balance.workloads[n].drafts_cost or 0.0))
    room = max(1, (width - NAMES[0] - PAID_CELL) // PAID_CELL)
    shown = drafting if len(drafting) <= room else drafting[: room - 1]
    groups = [[n] for n in shown] + ([drafting[len(shown) :]] if len(shown) < len(drafting) else [])
    titles = [clean(balance.workloads[group[0]].workload or "") for group in groups[: len(shown)]]
    titles += ["others"] * (len(groups) - len(shown))
    table = [[sum(row[n] for n in group) for group in groups] for row in balance.paid]
    costs = [sum(row[place] for row in table) for place in range(len(groups))]
    decimals = places([*costs, sum(costs)])
    name = _name_width(width - PAID_CELL * (len(groups) + 1))
    columns = "".join(right(right(title, PAID_CELL - 1), PAID_CELL) for title in [*titles, TOTAL])
    head = left("  paid by", name) + columns
    lines: list[Line] = [((head, "dim"),)]
    for n, row in enumerate(table):
        own = next((place for place, group in enumerate(groups[: len(shown)]) if group == [n]), None)
        lines.append(_paid(clean(balance.workloads[n].workload or ""), name, row, decimals, own, "text"))
    return [*lines, _paid(TOTAL, name, costs, decimals, None, "bright")]


def _paid(name: str, size: int, row: Sequence[float], decimals: int, own: int | None, role: Role) -> Line:
    spans: list[Span] = [(left(f"  {name}", size), role)]
    for place, paid in enumerate(row):
        spans.append((right(amount(paid, decimals), PAID_CELL), "dim" if place == own else role))
    return (*spans, (right(amount(sum(row), decimals), PAID_CELL), "bright"))


def _name_width(room: int) -> int:
    least, most = NAMES
    return min(most, max(least, room))


def _name(one: WorkloadBalance, size: int) -> list[Span]:
    if one.workload is None:
        return [(left(f"  {TOTAL}", size), "bright")]
    glyph, role = sign_of(one)
    return [(f"{glyph} ", role), (left(clean(one.workload), size - 2), "text")]


def _cell(one: WorkloadBalance, column: _Column, decimals: int) -> Span:
    value = getattr(one, column.field)
    text = right(amount(value, decimals, signed=column.signed), CELL)
    if column.field != "saved" or value is None:
        return text, "bright" if one.workload is None else "text"
    role = sign_of(one)[1]
    return text, role if role in ("ok", "warn") else "text"


def _error(one: WorkloadBalance, decimals: int) -> str:
    half = half_width(one)
    return "" if half is None else amount(half, decimals)
