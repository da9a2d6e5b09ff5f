"""The bucket table: its columns, which of them fit, and the text of a row. Pure.

Columns have a rank: what fits is decided by it, so a narrow terminal shows the same order of importance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from console.app.drawing import charts, numbers
from console.app.drawing.spans import Line, Role, Span, clean, left, right
from console.feed.messages import AlertView, BucketView, WorkloadView
from store.figures import BucketKey, Figures

IDLE_SECONDS: Final = 60.0
"""A bucket without rows for this long is shown dim, with how long it has been idle."""


@dataclass(frozen=True)
class RowFacts:
    """A bucket and what a row of it needs beside. `now`: the snapshot's time, Unix seconds."""

    bucket: BucketView
    now: float
    alert: AlertView | None = None
    workload: WorkloadView | None = None
    """What the policy holds for its workload, where the station says so."""
    version: str = ""
    """What tells its model version from the others on the screen."""
    marked: bool = False
    """The next one is to be compared with it."""

    @property
    def idle(self) -> float:
        return max(0.0, self.now - self.bucket.last_seen) if self.bucket.last_seen else 0.0

    @property
    def is_idle(self) -> bool:
        return self.idle > IDLE_SECONDS

    @property
    def told(self) -> tuple[object, ...]:
        """All that a row tells: the same as long as that is the same, though time goes on."""
        return self.bucket, self.version, state_of(self), self.is_idle, self.marked


@dataclass(frozen=True)
class Column:
    """`least`, `wanted` and `most` cells; `rank`: 0 always stays, the highest goes first."""

    id: str
    title: str
    rank: int
    least: int
    wanted: int
    most: int
    cell: Callable[[RowFacts, int], Line]
    numeric: bool = True


Layout = list[tuple[Column, int]]


def state_of(facts: RowFacts) -> tuple[str, str, Role]:
    """Glyph, word and role of a bucket's state."""
    figures = facts.bucket.figures
    if facts.alert is not None:
        glyph, role = ("■", "critical") if facts.alert.severity == "critical" else ("▲", "warn")
        return glyph, clean(facts.alert.kind), "critical" if role == "critical" else "warn"
    held = _held(facts)
    if held is not None:
        return held
    if facts.is_idle:
        return "○", f"idle {numbers.duration(facts.idle)}", "dim"
    if figures.drafted == 0 and figures.decode_rows:
        return "○", "no drafts", "dim"
    return {
        "ok": ("●", "ok", "ok"),
        "few": ("○", "few", "dim"),
        "blind": ("○", "blind", "dim"),
        "calibrating": ("◐", "calibrating", "accent"),
    }[figures.state]  # type: ignore[return-value]


def _held(facts: RowFacts) -> tuple[str, str, Role] | None:
    """The workload is in the vanilla lane, or tier 2 has turned speculation off for it."""
    workload = facts.workload
    if workload is None or (workload.lane != "vanilla" and not workload.fallback):
        return None
    if workload.lane == "vanilla":
        return "⇥", "lane", "fallback"
    since = "" if workload.since is None else f" {numbers.brief(facts.now - workload.since)}"
    return "◆", f"fallback{since}", "fallback"


def make_columns(max_k: int, several_versions: bool) -> list[Column]:
    """The columns from left to right, for draft lengths up to `max_k`."""
    positions = max(2, min(max_k, 8) + 1)
    columns = [
        Column("workload", "workload", 0, 12, 16, 40, _workload, numeric=False),
        Column("context", "context", 1, 10, 10, 10, _context, numeric=False),
        Column("temp", "temp", 4, 7, 7, 7, _temperature, numeric=False),
        Column("alpha", "α", 0, 4, 4, 4, _alpha),
        Column("error", "±", 6, 4, 4, 4, _error),
        Column("length", "AL", 9, 4, 5, 5, _length),
        Column("waste", "waste", 2, 5, 5, 5, _waste),
        Column(
            "mix", "01234567+"[:positions] if max_k <= 8 else "01234567+", 10, positions, positions, positions, _mix
        ),
        Column("k", "K", 1, 2, 2, 2, _k),
        Column("speedup", "speedup", 5, 7, 12, 12, _speedup),
        Column("rate", "tok/s", 3, 6, 7, 7, _rate),
        Column("n", "n", 7, 5, 5, 5, _n),
        Column("spark", "15 min", 8, 8, 12, 30, _spark, numeric=False),
        Column("window", "window", LUXURY, 6, 6, 6, _window),
        Column("version", "version", 5, 8, 12, 40, _version, numeric=False),
        Column("state", "state", 2, 11, 12, 14, _state, numeric=False),
    ]
    return columns if several_versions else [column for column in columns if column.id != "version"]


