"""What is explained on the Policy screen: the columns, a workload with its fallback, a change, the drill. Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from console.app.drawing import numbers
from console.app.explaining.columns import columns_section
from console.app.explaining.record import Record
from console.app.explaining.section import Block, Fact, Section, Text
from console.app.explaining.speed import MARGINAL
from console.app.picture import Picture
from console.app.policy.workload_rows import workload_state
from console.feed.messages import CertificateView, Snapshot, WorkloadView
from console.feed.protocol import HistoryEntry
from store.figure_sql import deciding

_OFF: Final = (
    "Tier 2 turns a workload off (K 0) when the upper bound of its marginal gain at K = 1 stays below 1.00 over the "
    "window (5 min unless set otherwise), and on again when the lower bound of it lies above 1.03 in recovery probes. "
    "Pauses between tries grow from 30 s to 10 min; anything that speaks for it, be it another load, brings the next "
    "one nearer."
)
_ENDS: Final = {
    "vanilla lane": "l takes the workload out of the lane",
    "fallback for all": "f ends the fallback for all",
    "mode off": "m sets another mode",
}


def policy_sections(
    picture: Picture, workload: WorkloadView | None = None, entry: HistoryEntry | None = None
) -> list[Section]:
    """What the cursor is on comes first: a workload, or a line of the history."""
    snapshot = picture.snapshot
    if snapshot is None:
        return []
    record = Record.of(snapshot)
    first = [change_section(entry, record)] if entry is not None else []
    if workload is not None:
        first.append(workload_section(workload, snapshot, record))
    columns = [columns_section(engine, record) for engine in picture.engines]
    return [*first, *columns, drill_section(snapshot.certificate, record)]


def workload_section(view: WorkloadView, snapshot: Snapshot, record: Record) -> Section:
    """What holds for one workload, by which numbers, and what will end it."""
    _, state, role = workload_state(view, snapshot)
    blocks: list[Block] = [
        Fact("lane", view.lane),
        Fact("K", f"{view.k}, set by the controller" if view.k is not None else "no K of its own: the mode's"),
        Fact("running", numbers.many(view.running, "sequence")),
        *([Fact("fallback", _fallback(view, record), "fallback")] if view.fallback else []),
        *([Fact("why", view.why)] if view.why else []),
        *([Fact("would do", view.advice, "accent")] if view.advice else []),
        *(Fact("ends", way) for name, way in _ENDS.items() if state == name),
        Text(_OFF), Text(f"Marginal gain: {MARGINAL}"),
        record.query(deciding.decided(view.name, record.now), "The last decisions about it, with their numbers:"),
    ]  # fmt: skip
    return Section(f"Workload {view.name}", state, blocks, role)


def change_section(entry: HistoryEntry, record: Record) -> Section:
    """One line of the history, with the numbers it was decided by."""
    blocks: list[Block] = [
        Fact("when", f"{numbers.day(entry.ts)} {numbers.clock(entry.ts)}, by {entry.actor}"),
        Fact("before", _json(entry.before)),
        Fact("after", _json(entry.after)),
        *([Fact("why", entry.why)] if entry.why else []),
        *(Fact(name, _told(value)) for name, value in (entry.numbers or {}).items()),
        Fact("undo", "u takes it back" if entry.undoable else "it can't be undone now", "dim"),
    ]
    if entry.policy is not None:
        blocks.append(record.query(deciding.change(entry.policy)))
    return Section("Change", entry.text or entry.action, blocks)


def drill_section(view: CertificateView | None, record: Record) -> Section:
    """The last drill: every way out, forced on requests of its own."""
    blocks: list[Block] = [
        Text("`specdeck drill` forces each way out of speculation (hints, lane, cap, fallback, mode off) on requests "
             "of its own, and counts in their rows that nothing was drafted and what set it. It holds for the model "
             "version and engine that it was made on."),
    ]  # fmt: skip
    if view is None:
        blocks.append(Fact("absent", "no drill was ever made: `specdeck drill` makes one", "warn"))
        return Section("Drill", numbers.ABSENT, blocks, "dim")
    verdict = "passed" if view.passed else "failed"
    blocks += [
        Fact("made", f"{numbers.day(view.ts)} {numbers.clock(view.ts)}, on {view.model_version}"),
        Fact("found", f"{verdict}: {view.text}", "text" if view.passed else "critical"),
    ]
    if view.stale is not None:
        blocks.append(Fact("stale", view.stale, "warn"))
    blocks.append(record.query(deciding.drill(record.now)))
    return Section("Drill", f"stale, it {verdict}" if view.stale is not None else verdict, blocks)


def _fallback(view: WorkloadView, record: Record) -> str:
    since = "" if view.since is None else f" since {numbers.clock(view.since)}"
    if view.next_try is None:
        return f"on{since}; no recovery probe is due"
    if view.next_try <= record.now:
        return f"on{since}; the next recovery probe comes as soon as a step lets it"
    return f"on{since}; next recovery probe in {numbers.countdown(view.next_try - record.now)}"


def _json(fields: dict[str, Any] | None) -> str:
    return numbers.ABSENT if fields is None else msgspec.json.encode(fields).decode()


def _told(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
