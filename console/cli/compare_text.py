"""A comparison as text: what differs in configuration, then three lines a bucket. Nothing is computed here."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Final

from console.cli.figures_text import NONE, k_mix, printable, rate
from console.cli.windows import written
from store.comparing.comparison import BucketComparison, Comparison, Differing, SideSummary
from store.comparing.difference import Difference, Estimate
from store.figures import Figures

WIDTH: Final = 80
_MANY: Final = 20
"""From so many buckets on it is said that some marks are chance."""
_HEADER: Final = ("", "α", "α at depth", "speedup", "tok/s", "waste", "K", "seqs")
_WIDTHS: Final = (8, 13, 15, 13, 8, 7, 9, 7)


def as_table(found: Comparison) -> str:
    buckets = [*found.buckets, *([found.total] if found.total is not None and len(found.buckets) != 1 else [])]
    lines = [_side("A", found.a), _side("B", found.b), *found.notes, "", *_configuration(found.configuration)]
    if not buckets:
        return "\n".join(lines)
    lines += ["", _line(_HEADER)]
    for bucket in buckets:
        pooled = bucket is found.total
        lines += ["", *_name("all" if pooled else _key(bucket, found.by), bucket), *_bucket(bucket)]
    return "\n".join([*lines, "", *_legend(found)])


def _side(letter: str, side: SideSummary) -> str:
    name = f"{letter}  {printable(side.source, WIDTH - 4)}:"
    if side.window is None:
        return f"{name} nothing"
    losses = [
        f"{count} {what}"
        for count, what in (
            (side.gaps, "gaps"), (side.frames_lost, "frames lost"), (side.quarantined, "rows quarantined"),
        )
        if count
    ]  # fmt: skip
    seconds = f"{side.window.end - side.window.start:.0f} s"
    text = ", ".join([written((side.window.start, side.window.end)), seconds, *losses])
    return f"{name} {text}" if len(name) + len(text) < WIDTH else f"{name}\n   {text}"


def _configuration(differing: list[Differing]) -> Iterator[str]:
    if not differing:
        yield "The configuration was the same."
        return
    yield "What differs in configuration:"
    for one in differing:
        yield f"  {printable(one.name, 60)}{f' of {printable(one.engine)}' if one.engine else ''}"
        for letter, values in (("A", one.a), ("B", one.b)):
            shown = " → ".join(printable(value, 300) for value in values) or NONE
            yield textwrap.fill(shown, WIDTH, initial_indent=f"    {letter} ", subsequent_indent="      ")


def _key(bucket: BucketComparison, keys: list[str]) -> str:
    values = [printable(getattr(bucket, key) or "all", 60 if key == "model_version" else 24) for key in keys]
    return "  ".join(values) or "all"


def _name(key: str, bucket: BucketComparison) -> list[str]:
    remarks = []
    if bucket.a is None or bucket.b is None:
        remarks.append(f"only in {'A' if bucket.b is None else 'B'}")
    elif bucket.k_differs:
        remarks.append("K differed: α is not comparable" + (", at depth is" if bucket.at_depth is not None else ""))
    if bucket.few:
        remarks.append("few")
    line = f"{key}{': ' if remarks else ''}{', '.join(remarks)}"
    return [line] if len(line) <= WIDTH else [key, f"  {', '.join(remarks)}"]


def _bucket(bucket: BucketComparison) -> Iterator[str]:
    deep = bucket.at_depth
    acceptance = deep.acceptance if deep is not None else None
    for letter, figures in (("A", bucket.a), ("B", bucket.b)):
        if figures is not None:
            depth = None if acceptance is None else acceptance.a if letter == "A" else acceptance.b
            yield _line(_figures(letter, figures, depth, deep.depth if deep is not None else None))
    if bucket.a is not None and bucket.b is not None:
        told = "acceptance" in bucket.tells
        yield _line(
            (
                "B − A",
                _difference(bucket.alpha, told and not bucket.k_differs),
                _difference(acceptance, told and bucket.k_differs),
                _difference(bucket.speedup, "speedup" in bucket.tells),
                _signed(bucket.tokens_per_second, 1),
                _signed(bucket.waste_ratio, 2),
            )
        )


def _figures(letter: str, figures: Figures, deep: Estimate | None, depth: int | None) -> tuple[str, ...]:
    at = "" if deep is None else f" @{depth}"
    return (
        letter,
        _estimate(_of(figures.alpha, figures.alpha_low, figures.alpha_high)),
        _estimate(deep) + at,
        _estimate(_of(figures.speedup, figures.speedup_low, figures.speedup_high)),
        NONE if figures.tokens_per_second is None else f"{figures.tokens_per_second:.1f}",
        rate(figures.waste_ratio),
        k_mix(figures.k_histogram),
        NONE if figures.sequences is None else str(figures.sequences),
    )


def _of(value: float | None, low: float | None, high: float | None) -> Estimate | None:
    return None if value is None else Estimate(value, low, high)


def _estimate(one: Estimate | None) -> str:
    return NONE if one is None else rate(one.value) + _half(one.low, one.high)


def _difference(one: Difference | None, told: bool) -> str:
    return NONE if one is None else f"{_signed(one.difference, 2)}{_half(one.low, one.high)}{'*' if told else ''}"


def _half(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" ±{(high - low) / 2:.2f}"


def _signed(value: float | None, digits: int) -> str:
    return NONE if value is None else f"{value:+.{digits}f}".replace("-", "−")


def _line(cells: tuple[str, ...]) -> str:
    first, *rest = cells
    shown = [f"  {first}".ljust(_WIDTHS[0]), *map(str.rjust, rest, _WIDTHS[1:])]
    return "".join(shown).rstrip()


def _legend(found: Comparison) -> Iterator[str]:
    yield "± 95 %, by sequence; the speedup by blocks of time. tok/s and waste have none."
    yield "* the interval of the difference leaves out 0."
    yield "α at depth m: what K = m would have shown, without probes and post-resume steps."
    yield "few: below 10 sequences or 30 draft steps on a side."
    if found.total is not None and len(found.buckets) != 1:
        yield "all: moves with the traffic mix, too."
    compared = sum(one.a is not None and one.b is not None for one in found.buckets)
    if compared >= _MANY:
        yield f"If none of {compared} buckets had changed, about {compared / 20:.0f} would carry a * by chance."
