"""Snapshots for the console's tests, built by small named functions. All times count from `NOW`."""

from __future__ import annotations

import math
from typing import Any

import msgspec
from msgspec.structs import replace

from console.feed.bucket_detail import BucketDetail, Level, MarginalGain, MeasuredK, WorstRow, WorstSequence
from console.feed.messages import (
    AlertView,
    BucketView,
    CertificateView,
    EngineView,
    Event,
    GatewayView,
    LossView,
    Phase,
    ReplayMark,
    ReplayView,
    Series,
    Snapshot,
    StoreView,
    UnconfirmedView,
    WorkloadView,
)
from console.feed.protocol import HistoryEntry
from engine.policy.words import parse_mode
from engine.records import PolicyMode
from store.balance.records import Balance, LeftOut, WorkloadBalance
from store.figures import BucketKey, Figures, SeriesPoint, Window
from store.judge.alerts import Cause
from store.judge.reports import AlertReport
from store.whatif.figures import Predicted, Recorded, WhatIf, WhatIfBucket

NOW = 1_790_000_100.0
"""2026-09-21 14:15:00 UTC."""

VERSION = "SmolLM2-135M-Instruct+ngram/ngram@vllm-0.32.0"
HOSTILE = "[bold red]x[/]'; DROP TABLE steps;--"
STATIC_4 = PolicyMode(mode="static", k=4)
SCHEDULE = PolicyMode(mode="schedule", schedule=[(1, 4, 4), (5, 12, 1), (13, 32, 0)])


def key(workload: str, context: str = "0-512", temperature: str = "0", version: str = VERSION) -> BucketKey:
    return BucketKey(workload, context, temperature, version)


def figures(bucket: BucketKey, alpha: float | None, rate: float, n: int = 118, **changes: Any) -> Figures:
    """Figures of a bucket that drafts 4 tokens a step at acceptance rate `alpha`."""
    steps = 0 if alpha is None else n * 30
    drafted = steps * 4
    accepted = 0 if alpha is None else round(drafted * alpha)
    rows = max(steps, n * 30)
    error = None if alpha is None else 0.3 / math.sqrt(n)
    values: dict[str, Any] = {
        "workload": bucket.workload,
        "context": bucket.context,
        "temperature": bucket.temperature,
        "model_version": bucket.model_version,
        "sequences": n,
        "steps": steps,
        "decode_rows": rows,
        "drafted": drafted,
        "accepted": accepted,
        "emitted": rows + accepted,
        "alpha": alpha,
        "alpha_low": None if alpha is None or error is None else max(0.0, alpha - error),
        "alpha_high": None if alpha is None or error is None else min(1.0, alpha + error),
        "pooled_acceptance": alpha,
        "conditional_acceptance": None if alpha is None else min(0.99, alpha + 0.08),
        "mean_acceptance_length": None if alpha is None else 1 + 4 * alpha,
        "committed_per_step": 1 + (0 if alpha is None else 4 * alpha),
        "waste_ratio": None if alpha is None else 1 - alpha,
        "drafted_share": steps / rows if rows else None,
        "position_marginal": [] if alpha is None else [round(min(1.0, alpha * 1.4) * 0.8**j, 3) for j in range(4)],
        "position_conditional": [] if alpha is None else [round(min(1.0, alpha * 1.4), 3), 0.8, 0.8, 0.8],
        "position_at_risk": [] if alpha is None else [round(min(1.0, alpha * 1.4), 3), 0.78, 0.77, 0.76],
        "k_histogram": {"4": rows},
        "drafted_histogram": {"4": steps},
        "cause_histogram": {"full": steps, "no_proposal": rows - steps},
        "limit_histogram": {"static": rows},
        "tokens_per_second": rate,
        "window": Window(NOW - 300, NOW),
        "few": n < 10,
        "state": "few" if n < 10 else "ok",
    }
    return Figures(**{**values, **changes})


def bucket(
    bucket_key: BucketKey, alpha: float | None, rate: float, n: int = 118, *, seen: float = NOW - 0.3, **changes: Any
) -> BucketView:
    spark = [None if alpha is None else alpha + 0.12 * math.sin(index / 2.0) * (index / 12) for index in range(12)]
    mix = [1.0, 0.0, 0.0, 0.0, 0.0] if alpha is None else [0.02, 0.0, 0.1, 0.18, 0.7]
    return BucketView(
        key=bucket_key,
        figures=figures(bucket_key, alpha, rate, n, **changes),
        window_label="5 min",
        spark=spark,
        k_mix=mix,
        last_seen=seen,
    )


