"""The acceptance of a bucket: α and its interval, pooled and conditional, AL, waste, acceptance by position. Pure."""

from __future__ import annotations

from typing import Final

from console.app.drawing import numbers
from console.app.drawing.spans import Line, left
from console.app.explaining.record import LATE, Record, window_words
from console.app.explaining.section import Block, Drawn, Fact, Section, Text
from console.app.live.columns import bucket_name
from console.feed.messages import BucketView
from store.figure_sql import acceptance
from store.figure_sql.scope import Scope
from store.figures import Figures

NO_DRAFTS: Final = "nothing was drafted in this window, so there is nothing to divide by"
OF_ALPHA: Final = "The query under α gives it, as {column}."
FEW: Final = "under 10 sequences that drafted or 30 draft steps: not to be relied on"

_COMPLETE: Final = (
    "`complete` false: rows of the window are no longer there, so it counts less (of a station `--full` reads 48 h)."
)
_STUDENT: Final = (
    "low and high are alpha ∓ t × standard_error, t Student's at 97.5 % with n_effective − 1 degrees of freedom: 2.26 "
    "at 9, 2.05 at 28, 1.98 at 100. Cut at 0 and 1; where nothing or all was accepted the exact "
    "binomial on n_effective."
)


def alpha(bucket: BucketView, record: Record, scope: Scope | None) -> Section:
    """The headline, with everything it is counted from."""
    figures = bucket.figures
    blocks: list[Block] = [
        Text("Mean over draft steps of accepted / drafted: per step, then averaged. The bonus token does not count."),
        Fact("bucket", bucket_name(bucket.key)),
        Fact("window", window_words(figures.window, bucket.window_label)),
        Fact("n", sample_words(figures)),
        Fact("counts", counts_words(figures)),
        Fact("interval", interval_words(figures.alpha_low, figures.alpha_high, "clustered by sequence")),
        *few(figures),
    ]
    if figures.alpha is None:
        blocks.append(Fact("absent", NO_DRAFTS, "warn"))
    blocks.append(Text("α falls when K rises with nothing else changed: never compare it across K."))
    if scope is not None:
        blocks.append(record.query(acceptance.rates(scope), f"It gives the other rates too. {_COMPLETE} {LATE}"))
    return Section("Acceptance rate α", exact(figures.alpha), blocks)


def alpha_interval(figures: Figures, record: Record, scope: Scope | None) -> Section:
    half = numbers.half_width(figures.alpha_low, figures.alpha_high)
    blocks: list[Block] = [
        Text(
            "95 %. Steps of one request are alike, so the sample is of sequences: ratio estimator over n of them, var "
            "≈ n/(n−1) · Σ(x − α y)² / (Σy)², x = Σ accepted/drafted and y = draft steps of a sequence; Student's t "
            "with n_effective − 1 degrees of freedom, n_effective = (Σy)² / Σy²."
        ),
        Fact("from, to", interval_words(figures.alpha_low, figures.alpha_high)),
    ]
    if figures.alpha is None:
        blocks.append(Fact("absent", NO_DRAFTS, "warn"))
    elif figures.alpha_low is None:
        blocks.append(Fact("absent", "one sequence alone can't tell how sequences differ", "warn"))
    if scope is not None:
        blocks.append(record.query(acceptance.interval(scope), _STUDENT))
    return Section("Interval of α, ±", half or numbers.ABSENT, blocks)