LUXURY: Final = 20
"""A column of this rank is shown only where all the others have the width they want."""

LEAD: Final = 3
"""Cells before the first column: the cursor, the state's glyph, a blank."""


def fit_columns(columns: Sequence[Column], width: int) -> Layout:
    """Choose the columns that fit into `width` cells beside the lead, and their widths."""
    kept = [column for column in columns if column.rank < LUXURY]
    while len(kept) > 1 and _taken([column.least for column in kept]) > width:
        kept.remove(max(kept, key=lambda column: column.rank))
    if _taken([column.wanted for column in columns]) <= width:
        kept = list(columns)
    widths = {column.id: column.least for column in kept}
    for goal in ("wanted", "most"):
        for column in sorted(kept, key=lambda column: column.rank):
            room = width - _taken(list(widths.values()))
            widths[column.id] += max(0, min(getattr(column, goal) - widths[column.id], room))
    return [(column, widths[column.id]) for column in kept]


def header(layout: Layout, sorted_by: str) -> Line:
    """The header row; the column that was sorted by is marked."""
    cells: list[Line] = [((" " * (LEAD - 1), "text"),)]
    for column, width in layout:
        title, role = column.title, "dim"
        if column.id == sorted_by:
            title, role = f"{title}▾", "accent"
        elif column.id == "spark":
            title = "last 15 min" if width >= 11 else title
        elif column.id == "speedup" and width >= 12:
            title = "speedup   ±"
        cells.append((((right if column.numeric else left)(title, width), "accent" if role == "accent" else "dim"),))
    return _spaced(cells)


def row(facts: RowFacts, layout: Layout, selected: bool) -> Line:
    """The text of one bucket."""
    glyph, _, role = state_of(facts)
    cells: list[Line] = [(("=" if facts.marked else "▸" if selected else " ", "key"), (glyph, role))]
    cells += [column.cell(facts, width) for column, width in layout]
    if selected:
        cells[1] = tuple((text, "bright") for text, _ in cells[1])
    line = _spaced(cells)
    return tuple((text, _dimmed(span_role)) for text, span_role in line) if facts.is_idle else line


def column_at(layout: Layout, x: int) -> Column | None:
    """The column under a cell of the header, for the mouse."""
    edge = LEAD
    for column, width in layout:
        if edge <= x <= edge + width:
            return column
        edge += width + 1
    return None


SORTS: Final[dict[str, Callable[[RowFacts], tuple[float | str, ...]]]] = {
    "rate": lambda facts: (-(facts.bucket.figures.tokens_per_second or 0.0),),
    "alpha": lambda facts: (_last(facts.bucket.figures.alpha),),
    "waste": lambda facts: (
        -(facts.bucket.figures.waste_ratio if facts.bucket.figures.waste_ratio is not None else -1.0),
    ),
    "speedup": lambda facts: (_last(facts.bucket.figures.speedup),),
    "n": lambda facts: (-(facts.bucket.figures.sequences or 0),),
    "workload": lambda facts: tuple(part or "" for part in key_parts(facts.bucket.key)),
}
"""What `s` goes through: busiest first, then what does worst first."""


def key_parts(key: BucketKey) -> tuple[str | None, str | None, str | None, str | None]:
    return key.workload, key.context, key.temperature, key.model_version


def bucket_name(key: BucketKey | None) -> str:
    """A bucket in one phrase, made safe to print."""
    if key is None:
        return "all buckets"
    temperature = f"temp {numbers.temperature(key.temperature)}" if key.temperature else ""
    parts = [key.workload or "all", key.context or "", temperature]
    return clean(" ".join(part for part in parts if part))


def slower(figures: Figures) -> bool:
    """Speculation makes it slower, and that is no noise: the interval of the realised speedup ends below 1."""
    return figures.speedup_high is not None and figures.speedup_high < 1 and figures.speedup_state == "ok"