def speedup(value: float, error: float) -> dict[str, Any]:
    return {
        "speedup": value,
        "speedup_low": value - error,
        "speedup_high": value + error,
        "speedup_state": "ok",
    }


def four_workloads() -> list[BucketView]:
    return [
        bucket(key("code"), 0.53, 96.1, **speedup(1.41, 0.06)),
        bucket(key("repeat", "512-2048"), 0.81, 71.5, 64, **speedup(1.62, 0.07)),
        bucket(key("chat", "0-512", "(0,0.5]"), 0.38, 30.8, 97),
        bucket(key("creative", "0-512", "(0.5,1]"), 0.12, 13.9, 41, **speedup(0.71, 0.09)),
        bucket(key(HOSTILE), 0.44, 8.2, 12),
        bucket(key("untagged"), None, 0.4, 2),
        bucket(key("summarise", "2048-8192"), 0.61, 0.0, 31, seen=NOW - 240),
    ]


def many_buckets(count: int, shift: float = 0.0) -> list[BucketView]:
    """`count` buckets whose figures move with `shift`."""
    return [
        bucket(
            key(f"workload-{index:03}", ("0-512", "512-2048", "2048-8192")[index % 3]),
            0.1 + 0.8 * abs(math.sin(index * 0.37 + shift)),
            50 + 49 * math.sin(index + shift),
            30 + index,
            speedup=1.2 + 0.3 * math.sin(index + shift),
            speedup_low=1.1,
            speedup_high=1.3,
            speedup_state="ok",
        )
        for index in range(count)
    ]


def started_phases() -> list[Phase]:
    return [
        Phase("model", "done", 0.2, "SmolLM2-135M-Instruct, converted before"),
        Phase("engine process", "done", 6.1, "pid 4242"),
        Phase("weights", "done", 2.4),
        Phase("kv cache", "done", 0.7),
        Phase("warm-up", "done", 9.8),
        Phase("health", "done", 0.3),
    ]


def starting_phases() -> list[Phase]:
    return [
        Phase("model", "done", 3.1, "SmolLM2-135M-Instruct converted"),
        Phase("engine process", "done", 6.1, "pid 4242"),
        Phase("weights", "running", 1.7),
        Phase("kv cache", "pending"),
        Phase("warm-up", "pending"),
        Phase("health", "pending"),
    ]


def engine(**changes: Any) -> EngineView:
    values: dict[str, Any] = {
        "engine": "e0",
        "owned": True,
        "state": "serving",
        "pid": 4242,
        "started": NOW - 1260,
        "phases": started_phases(),
        "target": "SmolLM2-135M-Instruct",
        "drafter": "ngram",
        "method": "ngram",
        "vllm": "0.32.0+cpu",
        "device": "cpu",
        "max_k": 4,
        "max_num_seqs": 32,
        "batch_k": "free",
        "async_scheduling": False,
        "data_parallel_size": 1,
        "max_model_len": 2048,
        "configured": STATIC_4,
        "resolved": STATIC_4,
        "executed_k": 4,
        "executed_limit": "static",
        "running": 7,
        "waiting": 0,
        "policy_sent": 3,
        "policy_applied": 3,
        "last_frame_age": 0.1,
    }
    return EngineView(**{**values, **changes})


def live(**changes: Any) -> Snapshot:
    """A station that serves four workloads and a few odd ones."""
    values: dict[str, Any] = {
        "station": "s1",
        "number": 1,
        "ts": NOW,
        "started": NOW - 1300,
        "policy_version": 3,
        "policy": STATIC_4,
        "engines": [engine()],
        "gateway": GatewayView("http://127.0.0.1:8000", "serving", 4300, 1204, 0),
        "store": StoreView("~/.local/share/specdeck/specdeck.duckdb", True, 412_345, 34_000_000),
        "loss": LossView(),
        "total": figures(BucketKey(None, None, None, None), 0.55, 220.4, 365, **speedup(1.18, 0.05)),
        "buckets": four_workloads(),
        "events": [Event(NOW - 540, "control", "operator set the mode: off → static:4")],
        "tokens_per_second": 212.4,
        "running": 7,
        "waiting": 0,
    }
    return Snapshot(**{**values, **changes})


