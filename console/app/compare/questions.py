"""What can be compared with what: two stretches of record, of one bucket or of two. Pure. All differences are B − A."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from console.app.drawing import numbers
from console.app.live.columns import bucket_name
from console.feed.messages import BucketView
from store.figures import BucketKey
from store.window_spans import SPANS

DAY: Final = 86_400.0
BASELINE_SECONDS: Final = 7 * DAY

Kind = Literal["buckets", "past", "versions"]


@dataclass(frozen=True)
class Half:
    """A bucket over (start, end], Unix seconds. `words`: what the page calls it."""

    key: BucketKey
    start: float
    end: float
    words: str


@dataclass(frozen=True)
class Question:
    """`by`: keys that buckets are told apart by. Of `versions`, A is each other model version that there is in the
    stretch of B."""

    kind: Kind
    a: Half
    b: Half
    by: tuple[str, ...]
    what: str
    """A line of the list to choose from."""
    note: str = ""


def two_buckets(a: BucketView, b: BucketView, now: float) -> Question:
    """Over the same stretch, the longer of the windows that the two show."""
    seconds = max(window_seconds(a), window_seconds(b))
    words = f"last {span_words(seconds)}"
    return Question(
        "buckets", Half(a.key, now - seconds, now, words), Half(b.key, now - seconds, now, words),
        _keys([a.key, b.key], versions=True), f"{bucket_name(a.key)} with {bucket_name(b.key)}",
    )  # fmt: skip


def of_one(bucket: BucketView, others: Iterable[BucketKey], now: float) -> list[Question]:
    """What a bucket can be compared with besides another. `others`: of all buckets that are shown; where another
    version of it is among them, its own past is told apart from that one's."""
    key, seconds = bucket.key, window_seconds(bucket)
    span = span_words(seconds)
    keys = _keys([key], versions=any(_same_but_version(key, other) for other in others))
    present = Half(key, now - seconds, now, f"last {span}")

    def past(until: float, since: float, words: str, what: str, note: str = "") -> Question:
        return Question("past", Half(key, since, until, words), present, keys, what, note)

    found = [past(now - seconds, now - 2 * seconds, f"the {span} before", f"the {span} before")]
    if seconds < DAY:
        yesterday = f"the same {span} yesterday"
        found.append(past(now - DAY, now - DAY - seconds, yesterday, yesterday))
    found.append(
        past(
            now - seconds, now - BASELINE_SECONDS, "7 days before", "its 7-day baseline: all of the 7 days before",
            "Drift is judged by the judge's own baseline, which stands still while an alert fires.",
        )
    )  # fmt: skip
    week = Half(key, now - BASELINE_SECONDS, now, "last 7 days")
    versions = _keys([key], versions=True)
    found.append(Question("versions", week, week, versions, "every other model version of the last 7 days"))
    return found


def window_seconds(bucket: BucketView) -> float:
    """Length of the window of its figures."""
    named = next((seconds for seconds, _, label in SPANS if label == bucket.window_label), None)
    if named is not None:
        return named
    window = bucket.figures.window
    return SPANS[0][0] if window is None else max(1.0, window.end - window.start)


def span_words(seconds: float) -> str:
    return next((label for length, _, label in SPANS if length == seconds), numbers.duration(seconds))


def _same_but_version(one: BucketKey, other: BucketKey) -> bool:
    return one != other and (one.workload, one.context, one.temperature) == (
        other.workload, other.context, other.temperature,
    )  # fmt: skip


def _keys(keys: Iterable[BucketKey], *, versions: bool) -> tuple[str, ...]:
    """The parts of a bucket's key that its kind has: one that is observed has its version alone."""
    named = list(keys)
    parts = [name for name in ("workload", "context", "temperature") if any(getattr(key, name) for key in named)]
    return (*parts, "model_version") if versions or not parts else tuple(parts)
