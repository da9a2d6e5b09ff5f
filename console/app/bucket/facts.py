"""What the Bucket screen draws from: a bucket, its series, what is known beside them, the moment looked at. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from console.app.drawing.spans import Role, clean
from console.feed.bucket_detail import BucketDetail
from console.feed.messages import AlertView, BucketView, EngineView, Event, Series
from store.figures import BucketKey, SeriesPoint


class Span(NamedTuple):
    """A window of the charts: seconds, points, and its name."""

    seconds: float
    points: int
    name: str


SPANS: Final = (Span(900.0, 30, "15 min"), Span(3600.0, 30, "1 h"), Span(21_600.0, 36, "6 h"))
"""The station holds six hours."""

GLYPHS: Final[dict[str, tuple[str, Role, str]]] = {
    "alert": ("▲", "warn", "alert"),
    "version": ("v", "accent", "version"),
    "restart": ("↻", "warn", "restart"),
    "control": ("c", "accent", "control"),
    "gap": ("░", "warn", "gap"),
}
"""By kind of mark, the one that is seen first where several meet."""


class Mark(NamedTuple):
    """`kind` as in `GLYPHS`."""

    ts: float
    kind: str
    text: str


@dataclass(frozen=True)
class BucketFacts:
    """`series` and `detail` are None until the station has answered for this bucket and window."""

    key: BucketKey
    bucket: BucketView | None
    span: Span
    series: Series | None = None
    detail: BucketDetail | None = None
    alerts: tuple[AlertView, ...] = ()
    """Of this bucket, or of a whole engine."""
    engine: EngineView | None = None
    at: float | None = None
    """The moment that is read out, Unix seconds; None for the newest."""
    trouble: str = ""
    """Why something could not be read."""

    @property
    def known(self) -> bool:
        """Whether the station has told of any moment of the range."""
        return self.series is not None and bool(self.series.points)

    @cached_property
    def points(self) -> list[SeriesPoint]:
        """Of the whole range: those before anything was recorded are empty."""
        if self.series is None or not self.series.points:
            return []
        told = self.series.points
        missing = max(0, round(self.span.seconds / self.cell) - len(told))
        before = [told[0].ts - self.cell * (missing - number) for number in range(missing)]
        return [*(SeriesPoint(ts, None, None, None, 0.0, None, None) for ts in before), *told]

    @property
    def cell(self) -> float:
        """Seconds of a point."""
        return self.series.cell_seconds if self.series is not None else self.span.seconds / self.span.points

    @property
    def start(self) -> float:
        return self.points[0].ts - self.cell if self.points else 0.0

    @property
    def end(self) -> float:
        return self.points[-1].ts if self.points else 0.0

    @property
    def index(self) -> int | None:
        """Number of the point that is read out: the newest with rows where no moment is chosen."""
        points = self.points
        if not points:
            return None
        if self.at is not None:
            return min(len(points) - 1, max(0, int((self.at - self.start) // self.cell)))
        told = (number for number in range(len(points) - 1, -1, -1) if points[number].executed_k is not None)
        return next(told, len(points) - 1)

    @property
    def point(self) -> SeriesPoint | None:
        return None if self.index is None else self.points[self.index]

    @cached_property
    def marks(self) -> list[Mark]:
        """What happened inside the range, in the order of time."""
        events = self.series.marks if self.series is not None else []
        found = [*_marks(events), *(Mark(alert.started, "alert", alert.text) for alert in self.alerts)]
        return sorted((mark for mark in found if self.start <= mark.ts <= self.end), key=lambda mark: mark.ts)

    def marks_at(self, index: int) -> list[Mark]:
        """Those in the cell of a point."""
        return [mark for mark in self.marks if self.number_of(mark.ts) == index]

    def number_of(self, ts: float) -> int:
        """Number of the point whose cell holds a moment of the range."""
        return min(len(self.points) - 1, max(0, int((ts - self.start) // self.cell)))

    @property
    def usual_depth(self) -> int | None:
        """The number of draft tokens of nearly all draft steps in the table's window: acceptance at that depth is α.
        None where it varies."""
        drafted = {} if self.bucket is None else self.bucket.figures.drafted_histogram
        rows = {int(depth): count for depth, count in drafted.items() if int(depth)}
        if not rows:
            return None
        depth = max(rows, key=lambda depth: rows[depth])
        return depth if rows[depth] >= 0.9 * sum(rows.values()) else None

    def why(self, name: str) -> str:
        """Why a figure of the detail is missing."""
        if self.detail is None:
            return self.trouble or "not answered yet"
        return self.detail.absent.get(name, "")


def _marks(events: Iterable[Event]) -> Iterable[Mark]:
    """Only what bears on a bucket: an engine's start is another version, or may be."""
    for event in events:
        if event.kind in GLYPHS:
            yield Mark(event.ts, event.kind, clean(event.text))
        elif event.kind == "engine":
            kind = "version" if "announced itself" in event.text else "restart"
            yield Mark(event.ts, kind, clean(event.text))
