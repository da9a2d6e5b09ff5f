"""The draft lengths of a bucket's rows, what set them, and what its figures leave out. Pure."""

from __future__ import annotations

from typing import Final

from console.app.drawing import numbers
from console.app.explaining.limits import limit_words
from console.app.explaining.record import Record
from console.app.explaining.section import Block, Fact, Section, Text
from console.feed.messages import Snapshot
from store.figure_sql import acceptance, missing
from store.figure_sql.scope import Scope
from store.figures import Figures

CAUSES: Final = {
    "no_proposal": "the drafter proposed less",
    "grammar": "a grammar struck drafts",
    "length_limit": "the answer may not grow so long",
    "token_budget": "the step's token budget was used up",
    "unknown": "not told why",
}
"""Why a row drafted less than was asked for it."""


def k_mix(figures: Figures, record: Record, scope: Scope | None) -> Section:
    """How many decode rows were asked for each K, by what, and why fewer were drafted."""
    rows = sum(figures.k_histogram.values())
    if not rows:
        why = "only counters are known of this engine" if figures.decode_rows is None else "no decode row in the window"
        return Section("K executed", numbers.ABSENT, [Fact("absent", why, "warn")], "dim")
    main = max(figures.k_histogram, key=lambda k: figures.k_histogram[k])
    blocks: list[Block] = [
        Text("The share of decode rows at each K that the policy asked for. The row of the table names the commonest."),
        *(Fact(f"K {k}", _share(count, rows)) for k, count in figures.k_histogram.items()),
        *(Fact(f"by {term}", f"{_share(count, rows)}: {limit_words(term)}")
          for term, count in figures.limit_histogram.items()),
        *(Fact("drafted less", f"{count:,} rows: {CAUSES[cause]}")
          for cause, count in figures.cause_histogram.items() if cause in CAUSES and count),
    ]  # fmt: skip
    share = numbers.fraction(figures.drafted_share)
    blocks.append(Fact("drafted share", f"{share}  = {figures.steps:,} draft steps / {rows:,} decode rows"))
    if scope is not None:
        blocks.append(record.query(acceptance.k_mix(scope)))
    return Section("K executed, the mix", f"mostly {main}", blocks)


def left_out(figures: Figures, snapshot: Snapshot, record: Record, scope: Scope | None) -> Section:
    """Rows and stretches that are in no rate, or in none of the alarms."""
    blocks: list[Block] = []
    if figures.decode_rows is not None:
        blocks.append(Fact("no drafts", f"{figures.decode_rows - figures.steps:,} decode rows: they have no α"))
        probes = figures.limit_histogram.get("probe", 0)
        blocks.append(Fact("probes", f"{probes:,} rows: in the figures, in no alarm"))
    if figures.post_resume is not None:
        after = f"{figures.post_resume.steps:,} draft steps soon after 64 rows at K = 0: in the figures, in no alarm"
        if figures.post_resume.alpha is not None:
            after += f" (α {numbers.fraction(figures.post_resume.alpha)})"
        blocks.append(Fact("post-resume", after))
    blocks.append(Fact("prefill", "rows that end a prefill count in tokens and tokens/s only"))
    if figures.workload is None and figures.decode_rows is not None:
        blocks.append(Fact("calibration", "specdeck's own requests, by which it measures step times"))
    loss = snapshot.loss
    blocks.append(Fact("all buckets", f"{loss.quarantined:,} impossible rows set apart, {loss.gaps:,} gaps with "
                       f"{loss.frames_lost:,} frames lost, {loss.broken_messages:,} broken messages, since the record "
                       "began"))  # fmt: skip
    blocks.append(
        Fact("unattributed", f"{loss.unattributed:,} rows of requests nobody announced: a bucket of their own")
    )
    if scope is not None:
        blocks.append(
            record.query(missing.left_out(scope), "The last three columns are of all buckets in this window.")
        )
    return Section("Left out", "", blocks)


def _share(count: int, of: int) -> str:
    return f"{numbers.fraction(count / of):>4}  {count:,} rows"
