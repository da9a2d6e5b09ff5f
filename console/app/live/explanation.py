"""Why a figure is what it is: formula, counts, window, sample and what was left out. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from console.app.drawing import numbers
from console.app.drawing.spans import EMPTY, Line, Role, clean, left
from console.app.live.columns import bucket_name
from console.feed.messages import BucketView, Snapshot


def explain(bucket: BucketView, snapshot: Snapshot, width: int) -> list[Line]:
    """The acceptance rate of one bucket, so that it can be recomputed by hand, and its realised speedup."""
    figures = bucket.figures
    lines: list[Line] = [((f"Acceptance rate α of {bucket_name(bucket.key)}", "bright"),), EMPTY]
    lines += _text("α = mean over draft steps of accepted / drafted. The bonus token does not count.", width)
    lines.append(EMPTY)
    interval = "—"
    if figures.alpha_low is not None and figures.alpha_high is not None:
        interval = f"{figures.alpha_low:.3f} … {figures.alpha_high:.3f}  (95 %, clustered by sequence)"
    window = clean(bucket.window_label)
    if figures.window is not None:
        window += f"  ({numbers.clock(figures.window.start)} – {numbers.clock(figures.window.end)})"
    facts: list[tuple[str, str, Role]] = [
        ("α", "—  nothing was drafted" if figures.alpha is None else f"{figures.alpha:.3f}", "bright"),
        ("interval", interval, "text"),
        ("window", window, "text"),
        (
            "n",
            f"{_whole(figures.sequences)} sequences, {figures.steps:,} draft steps"
            f" of {_whole(figures.decode_rows)} decode rows",
            "text",
        ),
        (
            "counts",
            f"{figures.drafted:,} drafted, {figures.accepted:,} accepted, {_whole(figures.emitted)} emitted",
            "text",
        ),
        ("pooled", f"{numbers.fraction(figures.pooled_acceptance)}  = accepted / drafted; vLLM's own rate", "text"),
        (
            "conditional",
            f"{numbers.fraction(figures.conditional_acceptance)}  = accepted / (accepted + rejected steps)",
            "text",
        ),
        ("AL", f"{numbers.two_places(figures.mean_acceptance_length)}  = 1 + accepted / draft steps", "text"),
        ("waste", f"{numbers.fraction(figures.waste_ratio)}  = (drafted − accepted) / drafted", "text"),
    ]
    if figures.post_resume is not None and figures.post_resume.steps:
        after = f"{figures.post_resume.steps:,} draft steps soon after a long stretch at K = 0: alarms leave them out"
        facts.append(("post-resume", after, "text"))
    if figures.few:
        facts.append(("few", "under 10 sequences or 30 draft steps: not to be relied on", "warn"))
    lines += _table(facts)
    lines += [EMPTY, (("Per position", "bright"),)]
    lines += _positions(bucket)
    lines += [EMPTY, (("Left out", "bright"),)]
    lines += _left_out(bucket, snapshot)
    lines += [EMPTY, *_text("α falls when K rises with nothing else changed: never compare it across K.", width)]
    lines += [EMPTY, (("Realised speedup", "bright"),)]
    return lines + _speedup(bucket, width)


def _table(facts: Sequence[tuple[str, str, Role]]) -> list[Line]:
    return [((left(f"  {name}", 15), "dim"), (value, role)) for name, value, role in facts]


def _speedup(bucket: BucketView, width: int) -> list[Line]:
    """What it is, or what it still waits for."""
    figures = bucket.figures
    formula = (
        "Σ (emitted × vanilla time + prefill time) / Σ step time over the decode rows: tokens/s observed over"
        " tokens/s that vanilla makes with the same sequences in the batch. A bucket pays for its neighbours' drafts."
    )
    lines = _text(formula, width)
    if figures.speedup is not None:
        interval = "—"
        if figures.speedup_low is not None and figures.speedup_high is not None:
            low, high = figures.speedup_low, figures.speedup_high
            interval = f"{low:.2f} … {high:.2f}  (95 %, blocks of steps, and the error of the vanilla times)"
        lines += _table([("speedup", f"{figures.speedup:.2f}", "bright"), ("interval", interval, "text")])
        if figures.speedup_state == "few":
            lines += _table([("few", "too few steps: not to be relied on", "warn")])
        return lines
    if figures.speedup_state == "absent":
        return lines + _table([("speedup", "—  no decode row in the window", "text")])
    waits = (
        "Vanilla times are measured, from steps at K = 0. The batch sizes that carry 80 % of this bucket's time do not"
        " have 30 such steps each yet: a while in mode off under the usual load gives them."
    )
    return lines + _table([("speedup", "—  calibrating", "accent")]) + _text(waits, width)


def _whole(value: int | None) -> str:
    return numbers.ABSENT if value is None else f"{value:,}"


def _positions(bucket: BucketView) -> list[Line]:
    figures = bucket.figures
    if not figures.position_marginal:
        return [(("  nothing was drafted", "dim"),)]
    rows = [("accepted", figures.position_marginal), ("given the one before", figures.position_conditional)]
    heading = "".join(f"{position:>6}" for position in range(1, len(figures.position_marginal) + 1))
    return [
        ((left("  position", 24), "dim"), (heading, "dim")),
        *(
            ((left(f"  {name}", 24), "dim"), ("".join(f"{numbers.fraction(value):>6}" for value in values), "text"))
            for name, values in rows
        ),
    ]


def _left_out(bucket: BucketView, snapshot: Snapshot) -> list[Line]:
    figures = bucket.figures
    undrafted = None if figures.decode_rows is None else figures.decode_rows - figures.steps
    causes = ", ".join(
        f"{clean(cause)} {number:,}"
        for cause, number in sorted(figures.cause_histogram.items(), key=lambda item: -item[1])
        if cause not in ("full", "prefill", "none") and number
    )
    lines: list[Line] = [((f"  {_whole(undrafted)} decode rows drafted nothing, so they have no α", "text"),)]
    if causes:
        lines.append(((f"  drafted less than asked: {causes}", "dim"),))
    loss = snapshot.loss
    missing = f"{loss.quarantined:,} rows quarantined, {loss.unattributed:,} unattributed"
    lines.append(((f"  of all buckets: {missing}, {loss.frames_lost:,} frames lost", "dim"),))
    return lines


def _text(text: str, width: int) -> list[Line]:
    return [((line, "dim"),) for line in textwrap.wrap(text, max(20, width))]
