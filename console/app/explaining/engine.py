"""The facts of the Engine screen: where each comes from and what it means. Pure."""

from __future__ import annotations

from console.app.drawing import numbers
from console.app.explaining.columns import columns_section
from console.app.explaining.record import Record
from console.app.explaining.section import Block, Fact, Section, Text
from console.app.picture import Picture
from console.feed.messages import EngineView, GatewayView, Snapshot
from store.figure_sql import deciding


def engine_sections(picture: Picture) -> list[Section]:
    snapshot = picture.snapshot
    if snapshot is None:
        return []
    record = Record.of(snapshot)
    found: list[Section] = []
    for engine in picture.engines:
        found += [_engine(engine, record), columns_section(engine, record)]
    if snapshot.gateway is not None:
        found.append(_gateway(snapshot.gateway))
    return [*found, _store(snapshot, record)]


def _engine(engine: EngineView, record: Record) -> Section:
    batch = {
        "free": "free: the engine drafts no longer than the longest K of its sequences",
        "fixed": "fixed: the method always drafts its maximum; sequences are trimmed, drafting is not saved",
    }.get(engine.batch_k or "", numbers.ABSENT)
    scheduling = {
        None: numbers.ABSENT,
        True: "asynchronous: steps overlap, so a step's time runs from the end of the one before",
        False: "synchronous: gaps between steps while requests run belong to the step",
    }[engine.async_scheduling]
    blocks: list[Block] = [
        Text("What the engine said of itself when it started; its state by its process and by what is heard of it."),
        Fact("state", engine.detail or engine.state),
        Fact("started", "not known" if engine.started is None else f"{numbers.day(engine.started)} "
             f"{numbers.clock(engine.started)}, {numbers.many(engine.restarts, 'restart')} since the station began"),
        Fact("last frame", _heard(engine)),
        Fact("target", engine.target or numbers.ABSENT),
        Fact("drafter", f"{engine.drafter or numbers.ABSENT} (method {engine.method or numbers.ABSENT})"),
        Fact("vLLM", f"{engine.vllm or numbers.ABSENT} on {engine.device or numbers.ABSENT}"),
        Fact("K up to", f"{numbers.plain(engine.max_k)}: the start-up maximum, which no policy exceeds"),
        Fact("batch K", batch),
        Fact("scheduling", scheduling),
        Fact("data parallel", _ranks(engine)),
        Fact("sequences", f"up to {numbers.plain(engine.max_num_seqs)} at once"),
        Fact("context", f"up to {numbers.plain(engine.max_model_len)} tokens"),
        record.query(deciding.runs(engine.engine), "Every start of it:"),
    ]  # fmt: skip
    return Section(f"Engine {engine.engine}", engine.state, blocks)


def _heard(engine: EngineView) -> str:
    age = "never" if engine.last_frame_age is None else f"{numbers.duration(engine.last_frame_age)} ago"
    return f"{age}; one that is not heard for 25 s counts as lost"


def _ranks(engine: EngineView) -> str:
    if engine.data_parallel_size in (None, 1):
        return f"{numbers.plain(engine.data_parallel_size)} rank"
    return (
        f"{engine.data_parallel_size} ranks: the batch K is never moved, for ranks that differ deadlock; trimming only"
    )


def _gateway(gateway: GatewayView) -> Section:
    blocks: list[Block] = [
        Text("Counted by the gateway since it started; it keeps no request, so there is no SQL for these."),
        Fact("requests", f"{gateway.requests:,} taken in"),
        Fact("errors", f"{gateway.errors:,} that the engine did not answer well"),
        Fact("no engine", f"{gateway.unavailable:,} answered 503 with a Retry-After"),
        Fact("refused", f"{gateway.refused:,} answered 400 here; {gateway.hints_rejected:,} for a malformed hint"),
        Fact("hints", f"{gateway.hints_seen:,} asked for disable_speculation"),
    ]
    return Section("Gateway", gateway.state, blocks)


def _store(snapshot: Snapshot, record: Record) -> Section:
    rows = "SELECT count(*) AS rows, min(ts) AS first, max(ts) AS last FROM rows JOIN steps s ON step = s.id"
    blocks: list[Block] = [
        Text("Rows: sequence-steps that were recorded, those that are no longer kept one by one too. Single rows are "
             "kept for 48 h, cells of 10 s for 7 days, of 5 min for 60, of an hour for two years."),
        Fact("path", snapshot.store.path),
        Fact("rows", f"{snapshot.store.rows:,}"),
        Fact("size", numbers.size(snapshot.store.bytes)),
        *([Fact("error", snapshot.store.error, "critical")] if snapshot.store.error else []),
        record.query(rows, "Rows that a snapshot holds one by one:"),
    ]  # fmt: skip
    value = "recording" if snapshot.store.recording else "not recording"
    return Section("Store", "read" if record.source is not None else value, blocks)
