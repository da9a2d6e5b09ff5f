"""S(K) by the formula beside the realised speedup of the rows that were asked for K: theory and measurement. Pure."""

from __future__ import annotations

from typing import Final

from console.app.bucket.facts import BucketFacts
from console.app.drawing import numbers, plots
from console.app.drawing.spans import Line, Part, Span, clean, fit, packed, right
from console.feed.bucket_detail import BucketDetail, MeasuredK

LABEL, SHORT_LABEL = 15, 9
_CELL: Final = 6
POINT: Final = "●"


def k_table(facts: BucketFacts, width: int) -> list[Line]:
    """Title, then K, theory, measured, the mean batch it ran at, rows: a column for each K that there is room for."""
    title = _title(facts.detail, width)
    detail = facts.detail
    if detail is None or (not detail.theory and not detail.measured):
        return [title, ((f"  — {clean(facts.why('measured') or facts.why('cost'))}", "dim"),)]
    label = _label(width)
    columns = shown_ks(detail, (width - label) // _CELL)
    here = _here(facts)
    measured = {one.k: one for one in detail.measured}
    heading: Line = (
        (f"{'  K' if label == LABEL else 'K':<{label}}", "dim"),
        *(
            (right(f"▸{k} " if k == here else f"{k} ", _CELL), "bright" if k == here else "dim") for k in columns
        ),
    )  # fmt: skip
    lines = [title, heading]
    if detail.theory:
        theory = [f"{detail.theory[k]:.2f}" if k < len(detail.theory) else numbers.ABSENT for k in columns]
        lines.append(_row("  ┄ theory", label, theory, "dim"))
    found = [measured.get(k) for k in columns]
    name = f"  {POINT} experienced" if label == LABEL else f"  {POINT} exp"
    lines.append(_row(name, label, [_value(one) for one in found], "bright"))
    lines.append(_row("    ±", label, [_error(one) for one in found], "dim"))
    lines.append(_row("    batch", label, ["" if one is None else f"{one.batch:.0f}" for one in found], "dim"))
    lines.append(_row("    rows", label, ["" if one is None else numbers.count(one.rows) for one in found], "dim"))
    if any(one.speedup is None and one.state == "calibrating" for one in detail.measured):
        lines.append((("  ◐ ", "accent"), ("vanilla times not measured yet", "dim")))
    if not detail.theory:
        lines.append(((f"  theory — {clean(facts.why('cost'))}", "dim"),))
    return lines


def _label(width: int) -> int:
    """Cells for the names of the rows."""
    return LABEL if width >= LABEL + 5 * _CELL else SHORT_LABEL


def _row(name: str, label: int, cells: list[str], role: str) -> Line:
    return (
        (f"{name if label == LABEL else name[2:]:<{label}}", "dim"),
        ("".join(right(cell, _CELL) for cell in cells), "bright" if role == "bright" else "dim"),
    )


def _title(detail: BucketDetail | None, width: int) -> Line:
    """With what the formula was given."""
    parts = [Part((("speedup by K", "title"),))]
    if detail is not None and detail.batch is not None:
        parts.append(Part(((f"batch {detail.batch:.0f}", "dim"),), 1))
        if detail.cost is not None:
            parts.append(Part(((f"c {numbers.fraction(detail.cost)}", "dim"),), 2))
        if detail.acceptance is not None:
            parts.append(Part(((f"cond. α {numbers.fraction(detail.acceptance)}", "dim"),), 3))
    return fit(parts, width)


def shown_ks(detail: BucketDetail, room: int) -> list[int]:
    """The Ks there is room for: those with most rows, the longest, then the shortest. Without theory only what ran."""
    if not detail.theory:
        return sorted(one.k for one in sorted(detail.measured, key=lambda one: -one.rows)[: max(1, room)])
    longest = max([len(detail.theory) - 1, *(one.k for one in detail.measured), 0])
    if longest + 1 <= room:
        return list(range(longest + 1))
    room = max(2, room)
    by_rows = sorted(detail.measured, key=lambda one: -one.rows)
    kept = {one.k for one in by_rows[: room - 1]} | {longest}
    for k in range(longest + 1):
        if len(kept) < room:
            kept.add(k)
    return sorted(kept)


def _value(one: MeasuredK | None) -> str:
    if one is None:
        return numbers.ABSENT
    return "◐" if one.speedup is None else f"{one.speedup:.2f}"


def _error(one: MeasuredK | None) -> str:
    return "" if one is None else numbers.half_width(one.low, one.high)


def _here(facts: BucketFacts) -> int | None:
    """The K that most rows were asked for at the moment that is read out."""
    point = facts.point
    return None if point is None or point.executed_k is None else round(point.executed_k)


def curve_lines(facts: BucketFacts, width: int, height: int) -> list[Line]:
    """Theory as a curve, what was measured as points with their intervals; columns as in the table."""
    detail = facts.detail
    if detail is None or not detail.theory or height < 3:
        return []
    label = _label(width)
    columns = shown_ks(detail, (width - label) // _CELL)
    theory = [detail.theory[k] if k < len(detail.theory) else None for k in columns]
    measured = {one.k: one for one in detail.measured if one.speedup is not None}
    scale = plots.ratio_scale([*theory, *(one.speedup for one in measured.values())])
    canvas = plots.empty(_CELL * len(columns), height)
    plots.level(canvas, 1.0, scale, "┄", "faint")
    plots.curve(canvas, theory, scale, "dim")
    for place, k in enumerate(columns):
        if k in measured:
            _point(canvas, measured[k], place, scale, k == _here(facts))
    labels = {0: f"{scale[1]:.1f}", height - 1: f"{scale[0]:.1f}"}
    edge = {row: f"{right(labels.get(row, ''), label - 1)}{'┤' if row in labels else '│'}" for row in range(height)}
    return [((edge[row], "dim"), *packed(line)) for row, line in enumerate(canvas)]


def _point(canvas: plots.Canvas, one: MeasuredK, place: int, scale: plots.Scale, here: bool) -> None:
    assert one.speedup is not None
    height, column = len(canvas), place * _CELL + _CELL // 2
    if one.low is not None and one.high is not None:
        for row in range(plots.row_of(one.high, scale, height), plots.row_of(one.low, scale, height) + 1):
            canvas[row][column] = ("│", "dim")
    sign: Span = (POINT, "bright" if here else "text")
    canvas[plots.row_of(one.speedup, scale, height)][column] = sign