def no_bucket() -> Snapshot:
    idle = engine(running=0, executed_k=None, executed_limit=None)
    return live(buckets=[], total=None, tokens_per_second=0.0, running=0, engines=[idle], events=[])


def starting() -> Snapshot:
    young = EngineView(engine="e0", owned=True, state="starting", started=NOW - 11, phases=starting_phases())
    gateway = GatewayView("http://127.0.0.1:8000", "serving", 4300)
    return replace(no_bucket(), engines=[young], gateway=gateway, tokens_per_second=None, started=NOW - 14)


def alerting() -> Snapshot:
    """The engine is down, telemetry was lost, and one bucket drifts."""
    down = engine(
        state="restarting",
        restarts=2,
        detail="EngineCore died (signal 9); next start in 2 s",
        running=0,
        executed_k=None,
    )
    alerts = [
        AlertView(
            kind="telemetry_loss", severity="warn", state="firing", text="12 frames of e0 lost", started=NOW - 200
        ),
        AlertView(
            kind="engine_down",
            severity="critical",
            state="firing",
            text="engine e0 is down: EngineCore died (signal 9); restart 2 follows in 2 s",
            started=NOW - 9,
        ),
        AlertView(
            kind="drift",
            severity="warn",
            state="firing",
            text="chat 0-512: acceptance at depth 1 is 9 points under its baseline",
            started=NOW - 700,
            bucket=key("chat", "0-512", "(0,0.5]"),
        ),
    ]
    return live(engines=[down], alerts=alerts, loss=LossView(gaps=1, frames_lost=12), running=0, tokens_per_second=0.0)


def drifting() -> list[AlertView]:
    """What a snapshot shows of the judge's alerts that are not over."""
    views = {report.id: report for report in alert_history()}
    return [_alert_view(views[7]), _alert_view(views[8])]


def _alert_view(report: AlertReport) -> AlertView:
    return AlertView(
        kind=report.kind, severity=report.severity, state=report.state, text=report.text, started=report.started,
        ended=report.ended, bucket=report.bucket, id=report.id, acknowledged=report.acknowledged,
        snoozed_until=report.snoozed_until,
    )  # fmt: skip


def alert_history() -> list[AlertReport]:
    """A drift that fires, a speedup that may be too low, a version push of yesterday, and one that was seen."""
    chat, code = key("chat", "0-512", "(0,0.5]"), key("code")
    fallen = {
        "depth": 1, "present": 0.38, "reference": 0.471, "against": "baseline", "fall_points": 9.1,
        "bound_points": -5.2, "n": 97, "n_effective": 61.4, "reference_n": 4211,
    }  # fmt: skip
    slow = {"speedup": 0.93, "speedup_low": 0.88, "speedup_high": 0.97, "cells": 30, "floor": 1.0}
    return [
        _report(
            3, "shift", "critical", "resolved", code, NOW - 86_000, NOW - 80_000,
            "code 0-512: acceptance at depth 3 fell by 12.4 points, from 61% to 49%, from 14:22 to 16:02 (n 310; bound "
            "−9.8). The drafter is another version.",
            {**fallen, "against": "before", "depth": 3},
            [Cause("version", "the drafter is another version: head@1a2b… → head@9c8d…", NOW - 86_100)],
        ),
        _report(
            5, "failing_workload", "warn", "firing", key("creative", "0-512", "(0.5,1]"), NOW - 2_400, None,
            "creative 0-512 (0.5,1]: 88% of the draft tokens are wasted and realised speedup 0.71× is below 1.20×.",
            {**slow, "speedup": 0.71, "floor": 1.2, "waste": 0.88}, [], acknowledged="ada",
        ),
        _report(
            7, "drift", "warn", "firing", chat, NOW - 760, None,
            "chat 0-512 (0,0.5]: acceptance at depth 1 is 9.1 points under its 7-day baseline since 14:02 (n 97; bound "
            "−5.2). Mix and version unchanged.",
            fallen, [Cause("gradual", "it fell over several windows", None)],
        ),
        _report(
            8, "speedup_floor", "warn", "pending", None, NOW - 40, None,
            "engine e0: realised speedup 0.93× is below 1.00× in the window that ended at 14:14; the next will tell.",
            slow, [],
        ),
    ]  # fmt: skip


