"""What another policy would have done beside what was recorded: of all, by bucket, and what is assumed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from console.app.drawing import numbers
from console.app.drawing.spans import EMPTY, Line, Role, Span, clean, cut, left, right, wrap
from engine.records import PolicyMode
from store.whatif.figures import Predicted, Recorded, WhatIf, WhatIfBucket

NAME: Final = 13
"""Cells of a policy's name, so that the whole table fits 80 columns."""

EXPLAINED: Final = (
    "Tokens/step: what a step commits. Bounds: every token that the record does not know taken as wrong, and as right."
    " Naive: recorded steps cut to the policy's K, which is exact only where a recorded step starts."
    " Exact: predicted steps that hang on no unknown token."
)

_COLUMNS: Final = (("", 7), ("bounds", 11), ("naive", 7), ("exact", 7), ("tok/s", 8), ("bounds", 11), ("change", 7))


def what_if_lines(answers: Sequence[WhatIf], over: Line, width: int) -> list[Line]:
    """`over`: the stretch that was asked about, as a line."""
    if not answers:
        return [over, EMPTY, (("Nothing was asked about.", "dim"),)]
    lines: list[Line] = [over, EMPTY, *_table(answers), EMPTY]
    lines += [((part, "dim"),) for part in wrap(EXPLAINED, width)]
    lines += _seconds(answers, width)
    if answers[0].buckets:
        lines += [EMPTY, (("Tokens/step by bucket", "bright"),), *_buckets(answers, width)]
    notes = list(dict.fromkeys(note for answer in answers for note in answer.notes))
    if notes:
        lines += [EMPTY, (("What this takes for granted", "bright"),)]
        for note in notes:
            lines += [
                ((("· " if row == 0 else "  ") + part, "dim"),) for row, part in enumerate(wrap(clean(note), width - 2))
            ]
    return [cut(line, width) for line in lines]


def _table(answers: Sequence[WhatIf]) -> list[Line]:
    titles = "".join(right(title, size) for title, size in _COLUMNS[1:])
    head: Line = ((left("policy", NAME - 1) + right("tok/step", 8) + titles, "dim"),)
    recorded = answers[0].recorded
    rows = [head, _recorded(recorded)]
    return [*rows, *(_predicted(answer.policy, answer.predicted, recorded) for answer in answers)]


def _recorded(recorded: Recorded) -> Line:
    blank = " " * (11 + 7 + 7)
    return (
        (left("recorded", NAME), "text"),
        (right(numbers.two_places(recorded.tokens_per_step), 7), "text"),
        (blank + right(numbers.rate(recorded.tokens_per_second), 8), "text"),
    )


def _predicted(policy: PolicyMode, found: Predicted, recorded: Recorded) -> Line:
    change, role = _change(found.tokens_per_second, recorded.tokens_per_second)
    exact = numbers.ABSENT if found.exact_share is None else f"{found.exact_share * 100:.0f} %"
    return (
        (left(numbers.mode(policy), NAME), "bright"),
        (right(numbers.two_places(found.tokens_per_step), 7), "bright"),
        (right(_between(found.tokens_per_step_low, found.tokens_per_step_high, 2), 11), "dim"),
        (right(numbers.two_places(found.naive_tokens_per_step), 7), "dim"),
        (right(exact, 7), "dim"),
        (right(numbers.rate(found.tokens_per_second), 8), "bright"),
        (right(_between(found.tokens_per_second_low, found.tokens_per_second_high), 11), "dim"),
        (right(change, 7), role),
    )


def _between(low: float | None, high: float | None, places: int = 0) -> str:
    return "" if low is None or high is None else f"{low:.{places}f}–{high:.{places}f}"


def _change(predicted: float | None, recorded: float | None) -> tuple[str, Role]:
    if predicted is None or not recorded:
        return "", "dim"
    change = round((predicted / recorded - 1) * 100)
    sign = "+" if change > 0 else "−" if change < 0 else ""
    return f"{sign}{abs(change)} %", "text"


def _seconds(answers: Sequence[WhatIf], width: int) -> list[Line]:
    """Why there are no tokens a second, where there are none."""
    lines: list[Line] = []
    for reason in dict.fromkeys(answer.no_seconds for answer in answers if answer.no_seconds):
        named = ", ".join(numbers.mode(answer.policy) for answer in answers if answer.no_seconds == reason)
        lines += [((part, "text"),) for part in wrap(f"no tokens/s for {named}: {clean(reason)}", width)]
    return [EMPTY, *lines] if lines else []


def _buckets(answers: Sequence[WhatIf], width: int) -> list[Line]:
    names = ["recorded", *(numbers.mode(answer.policy) for answer in answers)]
    sizes = [max(7, len(name) + 2) for name in names]
    room = max(12, width - sum(sizes))
    head = left("", room) + "".join(right(name, size) for name, size in zip(names, sizes, strict=True))
    lines: list[Line] = [((head, "dim"),)]
    for index, bucket in enumerate(answers[0].buckets):
        values: list[float | None] = [bucket.recorded.tokens_per_step]
        values += [_same(answer, bucket, index) for answer in answers]
        spans: list[Span] = [(left(_name(bucket), room), "text")]
        for place, (value, size) in enumerate(zip(values, sizes, strict=True)):
            spans.append((right(numbers.two_places(value), size), "text" if place else "dim"))
        lines.append(tuple(spans))
    return lines


def _same(answer: WhatIf, bucket: WhatIfBucket, index: int) -> float | None:
    """The figure of the same bucket in another answer, which has them in the same order unless it has others."""
    near = answer.buckets[index : index + 1]
    found = next((one for one in (*near, *answer.buckets) if _key(one) == _key(bucket)), None)
    return None if found is None else found.predicted.tokens_per_step


def _key(bucket: WhatIfBucket) -> tuple[str, ...]:
    return (bucket.engine, bucket.workload, bucket.context, bucket.temperature, bucket.model_version)


def _name(bucket: WhatIfBucket) -> str:
    return f"{clean(bucket.workload)} {bucket.context} {numbers.temperature(bucket.temperature)}"
