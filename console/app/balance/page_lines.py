"""The page of the balance: what was saved and lost, who paid for whose drafts, what was left out. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from console.app.balance.amounts import half_width, share, sign_of, spent
from console.app.balance.table import paid_table, saved_table
from console.app.drawing import numbers
from console.app.drawing.spans import EMPTY, Line, clean, cut, wrap
from store.balance.records import Balance

_MEANING: Final = (
    "A step's time is shared by its decode rows alike. used: that share. saved: what the workload's tokens would have"
    " taken at the same batches without speculation, less what it used.",
    "saved = brought − own − others' − rest. brought: tokens beyond one a step, by the workload's own drafts. A step's"
    " extra time over vanilla is due to those whose tokens were drafted, in proportion, and paid by all its rows alike:"
    " own and others' is what the workload paid for its own and for other workloads' drafts. rest: extra time of steps"
    " in which nobody had drafted. ± is at 95 %: for = it may as well be nothing.",
    "Not the realised speedup: that counts every row alike, this every second. Each figure is rounded by itself.",
)
_NOTHING: Final = "Nothing was decoded in this window, so that there is nothing to save or to pay for."
_WAITS: Final = (
    "Vanilla times are measured, from steps at K = 0. Loads with 30 such steps each must carry 80 % of the engine time:"
    " a while in mode off under the usual load gives them."
)


def page_lines(balance: Balance, width: int) -> list[Line]:
    """Also what `specdeck report --costs` prints."""
    lines = [*_head(balance), EMPTY]
    if balance.total.state == "absent":
        lines += _text(_NOTHING, width)
    elif balance.paid is None:
        lines += [
            (
                ("◐ calibrating", "accent"),
                (f"  vanilla is measured for {share(balance.total.measured)} of the time", "text"),
            )
        ]
        lines += [*_text(_WAITS, width), EMPTY, *_times(balance)]
    else:
        lines += [*_sum(balance), EMPTY, (("Seconds of engine time, by workload", "bright"),)]
        lines += [*saved_table(balance, width), EMPTY, *_payments(balance, width)]
    out = list(_left_out(balance))
    if out:
        counts = (
            f"  {share(balance.covered)} of the workloads' decoding time counts" if balance.covered is not None else ""
        )
        lines += [EMPTY, (("Left out", "bright"), (counts, "dim")), *out]
    for note in balance.notes:
        lines += _text(clean(note), width)
    lines += [EMPTY, (("What this is", "bright"),)]
    for part in _MEANING:
        lines += _text(part, width)
    return [cut(line, width) for line in lines]


def _head(balance: Balance) -> list[Line]:
    window = balance.window
    if window is None:
        return [(("no step in this window", "dim"),)]
    when = f"{numbers.day(window.start)} {numbers.clock(window.start)} to {numbers.clock(window.end)}"
    facts = f"{numbers.duration(window.end - window.start)}, {when} · {numbers.many(balance.steps, 'step')}"
    return [((facts, "text"), (f" · {spent(balance.engine_seconds)} of engine time", "text"))]


def _sum(balance: Balance) -> list[Line]:
    total = balance.total
    assert total.saved is not None
    assert total.used is not None
    assert total.vanilla is not None
    won, half = total.saved >= 0, half_width(total)
    glyph, role = sign_of(total)
    line: Line = (
        (f"{glyph} ", role),
        (f"Speculation {'saved' if won else 'cost'} {spent(total.saved)}", "bright"),
        ("" if half is None else f" ±{spent(half)}", "dim"),
        (f": {spent(total.used)} where vanilla needs {spent(total.vanilla)}", "text"),
    )
    few: Line = (("  few: not to be relied on", "warn"),)
    return [line, few] if total.state == "few" else [line]


def _payments(balance: Balance, width: int) -> list[Line]:
    title: Line = (("Who paid for whose drafts", "bright"), ("  lines paid, columns drafted", "dim"))
    if not any(one.draft_tokens for one in balance.workloads):
        return [title, (("  nobody drafted anything", "dim"),)]
    return [title, *paid_table(balance, width)]


def _times(balance: Balance) -> list[Line]:
    """Who used the engine is known before anything is known of vanilla."""
    return [
        ((f"  {clean(one.workload or '')}: ", "text"), (f"{spent(one.engine_seconds)} of engine time", "text"),
         (f", {share(one.measured)} of it measured", "dim"))
        for one in balance.workloads
    ]  # fmt: skip


def _left_out(balance: Balance) -> Iterator[Line]:
    out = balance.left_out
    for seconds, why in (
        (out.not_calibrated, "of engines whose vanilla times are not known yet"),
        (out.incomplete, "in steps with a row that is quarantined or not attributed yet"),
        (out.no_decode_rows, "in steps that decoded nothing: prompts alone"),
        (out.calibration, "in specdeck's own calibration"),
    ):
        if seconds > 0:
            yield ((f"  {spent(seconds)} ", "text"), (why, "dim"))
    if balance.gaps:
        yield (
            (f"  {numbers.many(balance.gaps, 'gap')}, {numbers.many(balance.frames_lost, 'frame')} lost", "text"),
            (": nothing is known of them", "dim"),
        )


def _text(text: str, width: int) -> list[Line]:
    return [((line, "dim"),) for line in wrap(text, max(20, width))]