def _report(
    number: int, kind: Any, severity: Any, state: Any, where: BucketKey | None, started: float, ended: float | None,
    text: str, evidence: dict[str, Any], causes: list[Cause], acknowledged: str | None = None,
) -> AlertReport:  # fmt: skip
    return AlertReport(
        kind=kind, severity=severity, bucket=where, state=state, started=started, ended=ended, evidence=evidence,
        causes=causes, engine="e0", id=number, text=text, acknowledged=acknowledged, snoozed_until=None,
    )  # fmt: skip


def mismatched() -> Snapshot:
    """The engine resolved another policy than configured, and executes yet another."""
    odd = engine(
        resolved=PolicyMode(mode="static", k=2, reason="the start-up maximum of this engine is 2"),
        executed_k=1,
        executed_limit="max",
        mismatch="rows show K 1 for 64 steps and no limit explains it",
        unexplained=True,
        policy_applied=2,
    )
    return live(engines=[odd])


def workloads() -> list[WorkloadView]:
    return [
        WorkloadView(name="code", k=3, running=3, why="K 2 → 3: predicted +6 %, saw +5 ±3 %"),
        WorkloadView(name="repeat", k=4, running=2),
        WorkloadView(name="chat", k=1, running=2),
        WorkloadView(name=HOSTILE, running=0),
    ]


def fallen_workloads() -> list[WorkloadView]:
    """One in tier-2 fallback, one in the vanilla lane, one that the controller would change if it might."""
    creative = WorkloadView(
        name="creative", k=0, fallback=True, since=NOW - 240, next_try=NOW + 32, running=1,
        why="its marginal gain at K = 1 is at most 0.94 over 5 min (812 steps): K = 0 for it",
    )  # fmt: skip
    code, repeat, chat, hostile = workloads()
    chat = replace(chat, advice="K 1 → 2, predicted +4 %")
    return [replace(code, k=3), replace(repeat, k=3, lane="vanilla"), chat, creative, hostile]


def history() -> list[HistoryEntry]:
    """Newest first. What a later change of the same thing has overtaken can't be undone alone."""
    static_4, static_2 = {"mode": "static", "k": 4}, {"mode": "static", "k": 2}
    return [
        HistoryEntry(
            ts=NOW - 60, actor="operator", action="mode", before=static_2, after=static_4, policy=3,
            text="14:14 operator: mode static:2 → static:4", undoable=True,
        ),
        HistoryEntry(
            ts=NOW - 540, actor="policy", action="k", workload="code", before={"k": 3}, after={"k": 4}, policy=2,
            numbers={"predicted": 0.06}, text="14:06 adaptive: code K 3→4, predicted +6 %, saw +5 %",
        ),
        HistoryEntry(
            ts=NOW - 900, actor="operator", action="cap", before={"cap": None}, after={"cap": 3}, policy=1,
            text="14:00 operator: cap none → 3", undoable=True,
        ),
    ]  # fmt: skip


def calm() -> Snapshot:
    """A schedule in force and followed, nobody in fallback, a drill that passed."""
    followed = engine(configured=SCHEDULE, resolved=SCHEDULE, executed_k=1, executed_limit="schedule")
    drill = CertificateView(
        ts=NOW - 5400, passed=True, model_version=VERSION, text="fallback, lane, hint and mode off each gave K 0"
    )
    return live(policy=SCHEDULE, engines=[followed], workloads=workloads(), certificate=drill)


