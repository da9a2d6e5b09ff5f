"""A comparison as a page: what it comes to, both sides' figures with the difference, what was set otherwise. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from console.app.compare.asking import Answer, Pair
from console.app.compare.questions import Half, Question
from console.app.drawing import numbers
from console.app.drawing.spans import EMPTY, Line, Role, clean, left, paragraph, right, wrap
from console.app.live.columns import bucket_name

if TYPE_CHECKING:
    from store.comparing.comparison import AtDepth, BucketComparison
    from store.comparing.difference import Difference, Estimate
    from store.figures import Figures

_LABEL: Final = 18
_CELL: Final = 15

_TWO_LIMITS: Final = (
    "± 95 %, by sequence; the speedup by blocks of steps. * the interval of the difference leaves out 0. Acceptance at"
    " depth m: what K = m would have shown, over the steps that drafted m or more; no probes, no post-resume steps."
)


def comparison_lines(question: Question, answer: Answer, width: int) -> list[Line]:
    lines = [*_halves(question, width), EMPTY]
    if not answer.pairs:
        return [*lines, *paragraph("There is no other model version of this bucket in the last 7 days.", width, "text")]
    for pair in answer.pairs:
        if pair.other:
            lines += [*paragraph(f"A is {pair.other}", width, "bright"), EMPTY]
        lines += [*_pair(pair, width), EMPTY]
    if answer.configuration:
        lines.append((("Set otherwise", "title"),))
        for one in answer.configuration:
            name = f"{clean(one.name)}{f' of {clean(one.engine)}' if one.engine else ''}"
            for letter, values in (("A", one.a), ("B", one.b)):
                shown = " → ".join(clean(value) for value in values) or numbers.ABSENT
                lines += _labelled(f"{name} {letter}" if letter == "A" else letter, shown, width)
        lines.append(EMPTY)
    elif question.kind == "past" and all(
        pair.found.a is not None and pair.found.b is not None for pair in answer.pairs
    ):
        lines += [(("Nothing was set otherwise.", "dim"),), EMPTY]
    for note in (*answer.notes, question.note, _TWO_LIMITS):
        lines += paragraph(note, width) if note else []
    return lines


def asking_lines(question: Question, seconds: float, width: int) -> list[Line]:
    """`seconds`: how long it has been asked for."""
    waits = f"◐ asking: {numbers.duration(seconds)}. Long stretches of many buckets take some seconds; esc leaves."
    return [*_halves(question, width), EMPTY, *paragraph(waits, width, "dim")]


def refused_lines(question: Question, message: str, width: int) -> list[Line]:
    return [*_halves(question, width), EMPTY, *paragraph(f"■ {message}", width, "critical")]


def _halves(question: Question, width: int) -> list[Line]:
    other, now = "other versions, " if question.kind == "versions" else "", question.b.end
    return [*_half("A", question.a, now, width, other), *_half("B", question.b, now, width)]


def _half(letter: str, half: Half, now: float, width: int, other: str = "") -> list[Line]:
    stretch = f"{_moment(half.start, now)} – {_moment(half.end, now)}"
    name = f"{other}{bucket_name(half.key)}"
    if len(name) + len(half.words) + len(stretch) + 7 <= width:
        return [((f"{letter}  ", "key"), (name, "bright"), (f"  {half.words}", "text"), (f"  {stretch}", "dim"))]
    return [
        ((f"{letter}  ", "key"), (left(name, max(8, width - 3)).rstrip(), "bright")),
        (("   ", "text"), (half.words, "text"), (f"  {stretch}", "dim")),
    ]


def _moment(ts: float, now: float) -> str:
    """The time of day; of another day with the date."""
    return numbers.clock(ts) if numbers.day(ts) == numbers.day(now) else f"{numbers.day(ts)} {numbers.minutes(ts)}"


def _pair(pair: Pair, width: int) -> list[Line]:
    found = pair.found
    lines: list[Line] = []
    for text, role in verdict(found):
        lines += paragraph(text, width, role)
    lines += [EMPTY, _row("", ("A", "B"), "B − A", "dim")]
    return [*lines, *_rows(found, pair.depths)]


def verdict(found: BucketComparison) -> list[tuple[str, Role]]:
    """What the intervals tell apart, in sentences; and what they can't be asked."""
    if found.a is None or found.b is None:
        sides = [letter for letter, side in (("A", found.a), ("B", found.b)) if side is None]
        return [(f"Nothing of it was recorded in {' and '.join(sides)}: there is nothing to compare.", "warn")]
    said: list[tuple[str, Role]] = []
    if found.k_differs:
        said.append((_across_k(found), "warn"))
    acceptance = found.at_depth.acceptance if found.k_differs and found.at_depth is not None else found.alpha
    if "acceptance" in found.tells and acceptance is not None:
        where = f" at depth {found.at_depth.depth}" if found.k_differs and found.at_depth is not None else ""
        said.append((_apart(f"Acceptance{where}", acceptance, 100, " points"), "bright"))
    if "speedup" in found.tells and found.speedup is not None:
        said.append((_apart("The speedup", found.speedup, 1, ""), "bright"))
    if not found.tells:
        said.append(("The intervals tell neither acceptance nor speedup apart.", "text"))
    if found.few:
        said.append(("Few: under 10 sequences or 30 draft steps on a side, or too few steps for the speedup.", "warn"))
    return said


