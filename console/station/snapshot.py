"""Builds the complete picture that goes out 4 times a second, from what the other parts hold. Reads only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from console.feed.messages import BucketView, EngineView, LossView, StoreView
from console.picturing.bucket_views import BucketViews
from console.picturing.engine_record import told_by
from console.station.engine_supervisor import EngineSupervisor
from console.station.engines import KnownEngine
from console.station.policy import PolicyBook
from console.station.recorder import Recorder
from console.station.scraper import LIMITS_OF_VIEW, WINDOW_SECONDS, Scraper, Seen
from store.buckets import model_version
from store.engine_loads import EngineLoad
from store.figures import Figures
from store.imports.observations import Observation
from store.observed import Observed, observed_buckets, observed_total
from store.runs import observed_engine

SNAPSHOT_SECONDS: Final = 0.25

_WINDOW_LABEL: Final = f"{WINDOW_SECONDS / 60:.0f} min"


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
        unexplained=known.mismatch_steps > 0,
        running=load.running if load is not None else 0,
        waiting=load.waiting if load is not None else 0,
        policy_sent=state.version,
        policy_applied=known.policy_applied,
        policy_error=known.policy_error,
        reverted=known.reverted,
        orphaned=known.orphaned,
        last_frame_age=None if known.heard is None else max(0.0, now - known.heard),
        restarts=max(0, known.boots - 1),
    )
    if record is not None:
        view = msgspec.structs.replace(
            view,
            pid=record.pid,
            resolved=known.resolved(state.policy),
            **told_by(record),
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
        device=view.device or supervisor.device,
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


def figured(recorder: Recorder, views: BucketViews, engines: Iterable[str], now: float) -> Figured:
    """Read the live windows, under their lock."""
    with recorder.lock:
        loads = {engine: load for engine in engines if (load := recorder.windows.engine_load(engine)) is not None}
        windows = recorder.windows.buckets(now)
        total = recorder.windows.total(now)
        rate = recorder.windows.tokens_per_second(now)
    return Figured(views.of(windows), total, rate, loads)


def observed_view(scraper: Scraper, seen: Seen, now: float) -> EngineView:
    """An engine of which only the counters are known. What they can't tell stays absent, and is said."""
    sample, lost = seen.sample, scraper.lost(seen, now)
    model = f" (model {sample.model})" if sample.model else ""
    return EngineView(
        engine=sample.engine,
        owned=False,
        state="lost" if lost else "serving",
        detail=scraper.trouble(seen, now) or f"{LIMITS_OF_VIEW}{model}",
        running=None if lost else sample.running,
        waiting=None if lost else sample.waiting,
        last_frame_age=max(0.0, now - sample.ts),
        restarts=seen.restarts,
    )


def observed_figured(scraper: Scraper, now: float) -> Figured:
    """The figures of what was observed recently: one row for each model version, pooled over everything else."""
    recent = scraper.recent(now)
    counted = [_counted(observation) for observation in recent]
    buckets = [
        BucketView(
            key=found.key,
            figures=found,
            window_label=_WINDOW_LABEL,
            last_seen=found.window.end if found.window is not None else now,
        )
        for found in observed_buckets(counted, ("model_version",))
    ]
    buckets.sort(key=lambda bucket: bucket.key.model_version or "")
    present = {engine for engine, seen in scraper.engines.items() if not scraper.lost(seen, now)}
    rate = _rate_now(seen for seen in recent if seen.engine in present)
    return Figured(buckets, observed_total(counted), rate, {})


def _counted(observation: Observation) -> Observed:
    """As the store gives it back: under the model version that the ingest books it under."""
    engine = observed_engine(observation.engine, "", observation.since, observation.model)
    return Observed(
        engine=observation.engine,
        model_version=model_version(engine),
        drafts=observation.drafts,
        draft_tokens=observation.draft_tokens,
        accepted_tokens=observation.accepted_tokens,
        accepted_per_position=observation.accepted_per_position,
        generation_tokens=observation.generation_tokens,
        stretches=[(observation.since, observation.ts)],
    )


def _rate_now(recent: Iterable[Observation]) -> float | None:
    """Tokens/s of all engines, each over its last stretch; None where no engine tells."""
    last = {seen.engine: seen for seen in recent}
    rates = [
        seen.generation_tokens / (seen.ts - seen.since) for seen in last.values() if seen.generation_tokens is not None
    ]
    return sum(rates) if rates else None


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