def troubled() -> Snapshot:
    """Adaptive within a schedule: a fallback, a lane, a raise that waits, a mismatch, a stale drill."""
    mode = PolicyMode(mode="adaptive", schedule=SCHEDULE.schedule, act=True)
    lower = PolicyMode(
        mode="adaptive", schedule=[(1, 4, 3), (5, 12, 1), (13, 32, 0)], act=True,
        reason="K above the engine's start-up maximum 3 is clamped",
    )  # fmt: skip
    odd = engine(
        max_k=3, configured=mode, resolved=lower, executed_k=0, executed_limit="max",
        mismatch="rows show K 0 for 64 steps and no limit explains it", unexplained=True,
        reverted=NOW - 780, orphaned=NOW - 95,
    )  # fmt: skip
    gateway = GatewayView(
        "http://127.0.0.1:8000", "serving", 4300, 1204, vanilla_engine=True, vanilla_ok=False, vanilla_requests=118,
        vanilla_spilled=3,
    )  # fmt: skip
    drill = CertificateView(
        ts=NOW - 400_000, passed=True, model_version="other", stale="the drafter is another one since then",
        text="fallback, lane, hint and mode off each gave K 0",
    )  # fmt: skip
    return live(
        policy=mode, cap=2, engines=[odd], workloads=fallen_workloads(), gateway=gateway, certificate=drill,
        unconfirmed=UnconfirmedView(confirm_by=NOW + 271, reverts_to=PolicyMode(mode="static", k=2)),
    )  # fmt: skip


START, END = NOW - 900.0, NOW + 1500.0
"""Of the trace that is replayed: 14:00 to 14:40, seen at 14:15."""


def marks() -> list[ReplayMark]:
    return [
        ReplayMark(START + 240, "control", "operator: mode off → static:4"),
        ReplayMark(START + 700, "alert", "chat 0-512 (0,0.5]: acceptance at depth 1 is 9 points under its baseline"),
        ReplayMark(START + 1000, "gap", "12 frames of e0 lost"),
        ReplayMark(START + 1400, "version", "drafter eagle3-head@2 → eagle3-head@3"),
        ReplayMark(START + 1750, "control", "adaptive: code K 4→2, predicted +6 %"),
        ReplayMark(START + 2000, "alert", "code 0-512 0: realised speedup 0.92 is below 1.0"),
    ]


def replay_view(**changes: Any) -> ReplayView:
    values: dict[str, Any] = {
        "path": "~/traces/night.jsonl.zst",
        "start": START,
        "end": END,
        "complete": True,
        "playing": True,
        "speed": 50.0,
        "marks": marks(),
        "position": "step 1704 of e0",
    }
    return ReplayView(**{**values, **changes})


def replayed(ts: float = NOW, number: int = 1, **changes: Any) -> Snapshot:
    """The alert of chat fires. `changes`: of the replay's view."""
    drift = AlertView(
        kind="drift", severity="warn", state="firing", started=START + 700, bucket=key("chat", "0-512", "(0,0.5]"),
        text="chat 0-512 (0,0.5]: acceptance at depth 1 is 9 points under its baseline",
    )  # fmt: skip
    quiet = StoreView("~/traces/night.jsonl.zst", False, 412_345, 34_000_000)
    return live(
        source="replay", ts=ts, number=number, gateway=None, store=quiet, alerts=[drift], workloads=workloads(),
        engines=[engine(owned=False, pid=None, phases=[])], replay=replay_view(**changes),
    )  # fmt: skip


def what_if(policy: str) -> WhatIf:
    """Recorded at K 4; what another K would have given."""
    mode = parse_mode(policy)
    k = {"off": 0}.get(mode.mode, mode.k or 3)
    steps = (1.0, 1.53, 1.87, 2.06, 2.14)[min(k, 4)]
    rate = (142.0, 188.0, 205.0, 208.0, 212.4)[min(k, 4)]
    recorded = Recorded(tokens_per_step=2.14, tokens_per_second=212.4)
    predicted = Predicted(
        tokens_per_step=steps, tokens_per_step_low=steps * 0.97, tokens_per_step_high=steps * 1.02,
        naive_tokens_per_step=steps * 1.03, exact_share=0.94, recorded_start_share=0.61,
        tokens_per_second=rate, tokens_per_second_low=rate * 0.95, tokens_per_second_high=rate * 1.05,
    )  # fmt: skip

    def one(workload: str, context: str, share: float) -> WhatIfBucket:
        return WhatIfBucket(
            engine="e0", workload=workload, context=context, temperature="0", model_version=VERSION, decode_rows=4000,
            mean_k=float(k), recorded=Recorded(tokens_per_step=2.14 * share, tokens_per_second=50.0),
            predicted=msgspec.structs.replace(predicted, tokens_per_step=steps * share),
        )  # fmt: skip

    return WhatIf(
        policy=mode, recorded=recorded, predicted=predicted, decode_rows=12_000, mean_k=float(k),
        buckets=[one("code", "0-512", 1.1), one("repeat", "512-2048", 1.3), one(HOSTILE, "0-512", 0.8)],
        notes=["A draft that was right at a position is taken to be right when it is drafted afresh."],
    )  # fmt: skip