def _across_k(found: BucketComparison) -> str:
    start = "The sides verified drafts of other lengths: α falls with K alone and is not compared."
    if found.at_depth is None:
        return f"{start} They have no depth in common, either."
    return f"{start} Acceptance at depth {found.at_depth.depth}, which both reached, is."


def _apart(what: str, one: Difference, times: float, unit: str) -> str:
    digits = 1 if times == 100 else 2
    amount = f"{abs(one.difference) * times:.{digits}f}{unit}"
    side = "higher" if one.difference > 0 else "lower"
    bounds = ""
    if one.low is not None and one.high is not None:
        near, far = sorted((abs(one.low), abs(one.high)))
        bounds = f" (95 %: {near * times:.{digits}f} to {far * times:.{digits}f})"
    return f"{what} is {amount} {side} in B{bounds}."


def _rows(found: BucketComparison, depths: Sequence[AtDepth]) -> Iterator[Line]:
    told = "acceptance" in found.tells
    alpha: tuple[str, Role] = ("K differed", "warn") if found.k_differs else _difference(found.alpha, told)
    yield _row("acceptance α", _both(found, _alpha), *alpha)
    for deep in depths:
        judged = found.k_differs and found.at_depth is not None and deep.depth == found.at_depth.depth
        sides = _estimate(deep.acceptance.a), _estimate(deep.acceptance.b)
        few = ", few" if deep.few else ""
        yield _row(f"  at depth {deep.depth}{few}", sides, *_difference(deep.acceptance, told and judged))
    yield _row("speedup", _both(found, _speedup), *_difference(found.speedup, "speedup" in found.tells))
    yield _row("waste", _both(found, lambda side: numbers.fraction(side.waste_ratio)), _signed(found.waste_ratio, 2))
    rates = _both(found, lambda side: numbers.rate(side.tokens_per_second))
    yield _row("tokens/s", rates, _signed(found.tokens_per_second, 1))
    yield _row("n sequences", _both(found, lambda side: _count(side.sequences)))
    yield _row("draft steps", _both(found, lambda side: _count(side.steps)))
    yield _row("rows at each K", _both(found, lambda side: _mix(side.k_histogram)))


def _both(found: BucketComparison, shown: Callable[[Figures], str]) -> tuple[str, str]:
    a, b = (numbers.ABSENT if side is None else shown(side) for side in (found.a, found.b))
    return a, b


def _row(label: str, sides: tuple[str, str], difference: str = "", role: Role = "text") -> Line:
    """`role`: of the difference."""
    of_sides: Role = "text" if label else "dim"
    return (
        (left(label, _LABEL), "dim"), (right(sides[0], _CELL), of_sides), (right(sides[1], _CELL), of_sides),
        (right(difference, _CELL + 2), role),
    )  # fmt: skip


def _alpha(side: Figures) -> str:
    return _with_half(side.alpha, side.alpha_low, side.alpha_high)


def _speedup(side: Figures) -> str:
    if side.speedup is None:
        return "calibrating" if side.speedup_state == "calibrating" else numbers.ABSENT
    return _with_half(side.speedup, side.speedup_low, side.speedup_high, two=True)


def _estimate(one: Estimate) -> str:
    return _with_half(one.value, one.low, one.high)


def _with_half(value: float | None, low: float | None, high: float | None, *, two: bool = False) -> str:
    half = numbers.half_width(low, high)
    shown = numbers.two_places(value) if two else numbers.fraction(value)
    return f"{shown} ±{half}" if half and value is not None else shown


def _difference(one: Difference | None, told: bool) -> tuple[str, Role]:
    if one is None:
        return numbers.ABSENT, "dim"
    half = numbers.half_width(one.low, one.high)
    return f"{_signed(one.difference, 2)}{f' ±{half}' if half else ''}{' *' if told else ''}", (
        "bright" if told else "text"
    )


def _signed(value: float | None, digits: int) -> str:
    """With its sign; in two digits, as `numbers.fraction`, without a leading zero."""
    if value is None:
        return numbers.ABSENT
    size = f"{abs(value):.{digits}f}"
    return f"{'−' if value < 0 else '+'}{size.removeprefix('0') if digits == 2 else size}"


def _count(value: int | None) -> str:
    return numbers.ABSENT if value is None else f"{value:,}"


def _mix(histogram: Mapping[str, int]) -> str:
    """The draft lengths that were asked for most, as `4 82% 2 18%`."""
    rows = sum(histogram.values())
    most = sorted(histogram.items(), key=lambda item: -item[1])[:2]
    return " ".join(f"{k} {count / rows:.0%}" for k, count in most if count) if rows else numbers.ABSENT


def _labelled(label: str, text: str, width: int) -> list[Line]:
    parts = wrap(text, max(20, width - 26)) or [numbers.ABSENT]
    return [((left(f"  {label}" if row == 0 else "", 26), "dim"), (part, "text")) for row, part in enumerate(parts)]