def other_rates(figures: Figures) -> list[Section]:
    """Pooled, conditional, AL and waste: all from the same counts."""
    rejected = "draft steps in which one was rejected"
    return [
        _rate("Pooled acceptance", numbers.fraction(figures.pooled_acceptance),
              "Σ accepted / Σ drafted: vLLM's own draft acceptance rate.",
              _quotient(figures.accepted, figures.drafted), "pooled_acceptance"),
        _rate("Conditional acceptance", numbers.fraction(figures.conditional_acceptance),
              f"Σ accepted / (Σ accepted + {rejected}): the α of the formula S(K). Not drawn down by what was never "
              "verified.", None if figures.conditional_acceptance is not None else "—",
              "conditional_acceptance"),
        _rate("AL, mean acceptance length", numbers.two_places(figures.mean_acceptance_length),
              "1 + Σ accepted / draft steps, the bonus token counted: EAGLE's τ. What the engine commits for each "
              f"decode row, stops included, is {numbers.two_places(figures.committed_per_step)}.",
              f"1 + {_quotient(figures.accepted, figures.steps)}" if figures.steps else "—", "mean_acceptance_length"),
        _rate("Waste", numbers.fraction(figures.waste_ratio),
              "(Σ drafted − Σ accepted) / Σ drafted: drafted tokens that verification threw away.",
              _quotient(figures.drafted - figures.accepted, figures.drafted), "waste_ratio"),
    ]  # fmt: skip


def by_position(figures: Figures, record: Record, scope: Scope | None) -> Section:
    """Marginal and conditional acceptance of each draft position."""
    if not figures.position_marginal:
        return Section("Acceptance by position", numbers.ABSENT, [Fact("absent", NO_DRAFTS, "warn")], "dim")
    blocks: list[Block] = [
        Text(
            "accepted: draft steps that accepted at least j tokens / all draft steps, as vLLM and llama.cpp count. "
            "given j−1: of those that drafted j and accepted the j−1 before it: the drafter's quality at that position."
        ),
        Drawn(lambda width: _positions(figures)),
        Fact("draft steps", f"{figures.steps:,}"),
    ]
    if scope is not None:
        blocks.append(record.query(acceptance.positions(scope, len(figures.position_marginal))))
    return Section("Acceptance by position", "", blocks)


def few(figures: Figures) -> list[Block]:
    return [Fact("few", FEW, "warn")] if figures.few else []


def sample_words(figures: Figures) -> str:
    sequences = "sequences not known" if figures.sequences is None else numbers.many(figures.sequences, "sequence")
    rows = "" if figures.decode_rows is None else f" of {figures.decode_rows:,} decode rows"
    return f"{sequences}, {figures.steps:,} draft steps{rows}"


def counts_words(figures: Figures) -> str:
    emitted = "" if figures.emitted is None else f", {figures.emitted:,} emitted"
    return f"{figures.drafted:,} drafted, {figures.accepted:,} accepted{emitted}"


def interval_words(low: float | None, high: float | None, how: str = "") -> str:
    if low is None or high is None:
        return numbers.ABSENT
    return f"{low:.3f} … {high:.3f}" + (f"  (95 %, {how})" if how else "")


def exact(value: float | None) -> str:
    return numbers.ABSENT if value is None else f"{value:.3f}"


def _rate(title: str, value: str, formula: str, counts: str | None, column: str) -> Section:
    blocks: list[Block] = [Text(formula)]
    if counts == numbers.ABSENT:
        blocks.append(Fact("absent", NO_DRAFTS, "warn"))
    elif counts is not None:
        blocks.append(Fact("counts", counts))
    return Section(title, value, [*blocks, Text(OF_ALPHA.format(column=column))])


def _quotient(over: int, under: int) -> str:
    return f"{over:,} / {under:,}" if under else numbers.ABSENT


def _positions(figures: Figures) -> list[Line]:
    """Eight positions a line."""
    rows = [("accepted", figures.position_marginal), ("given j−1", figures.position_conditional)]
    lines: list[Line] = []
    for first in range(0, len(figures.position_marginal), 8):
        last = min(first + 8, len(figures.position_marginal))
        heading = "".join(f"{position:>6}" for position in range(first + 1, last + 1))
        lines.append(((left("  position", 16), "dim"), (heading, "dim")))
        for name, values in rows:
            told = "".join(f"{numbers.fraction(value):>6}" for value in values[first:last])
            lines.append(((left(f"  {name}", 16), "dim"), (told, "text")))
    return lines