def observed() -> Snapshot:
    """A station that only observes."""
    return live(policy=None, policy_version=None, engines=[engine(configured=None, resolved=None, owned=False)])


def series(bucket_key: BucketKey | None, points: int = 120, seconds: float = 900.0) -> Series:
    """A quarter of an hour in which K went 4 → 2 and the load had a hump, with a control and a gap."""
    cell = seconds / points

    def point(index: int) -> SeriesPoint:
        share = index / max(1, points - 1)
        busy = math.exp(-(((share - 0.6) / 0.15) ** 2))
        missing = 0.30 < share < 0.34
        alpha = None if missing else 0.52 - 0.18 * share + 0.04 * math.sin(index * 0.9)
        k = None if missing else (2.0 if share > 0.5 else 4.0)
        low, high = (None, None) if alpha is None else (alpha - 0.04, alpha + 0.05)
        fast = None if missing else 1.12 + 0.3 * share - 0.25 * busy
        gain = 1.05 + 0.2 * share if index % 2 and share > 0.4 else None
        return SeriesPoint(
            NOW - seconds + cell * (index + 1), alpha, None if alpha is None else 0.9 - alpha, k, 90.0,
            None if missing else 2 + 12 * busy, 2.0, sequences=0 if missing else 8 + index % 9,
            alpha_low=low, alpha_high=high, speedup=fast, speedup_low=None if fast is None else fast - 0.06,
            speedup_high=None if fast is None else fast + 0.06, marginal=gain,
            marginal_low=None if gain is None else gain - 0.05, marginal_high=None if gain is None else gain + 0.05,
        )  # fmt: skip

    marks = [
        Event(NOW - 0.5 * seconds, "control", "static:4 → static:2"),
        Event(NOW - 0.68 * seconds, "gap", "12 frames lost"),
    ]
    return Series(key=bucket_key, cell_seconds=cell, points=[point(index) for index in range(points)], marks=marks)


def bucket_detail(bucket_key: BucketKey) -> BucketDetail:
    """K 4 and K 2 were measured lately, and a few at K 0; two sequences do badly."""
    rows = [WorstRow(NOW - 9 + n, 4 if n < 8 else 2, "schedule" if n < 8 else "cap", 4 if n < 8 else 2, n % 2,
                     1 + n % 2, "full") for n in range(12)]  # fmt: skip
    return BucketDetail(
        key=bucket_key, since=NOW - 900, until=NOW, batch=6.8, cost=0.08, acceptance=0.61,
        theory=[1.0, 1.491, 1.709, 1.769, 1.739],
        measured=[
            MeasuredK(0, 0.97, 0.94, 1.0, "ok", 412, 11.2), MeasuredK(2, 1.41, 1.35, 1.47, "ok", 12_800, 6.8),
            MeasuredK(4, 1.22, 1.13, 1.31, "ok", 5_104, 3.1),
        ],
        worst=[
            WorstSequence(name=f"chatcmpl-{HOSTILE}", steps=31, drafted=124, accepted=11, alpha=0.09, rows=rows),
            WorstSequence(name="chatcmpl-9a77-0b5f01ca", steps=12, drafted=40, accepted=6, alpha=0.15, rows=rows[:5]),
        ],
        level=Level(depth=4, baseline=0.47, baseline_sequences=4211, pinned=0.5, pinned_sequences=9800),
        marginal=MarginalGain(ts=NOW - 12, k=2, gain=1.2, low=1.15, high=1.26, sequences=41),
    )  # fmt: skip


def few_series(bucket_key: BucketKey, points: int, seconds: float) -> Series:
    """A bucket that has just begun: three cells with a sequence or two, no speedup yet."""
    whole = series(bucket_key, points, seconds)
    young = [replace(point, sequences=1, alpha_low=None, alpha_high=None, speedup=None, speedup_low=None,
                     speedup_high=None, marginal=None) for point in whole.points[-3:]]  # fmt: skip
    return replace(whole, points=young, marks=[])


