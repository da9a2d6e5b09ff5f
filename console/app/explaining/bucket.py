"""Every figure of a row of the bucket table, a section each, in the order of its columns. Pure."""

from __future__ import annotations

from typing import Final

from console.app.drawing import numbers
from console.app.explaining import acceptance, drafting, speed
from console.app.explaining.record import Record
from console.app.explaining.section import Block, Fact, Section, Text
from console.app.live.columns import RowFacts, state_of
from console.feed.bucket_detail import MarginalGain
from console.feed.messages import BucketView, Snapshot
from store.figure_sql import judged
from store.figure_sql.scope import Scope
from store.figures import Figures

ON_BUCKET: Final = "2 shows it where the controller has one"
STATES: Final = (
    ("ok", "enough was seen of it"),
    ("few", acceptance.FEW),
    ("blind", "decode rows, but nothing drafted: its acceptance can't be seen"),
    ("calibrating", "vanilla times are not measured yet, so there is no speedup"),
    ("idle", "no row for a minute"),
    ("held", "fallback or lane: tier 2 or the operator holds the workload at K = 0"),
    ("an alert", "by its name, with ▲ or ■; 4 lists it"),
)


def bucket_sections(
    facts: RowFacts, snapshot: Snapshot, gain: MarginalGain | None = None, why_no_gain: str = ON_BUCKET
) -> list[Section]:
    """`gain`: the marginal gain where it is known; else why it is not."""
    bucket, figures, record = facts.bucket, facts.bucket.figures, Record.of(snapshot)
    if figures.decode_rows is None:
        return _observed(bucket, snapshot, record)
    scope = scope_of(bucket.figures, record)
    return [
        acceptance.alpha(bucket, record, scope),
        acceptance.alpha_interval(figures, record, scope),
        *acceptance.other_rates(figures),
        drafting.k_mix(figures, record, scope),
        acceptance.by_position(figures, record, scope),
        speed.experienced(figures, record, scope),
        speed.marginal(bucket.key.workload, gain, why_no_gain, record),
        speed.tokens_per_second(figures, record, scope),
        _sample(bucket),
        _state(facts),
        drafting.left_out(figures, snapshot, record, scope),
    ]


def scope_of(figures: Figures, record: Record) -> Scope | None:
    """The rows that figures are made from; None where no time is known."""
    return None if figures.window is None else record.scope(figures.key, figures.window)


def _sample(bucket: BucketView) -> Section:
    figures = bucket.figures
    text = (
        "Sequences with rows in the window. Window: the smallest of 5 min, 1 h and 6 h with 30 of them, kept until it "
        "falls under 20; one that the operator fixed stays."
    )
    absent: list[Block] = []
    if figures.sequences is None:
        absent = [Fact("absent", "the rows are older than what is kept of their sequences", "warn")]
    blocks: list[Block] = [
        Text(text), Fact("window", bucket.window_label), *absent, *acceptance.few(figures),
        Text("The query under the interval gives it, as sequences."),
    ]  # fmt: skip
    return Section("n", numbers.count(figures.sequences), blocks)


def _state(facts: RowFacts) -> Section:
    _, word, role = state_of(facts)
    blocks: list[Block] = [Text("What is gravest of it now, else how well it is known.")]
    if facts.alert is not None:
        blocks.append(Fact("alert", facts.alert.text, "warn"))
    if facts.workload is not None and facts.workload.why:
        blocks.append(Fact("policy", facts.workload.why))
    blocks += [Fact(name, words, "dim") for name, words in STATES]
    return Section("State", word, blocks, role)


def _observed(bucket: BucketView, snapshot: Snapshot, record: Record) -> list[Section]:
    """Of an engine of which only the counters are known."""
    figures = bucket.figures
    blocks: list[Block] = [
        Text("This engine is only observed by its /metrics: counters are known, no rows. So there is no α by step, no "
             "interval, no K, no n, no speedup."),
        Fact("counts", acceptance.counts_words(figures)),
    ]  # fmt: skip
    if figures.window is not None:
        sql = judged.observed(figures.window.start, figures.window.end, bucket.key.model_version)
        blocks.append(record.query(sql))
    return [
        Section("Pooled acceptance", numbers.fraction(figures.pooled_acceptance), blocks),
        acceptance.by_position(figures, record, None),
        speed.tokens_per_second(figures, record, None),
        speed.experienced(figures, record, None),
        drafting.left_out(figures, snapshot, record, None),
    ]