def main_k(bucket: BucketView) -> int | None:
    """The draft length that most decode rows were asked for."""
    return max(range(len(bucket.k_mix)), key=lambda k: bucket.k_mix[k]) if any(bucket.k_mix) else None


def _last(value: float | None) -> float:
    return float("inf") if value is None else value


def _taken(widths: Sequence[int]) -> int:
    return LEAD + sum(widths) + len(widths) - 1


def _spaced(cells: Sequence[Line]) -> Line:
    spans: list[Span] = []
    for index, cell in enumerate(cells):
        if index:
            spans.append((" ", "text"))
        spans.extend(cell)
    return tuple(spans)


def _dimmed(role: Role) -> Role:
    return role if role in ("key", "warn", "critical") else "dim"


def _workload(facts: RowFacts, width: int) -> Line:
    return ((left(clean(facts.bucket.key.workload or "all"), width), "text"),)


def _context(facts: RowFacts, width: int) -> Line:
    return ((left(clean(facts.bucket.key.context or "all"), width), "dim"),)


def _temperature(facts: RowFacts, width: int) -> Line:
    return ((left(clean(numbers.temperature(facts.bucket.key.temperature)), width), "dim"),)


def _alpha(facts: RowFacts, width: int) -> Line:
    figures = facts.bucket.figures
    return (
        (
            right(numbers.fraction(figures.alpha), width),
            "bright" if figures.alpha is not None and not figures.few else "dim",
        ),
    )


def _error(facts: RowFacts, width: int) -> Line:
    figures = facts.bucket.figures
    return ((right(numbers.half_width(figures.alpha_low, figures.alpha_high), width), "dim"),)


def _length(facts: RowFacts, width: int) -> Line:
    return ((right(numbers.two_places(facts.bucket.figures.mean_acceptance_length), width), "text"),)


def _waste(facts: RowFacts, width: int) -> Line:
    return ((right(numbers.fraction(facts.bucket.figures.waste_ratio), width), "text"),)


def _mix(facts: RowFacts, width: int) -> Line:
    shares = list(facts.bucket.k_mix[:width])
    if len(facts.bucket.k_mix) > width:
        shares[-1] += sum(facts.bucket.k_mix[width:])
    return ((left(charts.bars(shares), width), "k"),)


def _k(facts: RowFacts, width: int) -> Line:
    k = main_k(facts.bucket)
    return ((right(numbers.ABSENT if k is None else str(k), width), "text"),)


def _speedup(facts: RowFacts, width: int) -> Line:
    figures = facts.bucket.figures
    if figures.speedup is None:
        calibrating = figures.speedup_state == "calibrating" and width >= 12
        return ((right("calibrating" if calibrating else numbers.ABSENT, width), "dim"),)
    value = f"{figures.speedup:.2f}"
    role: Role = "warn" if slower(figures) else "text" if figures.speedup_state == "ok" else "dim"
    if width < 12:
        return ((right(value, width), role),)
    error = numbers.half_width(figures.speedup_low, figures.speedup_high)
    return ((right(value, 7), role), (right(error, width - 7), "dim"))


def _rate(facts: RowFacts, width: int) -> Line:
    rate = facts.bucket.figures.tokens_per_second
    return ((right(numbers.rate(rate), width), "text" if rate else "dim"),)


def _n(facts: RowFacts, width: int) -> Line:
    return ((right(numbers.count(facts.bucket.figures.sequences), width), "dim"),)


def _spark(facts: RowFacts, width: int) -> Line:
    return ((charts.spark(facts.bucket.spark, width), "alpha"),)


def _window(facts: RowFacts, width: int) -> Line:
    return ((right(clean(facts.bucket.window_label), width), "dim"),)


def _version(facts: RowFacts, width: int) -> Line:
    version = clean(facts.version or facts.bucket.key.model_version or "all")
    return ((left(version if len(version) <= width else "…" + version[-(width - 1) :], width), "dim"),)


def _state(facts: RowFacts, width: int) -> Line:
    _, word, role = state_of(facts)
    if len(word) > width:
        word = word.split()[0]
    return ((left(word, width), "dim" if role == "ok" else role),)