def few_detail(bucket_key: BucketKey) -> BucketDetail:
    calibrating = MeasuredK(4, None, None, None, "calibrating", 61, 2.0)
    return BucketDetail(
        key=bucket_key, batch=2.0, acceptance=0.4, measured=[calibrating],
        absent={
            "cost": "step times not measured yet", "worst": "no recent sequence with 8 draft steps",
            "level": "no baseline yet: one is usable after a day", "marginal": "the controller has none yet",
        },
    )  # fmt: skip


def balance(**changes: Any) -> Balance:
    """Of the five minutes before NOW: whose drafts paid, who lost by the others', who drafted nothing."""
    paid = [
        [8.9, 2.4, 1.6, 0.7, 0.0],
        [4.1, 6.3, 1.2, 0.5, 0.0],
        [3.2, 1.8, 2.9, 0.9, 0.0],
        [2.0, 1.1, 0.9, 1.4, 0.0],
        [0.6, 0.4, 0.3, 0.1, 0.0],
    ]
    names = ("code", "repeat", "chat", "creative", HOSTILE)
    of = zip(names, (103.6, 71.2, 48.4, 22.9, 7.1), (52.7, 49.9, 7.3, 1.2, 0.0), strict=True)
    workloads = [_balanced(place, name, used, brought, paid) for place, (name, used, brought) in enumerate(of)]
    amounts = ("used", "vanilla", "saved", "brought", "paid_own", "paid_others", "unexplained", "others_paid",
               "drafts_cost", "engine_seconds")  # fmt: skip
    total = replace(
        workloads[0], workload=None, saved_low=59.9, saved_high=77.7, covered=0.97, measured=0.93,
        **{name: sum(getattr(one, name) for one in workloads) for name in amounts},
    )  # fmt: skip
    made = Balance(
        source="live", window=Window(NOW - 300, NOW), steps=6_204, engine_seconds=268.1, covered=0.97,
        left_out=LeftOut(not_calibrated=7.6, no_decode_rows=7.3), gaps=0, frames_lost=0, total=total,
        workloads=workloads, paid=paid,
    )  # fmt: skip
    return replace(made, **changes)


def calibrating_balance() -> Balance:
    """An engine whose vanilla times are not measured yet."""
    bare = [
        WorkloadBalance(
            workload=name,
            state="calibrating",
            decode_rows=900,
            draft_tokens=1200,
            engine_seconds=seconds,
            covered=0.9,
            measured=0.31,
        )
        for name, seconds in (("code", 103.6), ("chat", 48.4))
    ]
    return replace(
        balance(), workloads=bare, paid=None, covered=0.9, left_out=LeftOut(not_calibrated=15.2),
        total=replace(bare[0], workload=None, engine_seconds=152.0),
    )  # fmt: skip


def _balanced(place: int, name: str, used: float, brought: float, paid: list[list[float]]) -> WorkloadBalance:
    own, others = paid[place][place], sum(paid[place]) - paid[place][place]
    others_paid, rest = sum(row[place] for row in paid) - own, 0.004 * used
    saved = brought - own - others - rest
    few = name == HOSTILE
    return WorkloadBalance(
        workload=name, state="few" if few else "ok", decode_rows=round(used * 30),
        draft_tokens=0 if few else round(used * 90), engine_seconds=used * 1.02, covered=0.98, measured=0.93, used=used,
        vanilla=used + saved, saved=saved, saved_low=None if few else saved - 0.05 * used,
        saved_high=None if few else saved + 0.05 * used, brought=brought, paid_own=own, paid_others=others,
        unexplained=rest, others_paid=others_paid, drafts_cost=own + others_paid,
    )  # fmt: skip


LOG = (
    "".join(
        f"(EngineCore pid=4242) INFO 09-21 13:54:{second:02} [core.py:{90 + second}] step {second}: all is well\n"
        for second in range(40)
    )
    + '(APIServer pid=4240) \x1b[32mINFO\x1b[0m: 127.0.0.1 - "POST /v1/chat/completions [bold]x[/]" 200 OK\n'
)
