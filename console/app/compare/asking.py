"""Asks the station for the sides of a comparison, and holds them together as `specdeck compare` does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from console.app.compare.questions import Question
from console.feed.client import Feed
from console.feed.protocol import SideParams
from store.comparing.sides import Measured, Side

if TYPE_CHECKING:
    from store.comparing.comparison import AtDepth, BucketComparison, Differing
    from store.figures import BucketKey

ANSWER_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Pair:
    """`depths`: acceptance at every depth that both sides know. `other`: the model version that A is, where B is
    held against several."""

    found: BucketComparison
    depths: list[AtDepth]
    other: str = ""


@dataclass(frozen=True)
class Answer:
    pairs: list[Pair]
    """None of them: there is no other version."""
    configuration: list[Differing] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


async def ask(feed: Feed, question: Question) -> Answer:
    """Raises FeedError."""
    b = await _side(feed, question, question.b.start, question.b.end)
    if question.kind == "versions":
        return _versions(question, b)
    if question.kind == "buckets":
        return _buckets(question, b)
    return _past(question, await _side(feed, question, question.a.start, question.a.end), b)


async def _side(feed: Feed, question: Question, start: float, end: float) -> Side:
    params = SideParams(by=list(question.by), start=start, end=end)
    return await feed.request("side", params, Side, ANSWER_SECONDS)


def _past(question: Question, a: Side, b: Side) -> Answer:
    from store.comparing.compare import compare

    whole = compare(a, b)
    key, by = question.b.key, question.by
    pair = _pair(key, by, _measured(a, key, by), _measured(b, key, by))
    notes = [*whole.notes, *(note for side in (a, b) for note in _losses(side))]
    return Answer([pair], whole.configuration, notes)


def _buckets(question: Question, side: Side) -> Answer:
    """Both in one stretch of the same engines: what can differ is what holds for their workloads, and the version."""
    a, b = (_measured(side, half.key, question.by) for half in (question.a, question.b))
    pair = _pair(question.b.key, question.by, a, b)
    return Answer([pair], _workload_settings(question, side), _losses(side))


def _versions(question: Question, side: Side) -> Answer:
    key, by = question.b.key, question.by
    mine = _measured(side, key, by)
    others = [one for one in side.buckets if one is not mine and _matches(one, key, by, but="model_version")]
    others.sort(key=lambda one: -(one.figures.window.end if one.figures.window is not None else 0.0))
    pairs = [_pair(key, by, other, mine, other.figures.model_version or "unknown") for other in others]
    return Answer(pairs, notes=_losses(side))


def _pair(key: BucketKey, by: tuple[str, ...], a: Measured | None, b: Measured | None, other: str = "") -> Pair:
    from store.comparing.compare import at_each_depth, hold

    depths = at_each_depth(a.depths, b.depths) if a is not None and b is not None else []
    return Pair(hold(_name(key, by), a, b), depths, other)


def _workload_settings(question: Question, side: Side) -> list[Differing]:
    from store.comparing.comparison import Differing
    from store.comparing.sides import untouched

    a, b = question.a.key, question.b.key
    found = []
    if a.model_version != b.model_version:
        found.append(Differing(engine=None, name="model version", a=[a.model_version or ""], b=[b.model_version or ""]))
    known = {setting.name: setting.values for setting in side.settings if setting.engine is None}
    for name in ("lane", "K", "fallback"):
        values = [known.get(f"{name} of {key.workload}", [untouched(name)]) for key in (a, b)]
        if values[0] != values[1]:
            found.append(Differing(engine=None, name=name, a=values[0], b=values[1]))
    return found


def _measured(side: Side, key: BucketKey, by: tuple[str, ...]) -> Measured | None:
    return next((one for one in side.buckets if _matches(one, key, by)), None)


def _matches(one: Measured, key: BucketKey, by: tuple[str, ...], but: str = "") -> bool:
    return all(getattr(one.figures, name) == getattr(key, name) for name in by if name != but)


def _name(key: BucketKey, by: tuple[str, ...]) -> tuple[str | None, ...]:
    parts = ("workload", "context", "temperature", "model_version")
    return (*(getattr(key, name) if name in by else None for name in parts), None)


def _losses(side: Side) -> list[str]:
    losses = [
        f"{count:,} {what}"
        for count, what in (
            (side.gaps, "gaps"), (side.frames_lost, "frames lost"), (side.quarantined, "rows quarantined"),
        )
        if count
    ]  # fmt: skip
    return [f"of all buckets in that stretch: {', '.join(losses)}"] if losses else []
