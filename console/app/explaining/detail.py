"""What the Bucket screen shows beside its series: S(K) and measurement, levels, worst sequences, one moment. Pure."""

from __future__ import annotations

from math import nextafter
from typing import Final

from console.app.bucket.facts import BucketFacts
from console.app.drawing import numbers
from console.app.explaining.acceptance import interval_words
from console.app.explaining.record import LATE, Record, window_words
from console.app.explaining.section import Block, Fact, Section, Text
from console.app.explaining.speed import ratio_words
from console.feed.bucket_detail import BucketDetail, Level, MeasuredK
from store.figure_sql import acceptance, sequences, work
from store.figure_sql.scope import Scope
from store.figures import SeriesPoint, Window

_STATES: Final = {"few": "few", "calibrating": "vanilla times not measured yet", "absent": "no rows"}


def moment(facts: BucketFacts, record: Record) -> Section:
    """The cell of the series that is read out."""
    point = facts.point
    if point is None:
        return Section("The moment", numbers.ABSENT, [Fact("absent", facts.trouble or "no series yet", "warn")], "dim")
    start, end = point.ts - facts.cell, min(nextafter(point.ts, 0.0), record.now)  # what ends with it is in the next
    blocks: list[Block] = [
        Text(
            "One cell of the series, which the cursor ← → moves. α, waste, K and speedups as below, of its rows alone."
        ),
        Fact("cell", window_words(Window(start, end))),
        Fact("α", f"{_alpha(point)}  interval {interval_words(point.alpha_low, point.alpha_high)}"),
        Fact("waste", numbers.fraction(point.waste)),
        Fact("K executed", f"{numbers.two_places(point.executed_k)}  = mean of k_asked over its decode rows"),
        Fact("running", f"{numbers.two_places(point.running)}  = mean over the engine's steps"),
        Fact("tokens/s", numbers.rate(point.tokens_per_second)),
        Fact(
            "experienced", f"{numbers.two_places(point.speedup)}  {ratio_words(point.speedup_low, point.speedup_high)}"
        ),
        Fact("marginal", f"{numbers.two_places(point.marginal)}  as the controller last worked it out in the cell"),
    ]
    scope = record.scope(facts.key, Window(start, end))
    return Section("The moment", numbers.clock(point.ts), [*blocks, record.query(acceptance.rates(scope), LATE)])


def detail_sections(facts: BucketFacts, record: Record) -> list[Section]:
    """Without an answer of the station one section that says why."""
    detail = facts.detail
    if detail is None:
        return [Section("By K, worst sequences", numbers.ABSENT, [Fact("absent", facts.why(""), "warn")], "dim")]
    scope = None
    if detail.since is not None and detail.until is not None:
        scope = Scope(key=detail.key, start=detail.since, end=detail.until)
    return [
        _theory(detail, record, scope),
        _measured(detail, record, scope),
        _level(detail.level, detail.absent.get("level", "")),
        _worst(detail, record, scope),
    ]


def _theory(detail: BucketDetail, record: Record, scope: Scope | None) -> Section:
    blocks: list[Block] = [
        Text(
            "S(a, K, c) = (1 − a^(K+1)) / ((1 − a)(K c + 1)), Leviathan et al., a conditional acceptance, c the time "
            "of a draft pass over that of a target pass. It assumes that verifying K + 1 tokens costs what one costs, "
            "which fails at a large batch: theory, drawn beside what was measured, never instead."
        ),
        Fact("a", f"{numbers.fraction(detail.acceptance)}  conditional acceptance of the rows looked at"),
        Fact("c", f"{numbers.fraction(detail.cost)}  measured, at this batch"),
        Fact("batch", f"{numbers.two_places(detail.batch)}  mean decode rows of a step"),
        *(Fact(f"S({k})", f"{value:.3f}") for k, value in enumerate(detail.theory)),
    ]
    if not detail.theory:
        blocks.append(Fact("absent", detail.absent.get("cost", "not known"), "warn"))
    if scope is not None:
        blocks.append(record.query(acceptance.rates(scope), "It gives a as conditional_acceptance; c is in no table: "
                                   "it is fitted from step times."))  # fmt: skip
    return Section("S(K), theory", "", blocks)


def _measured(detail: BucketDetail, record: Record, scope: Scope | None) -> Section:
    blocks: list[Block] = [
        Text("Realised speedup, experienced, of the rows that were asked for each K lately. K and load move together: "
             "read the batch beside it."),
        *(Fact(f"K {one.k}", _one_k(one)) for one in detail.measured),
    ]  # fmt: skip
    if not detail.measured:
        blocks.append(Fact("absent", detail.absent.get("measured", "no rows"), "warn"))
    if scope is not None:
        blocks.append(
            record.query(work.by_k(scope), "It gives rows, batch, tokens and seconds taken; v as under speedup.")
        )
    return Section("Measured by K", "", blocks)


def _one_k(one: MeasuredK) -> str:
    value = numbers.ABSENT if one.speedup is None else f"{one.speedup:.3f}× {ratio_words(one.low, one.high)}"
    state = f", {_STATES[one.state]}" if one.state in _STATES else ""
    return f"{value}, {one.rows:,} rows at batch {one.batch:.1f}{state}"


def _level(level: Level | None, why: str) -> Section:
    blocks: list[Block] = [
        Text(
            "What the judge holds acceptance against, at a depth m that both sides know: mean over draft steps with m "
            "or more drafted of min(accepted, m)/m, so that another K is no fall. Moving: the last 7 days without the "
            "present window, frozen while an alert fires. Pinned: the first week of a version, or what the "
            "operator accepted."
        )
    ]
    if level is None:
        blocks.append(Fact("absent", why or "not known", "warn"))
        return Section("Baseline", numbers.ABSENT, blocks, "dim")
    blocks += [
        Fact("depth", str(level.depth)),
        Fact("moving, 7 d", f"{numbers.fraction(level.baseline)}  n {numbers.count(level.baseline_sequences)}"),
        Fact("pinned", f"{numbers.fraction(level.pinned)}  n {numbers.count(level.pinned_sequences)}"),
        Text(
            "Both are kept as sums over sequences by the judge, opaque to SQL: seven days of sequences can't be kept."
        ),
    ]
    return Section("Baseline", numbers.fraction(level.baseline), blocks)


def _worst(detail: BucketDetail, record: Record, scope: Scope | None) -> Section:
    blocks: list[Block] = [
        Text("Of the sequences with 8 draft steps or more in the last quarter of an hour the five of lowest mean "
             "accepted / drafted. What the field's averages hide."),
        *(Fact(numbers.fraction(one.alpha), f"{one.name}: {one.accepted:,} of {one.drafted:,} drafted, {one.steps:,} "
               "draft steps") for one in detail.worst),
    ]  # fmt: skip
    if not detail.worst:
        blocks.append(Fact("absent", detail.absent.get("worst", "none"), "warn"))
    if scope is not None:
        blocks.append(record.query(sequences.worst(scope)))
    return Section("Worst sequences", "", blocks)


def _alpha(point: SeriesPoint) -> str:
    return numbers.ABSENT if point.alpha is None else f"{point.alpha:.3f}"
