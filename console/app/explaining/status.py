"""The figures of the status line, a section each, in its order. Pure."""

from __future__ import annotations

from console.app.drawing import numbers
from console.app.explaining import acceptance, bucket, speed
from console.app.explaining.columns import columns_section
from console.app.explaining.record import LATE, Record
from console.app.explaining.section import Block, Fact, Section, Text
from console.app.picture import Picture
from console.app.policy.words import mode_words
from console.feed.messages import Snapshot
from store.figure_sql import acceptance as asked
from store.figure_sql import deciding, missing, work


def status_sections(picture: Picture) -> list[Section]:
    """Nothing before there is a picture."""
    snapshot = picture.snapshot
    if snapshot is None:
        return []
    record = Record.of(snapshot)
    return [
        _mode(snapshot, record),
        *(columns_section(engine, record, "K executed") for engine in picture.engines),
        _load(snapshot, record),
        _rate(snapshot, record),
        *_pooled(snapshot, record),
        _alerts(picture),
        _loss(snapshot, record),
    ]


def _mode(snapshot: Snapshot, record: Record) -> Section:
    if snapshot.policy is None:
        why = "this station only observes: the mode is set where the engine was started"
        return Section("Mode", numbers.ABSENT, [Fact("absent", why, "warn")], "dim")
    blocks: list[Block] = [
        Text("What the operator asked for, of all workloads. What each engine does of it is under K executed."),
        Fact("mode", mode_words(snapshot.policy)),
        Fact("cap", "none" if snapshot.cap is None else f"{snapshot.cap}: no sequence drafts more"),
        Fact("fallback", "on: K 0 for all" if snapshot.fallback else "off"),
        Fact("version", numbers.plain(snapshot.policy_version)),
    ]
    if snapshot.unconfirmed is not None:
        left = numbers.countdown(snapshot.unconfirmed.confirm_by - snapshot.ts)
        blocks.append(Fact("unconfirmed", f"back to {mode_words(snapshot.unconfirmed.reverts_to)} in {left}", "warn"))
    blocks.append(record.query(deciding.changes(record.now), "The last changes:"))
    return Section("Mode", numbers.mode(snapshot.policy), blocks)


def _load(snapshot: Snapshot, record: Record) -> Section:
    blocks: list[Block] = [
        Text("Sequences that the last step of each engine scheduled, and that wait for one; all engines that tell "
             "added up. An idle engine makes no steps: its last load ends with its sequences."),
        *(Fact(engine.engine, f"{numbers.plain(engine.running)} running, {numbers.plain(engine.waiting)} waiting")
          for engine in snapshot.engines),
        *(record.query(deciding.executed(engine.engine, record.now, 1)) for engine in snapshot.engines[:1]),
    ]  # fmt: skip
    value = f"{numbers.plain(snapshot.running)} / {numbers.plain(snapshot.waiting)}"
    return Section("Running / waiting", value, blocks)


def _rate(snapshot: Snapshot, record: Record) -> Section:
    blocks: list[Block] = [
        Text("Tokens that all engines committed over the last 10 whole seconds, those that end a prefill too; "
             "calibration is left out. The table's tokens/s are of each bucket's own window."),
    ]  # fmt: skip
    if snapshot.tokens_per_second is None:
        blocks.append(Fact("absent", "no whole second is on record yet", "warn"))
    elif not any(one.figures.decode_rows is None for one in snapshot.buckets):
        blocks.append(record.query(work.tokens_now(record.now), LATE))
    return Section("tokens/s now", numbers.rate(snapshot.tokens_per_second), blocks)


def _pooled(snapshot: Snapshot, record: Record) -> list[Section]:
    total = snapshot.total
    if total is None:
        return [Section("α and speedup now", numbers.ABSENT, [Fact("absent", "no row in six hours", "warn")], "dim")]
    scope = None if total.decode_rows is None else bucket.scope_of(total, record)
    blocks: list[Block] = [
        Text("The same α as of a bucket, over the rows of all: mean over draft steps. It moves with the traffic's mix "
             "though no bucket does; then the Live screen says mix, and no bucket alerts."),
        Fact("n", acceptance.sample_words(total)),
        Fact("counts", acceptance.counts_words(total)),
        Fact("interval", acceptance.interval_words(total.alpha_low, total.alpha_high, "clustered by sequence")),
    ]  # fmt: skip
    if total.alpha is None:
        why = "only counters are known of this engine" if total.decode_rows is None else acceptance.NO_DRAFTS
        blocks.append(Fact("absent", why, "warn"))
    if scope is not None:
        blocks.append(record.query(asked.rates(scope), LATE))
    realised = speed.experienced(total, record, scope)
    pooled = Section("α of all buckets", acceptance.exact(total.alpha), blocks)
    return [pooled, Section("Speedup now, experienced", realised.value, realised.blocks)]


def _alerts(picture: Picture) -> Section:
    firing = picture.firing
    blocks: list[Block] = [
        Text("▲ warnings and ■ critical alerts that fire and do not sleep. 4 lists them; h there explains one."),
        *(Fact(alert.kind, alert.text, "critical" if alert.severity == "critical" else "warn") for alert in firing),
    ]
    return Section("Alerts", str(len(firing)), blocks)


def _loss(snapshot: Snapshot, record: Record) -> Section:
    loss = snapshot.loss
    total = loss.frames_lost + loss.quarantined + loss.unattributed + loss.broken_messages
    blocks: list[Block] = [
        Text("Telemetry that is missing or was set apart since the record began. Nothing of it is in a figure, but "
             "unattributed rows, which have a bucket of their own."),
        Fact("gaps", f"{loss.gaps:,} stretches of which nothing is known"),
        Fact("frames lost", f"{loss.frames_lost:,} numbered frames that never came"),
        Fact("quarantined", f"{loss.quarantined:,} impossible rows"),
        Fact("unattributed", f"{loss.unattributed:,} rows of requests nobody announced"),
        Fact("broken", f"{loss.broken_messages:,} messages that could not be read"),
        record.query(missing.losses(record.now), "Broken messages are counted by the station, not recorded."),
    ]  # fmt: skip
    return Section("Telemetry loss", f"{total:,}", blocks)
