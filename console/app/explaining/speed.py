"""How much faster: realised speedup (experienced), marginal gain, tokens a second. Pure."""

from __future__ import annotations

from typing import Final

from console.app.drawing import numbers
from console.app.explaining.record import Record, window_words
from console.app.explaining.section import Block, Fact, Section, Text
from console.feed.bucket_detail import MarginalGain
from store.figure_sql import deciding, work
from store.figure_sql.scope import Scope
from store.figures import Figures

EXPERIENCED: Final = (
    "Σ (emitted × v + p) / Σ t over the decode rows: the time that vanilla needs for the same tokens with the same "
    "sequences in the batch, over the time taken. t: duration of the row's step; v: vanilla decode time at its batch "
    "and context; p: the prefill part of the step. At equal batch, and experienced: a bucket pays for its "
    "neighbours' drafts."
)
MARGINAL: Final = (
    "Expected tokens/s of the present mix with this workload's own K over the same with its K at 0, the others as they "
    "are. What its own drafts buy: another figure than the experienced speedup, and never mixed with it. Expected "
    "tokens from the at-risk hazards of its rows, step times from the table, else the fit."
)
_PARTS: Final = (
    "It gives what the speedup divides: tokens and seconds taken, by batch. v is not in the tables: it is measured "
    "from steps at K = 0, by batch and context, and fitted where none was seen (table step_times). Speedup × Σ "
    "seconds_taken is what vanilla would have needed."
)
_WAITS: Final = (
    "calibrating: vanilla times are measured, from steps at K = 0. The loads that carry 80 % of this time do not have "
    "30 such steps each yet, or what they predict is off by more than 10 %: a while in mode off under the usual load "
    "gives them."
)


def experienced(figures: Figures, record: Record, scope: Scope | None) -> Section:
    """The realised speedup, or what it still waits for."""
    blocks: list[Block] = [Text(EXPERIENCED)]
    if figures.speedup is not None:
        blocks.append(Fact("interval", ratio_words(figures.speedup_low, figures.speedup_high)))
        blocks.append(Text("Interval: 95 %, clustered by blocks of time, since the rows of a step share its duration; "
                           "with the error of the vanilla times."))  # fmt: skip
    if figures.speedup_state == "few":
        blocks.append(Fact("few", "fewer than 3 stretches of time: not to be relied on", "warn"))
    elif figures.speedup_state == "calibrating":
        blocks.append(Fact("absent", _WAITS, "accent"))
    elif figures.speedup is None:
        why = "only counters are known of this engine" if figures.decode_rows is None else "no decode row in the window"
        blocks.append(Fact("absent", why, "warn"))
    if scope is not None and figures.decode_rows:
        blocks.append(record.query(work.step_time(scope), _PARTS))
    value = numbers.ABSENT if figures.speedup is None else f"{figures.speedup:.3f}×"
    return Section("Speedup, experienced", value, blocks)


def marginal(workload: str | None, gain: MarginalGain | None, why: str, record: Record) -> Section:
    """`gain`: as the controller last worked it out; None: `why` it is not known."""
    blocks: list[Block] = [Text(MARGINAL)]
    if gain is None:
        blocks.append(Fact("absent", why, "warn"))
    else:
        blocks.append(Fact("at", f"K {gain.k}, {numbers.clock(gain.ts)}, {numbers.many(gain.sequences, 'sequence')}"))
        blocks.append(Fact("interval", ratio_words(gain.low, gain.high)))
    if workload is not None:
        note = "The numbers are kept for decisions only: the last ones about this workload."
        blocks.append(record.query(deciding.decided(workload, record.now), note))
    return Section("Speedup, marginal", numbers.ABSENT if gain is None else f"{gain.gain:.3f}×", blocks)


def tokens_per_second(figures: Figures, record: Record, scope: Scope | None) -> Section:
    """Of a bucket over its window."""
    blocks: list[Block] = [
        Text(
            "Σ emitted / recorded wall seconds of the window, stretches taken out of which no engine was recorded. "
            "Rows that end a prefill count too. Tokens over busy step time would be another figure."
        ),
        Fact("window", window_words(figures.window)),
    ]
    if figures.tokens_per_second and figures.emitted is not None:
        seconds = figures.emitted / figures.tokens_per_second
        blocks.append(Fact("counts", f"{figures.emitted:,} tokens / {seconds:.1f} s recorded"))
    elif figures.tokens_per_second is None:
        blocks.append(Fact("absent", "no second of the window was recorded, or tokens are not counted", "warn"))
    if scope is not None:
        blocks.append(record.query(work.tokens_per_second(scope, _dark(figures))))
    return Section("tokens/s", numbers.rate(figures.tokens_per_second), blocks)


def _dark(figures: Figures) -> bool:
    """Whether less of the window was recorded than there is of it."""
    window = figures.window
    if window is None or not figures.tokens_per_second or figures.emitted is None:
        return True
    return abs(figures.emitted / figures.tokens_per_second - (window.end - window.start)) > 1e-6


def ratio_words(low: float | None, high: float | None) -> str:
    return "— too little was seen for one" if low is None or high is None else f"{low:.3f} … {high:.3f}"
