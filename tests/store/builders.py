"""Small records to build traces and frames from: each builder gives what a test doesn't care about a plain value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from engine.frames import (
    CAUSE_CODE,
    LIMIT_CODE,
    UNKNOWN,
    WIRE_VERSION,
    Announcement,
    ArrivedSequence,
    FinishedSequence,
    Frame,
    PackedStep,
    pack_columns,
)
from engine.records import (
    EngineRecord,
    FinishRecord,
    PolicyMode,
    Record,
    Row,
    SequenceRecord,
    StepRecord,
)
from store.counts import Joint
from store.database import Store
from store.figures import Figures, Report
from store.ingest import Ingest
from store.report import report
from store.rowbatch import ACCEPTED, CAUSE, DRAFTED, EMITTED, K_ASKED, LIMIT, PROPOSED, columns_of

T0 = 1_790_000_000.0
STATIC = PolicyMode(mode="static", k=4)


def engine(ts: float = T0, **changed: Any) -> EngineRecord:
    fields: dict[str, Any] = {
        "engine": "e0", "ts": ts, "vllm": "0.32.0", "target": "target", "drafter": "drafter", "method": "ngram",
        "max_k": 8, "batch_k": "free", "max_num_seqs": 32, "data_parallel_size": 1, "device": "cpu",
        "async_scheduling": False, "configured": STATIC, "resolved": STATIC,
    }  # fmt: skip
    return EngineRecord(**(fields | changed))


def sequence(seq: str, workload: str | None = "code", ts: float = T0, **changed: Any) -> SequenceRecord:
    return SequenceRecord("e0", seq, ts, workload, **changed)


def row(seq: str = "a", d: int = 4, a: int = 2, e: int | None = None, k: int | None = None, **changed: Any) -> Row:
    """A decode row: k_asked = d unless said, and everything accepted plus one is emitted."""
    asked = d if k is None else k
    cause = "none" if asked == 0 else "full" if d == asked else "no_proposal"
    fields: dict[str, Any] = {
        "seq": seq, "k_asked": asked, "limit": "static", "proposed": d, "drafted": d, "invalid": 0, "accepted": a,
        "emitted": a + 1 if e is None else e, "context": 100, "cause": cause,
    }  # fmt: skip
    return Row(**(fields | changed))


def step(number: int, rows: Sequence[Row], ts: float | None = None, **changed: Any) -> StepRecord:
    """Step `number`, 0.1 s after the one before, unless said."""
    fields: dict[str, Any] = {
        "engine": "e0", "frame": number, "step": number, "ts": T0 + number * 0.1 if ts is None else ts,
        "duration_ms": 100.0, "k_verify": 4, "k_draft": 4, "running": max(1, len(rows)), "waiting": 0,
        "rows": list(rows), "policy": 1,
    }  # fmt: skip
    return StepRecord(**(fields | changed))


def steps(rows: Iterable[Row], first: int = 1) -> Iterator[StepRecord]:
    """One step for each row."""
    return (step(number, [one]) for number, one in enumerate(rows, first))


def finish(seq: str, ts: float) -> FinishRecord:
    return FinishRecord("e0", seq, ts, "stop", 10)


def trace_of(rows: Iterable[Row], **tags: str) -> list[Record]:
    """An engine, the sequences that occur (of workload `code`, unless `tags` says another), and a step a row."""
    rows = list(rows)
    names = dict.fromkeys(one.seq for one in rows)
    return [engine(), *(sequence(name, tags.get(name, "code")) for name in names), *steps(rows)]


def store_of(records: Iterable[Record]) -> Store:
    store = Store.memory()
    ingest = Ingest(store)
    for record in records:
        ingest.record(record)
    ingest.close()
    return store


def reported(records: Iterable[Record], **arguments: Any) -> Report:
    with store_of(records) as store:
        return report(store.connection, source="test", **arguments)


def only_bucket(records: Iterable[Record]) -> Figures:
    (bucket,) = reported(records).buckets
    return bucket


def announcement(
    sequences: Sequence[ArrivedSequence] = (), frame: int = 0, boot: str = "b1", **changed: Any
) -> Announcement:
    return Announcement(WIRE_VERSION, engine(boot=boot, **changed), boot, frame, list(sequences), 1, None, 0)


def arrived(seq: int, workload: str | None = "code", ts: float = T0, temperature: float = 0.0) -> ArrivedSequence:
    return ArrivedSequence(seq, f"request-{seq}", ts, workload, temperature, 100, False, "speculative")


def finished(seq: int, ts: float) -> FinishedSequence:
    return FinishedSequence(seq, ts, "stop", 10)


def frame(
    number: int,
    rows: Sequence[Row] = (),
    arrivals: Sequence[ArrivedSequence] = (),
    finishes: Sequence[FinishedSequence] = (),
    boot: str = "b1",
    **changed: Any,
) -> Frame:
    """Frame `number` with one step of `rows`, whose `seq` are handles in digits."""
    return Frame(
        WIRE_VERSION, "e0", boot, number, list(arrivals), packed(step(number, rows, **changed)), list(finishes)
    )


def packed(record: StepRecord) -> PackedStep:
    return PackedStep(
        record.step, record.ts, record.duration_ms, record.k_verify, record.k_draft, record.running, record.waiting,
        record.prefill_tokens, record.probe, record.policy, record.limit_draft, len(record.rows),
        pack_columns([list(column) for column in zip(*(_values(one) for one in record.rows), strict=True)]),
    )  # fmt: skip


def joint_of(rows: Sequence[Row]) -> Joint:
    """The joint histogram of rows, one key each."""
    columns = columns_of(rows, [0] * len(rows))
    ones = np.ones(len(rows), dtype=np.int64)
    known = columns[PROPOSED] != UNKNOWN
    return Joint(
        *(columns[place] for place in (K_ASKED, LIMIT, DRAFTED, ACCEPTED, CAUSE)),
        0 * ones, ones, columns[EMITTED], np.where(known, columns[PROPOSED], 0), np.where(known, columns[DRAFTED], 0),
    )  # fmt: skip


def _values(one: Row) -> tuple[int, ...]:
    proposed = UNKNOWN if one.proposed is None else one.proposed
    return (
        int(one.seq), one.k_asked, LIMIT_CODE[one.limit], proposed, one.drafted, one.invalid, one.accepted, one.emitted,
        one.context, CAUSE_CODE[one.cause],
    )  # fmt: skip
