"""Builds the complete picture that goes out 4 times a second, from what the other parts hold. Reads only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from console.feed.messages import BucketView, EngineView, LossView, StoreView
from console.station.engine_supervisor import EngineSupervisor
from console.station.engines import KnownEngine
from console.station.policy import PolicyBook
from console.station.recorder import Recorder
from store.figures import Figures
from store.windows import EngineLoad

SNAPSHOT_SECONDS: Final = 0.25


def engine_view(
    known: KnownEngine, supervisor: EngineSupervisor | None, book: PolicyBook, load: EngineLoad | None, now: float
) -> EngineView:
    """One engine: its process from the supervisor (None when it is not ours), the rest from what it said."""
    record = known.record
    state = book.for_engine(known.engine)
    view = EngineView(
        engine=known.engine,
        owned=supervisor is not None,
        state="lost" if known.lost(now) else "serving",
        configured=state.policy,
        executed_k=known.executed.k if known.executed else None,
        executed_limit=known.executed.limit if known.executed else None,
        mismatch=known.mismatch,
        running=load.running if load is not None else 0,
        waiting=load.waiting if load is not None else 0,
        policy_sent=state.version,
        policy_applied=known.policy_applied,
        policy_error=known.policy_error,
        last_frame_age=None if known.heard is None else max(0.0, now - known.heard),
        restarts=max(0, known.boots - 1),
    )
    if record is not None:
        view = msgspec.structs.replace(
            view,
            pid=record.pid,
            started=record.ts,
            target=record.target,
            drafter=record.drafter,
            method=record.method,
            vllm=record.vllm,
            device=record.device,
            max_k=record.max_k,
            max_num_seqs=record.max_num_seqs,
            batch_k=record.batch_k,
            async_scheduling=record.async_scheduling,
            data_parallel_size=record.data_parallel_size,
            max_model_len=record.max_model_len,
            resolved=record.resolved,
        )
    return view if supervisor is None else _with_process(view, supervisor)


def _with_process(view: EngineView, supervisor: EngineSupervisor) -> EngineView:
    spec = supervisor.spec
    serving = supervisor.state == "serving"
    return msgspec.structs.replace(
        view,
        state="lost" if serving and view.state == "lost" else supervisor.state,
        detail=supervisor.detail,
        pid=supervisor.pid,
        started=supervisor.started,
        restarts=supervisor.restarts,
        phases=supervisor.phases(),
        target=view.target or spec.model,
        drafter=view.drafter or spec.drafter,
        max_k=view.max_k or spec.max_k,
        max_num_seqs=view.max_num_seqs or spec.max_num_seqs,
        running=view.running if serving else 0,
        waiting=view.waiting if serving else 0,
    )


class Figured(msgspec.Struct, frozen=True):
    """What the live windows gave for one snapshot."""

    buckets: list[BucketView]
    total: Figures | None
    tokens_per_second: float | None
    loads: dict[str, EngineLoad]


def figured(recorder: Recorder, engines: Iterable[str], now: float) -> Figured:
    """Read the live windows, under their lock."""
    with recorder.lock:
        loads = {engine: load for engine in engines if (load := recorder.windows.engine_load(engine)) is not None}
        windows = recorder.windows.buckets(now)
        total = recorder.windows.total(now)
        rate = recorder.windows.tokens_per_second(now)
    return Figured([as_feed(BucketView, window) for window in windows], total, rate, loads)


def store_view(recorder: Recorder) -> StoreView:
    return StoreView(
        path=str(recorder.store.path),
        recording=recorder.error is None,
        rows=recorder.counts().rows,
        bytes=recorder.store.size(),
        error=recorder.error,
    )


def loss_view(recorder: Recorder) -> LossView:
    counts = recorder.counts()
    return LossView(
        gaps=counts.gaps,
        frames_lost=counts.frames_lost,
        quarantined=counts.quarantined,
        unattributed=counts.unattributed,
        broken_messages=counts.broken_messages,
    )


def as_feed(kind: Any, value: Any) -> Any:
    """A struct of the store as the feed's struct of the same fields: no field is copied by hand, none forgotten."""
    return kind(**{name: getattr(value, name) for name in kind.__struct_fields__})
