"""The station's figures in Prometheus' text form. Labels are bounded: workload tags are, and so are all other keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from console.feed.messages import BucketView, EngineView, GatewayView, Snapshot
from store.figures import Figures

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

BUCKET_LABELS: Final = ("workload", "context", "temperature", "model_version")

Value = Callable[[Figures], float | None]

BUCKET_GAUGES: Final[dict[str, tuple[str, Value]]] = {
    "acceptance_rate": (
        "Mean over draft steps of accepted/drafted, over the bucket's window. Never compare across K.",
        lambda figures: figures.alpha,
    ),
    "acceptance_rate_low": ("Lower end of its 95 % interval, clustered by sequence.", lambda f: f.alpha_low),
    "acceptance_rate_high": ("Upper end of its 95 % interval.", lambda f: f.alpha_high),
    "pooled_acceptance": (
        "Accepted / drafted tokens: vLLM's draft acceptance rate.",
        lambda figures: figures.pooled_acceptance,
    ),
    "conditional_acceptance": (
        "Accepted / (accepted + draft steps with a rejection): the alpha of the speedup formula.",
        lambda figures: figures.conditional_acceptance,
    ),
    "mean_acceptance_length": (
        "1 + accepted tokens / draft steps, the bonus token counted.",
        lambda figures: figures.mean_acceptance_length,
    ),
    "waste_ratio": ("(drafted - accepted) / drafted tokens.", lambda f: f.waste_ratio),
    "drafted_share": ("Draft steps / decode rows.", lambda f: f.drafted_share),
    "realised_speedup": (
        "Vanilla-equivalent time / time taken, at equal batch. Absent while it is being calibrated.",
        lambda figures: figures.speedup,
    ),
    "realised_speedup_low": ("Lower end of its 95 % interval.", lambda f: f.speedup_low),
    "realised_speedup_high": ("Upper end of its 95 % interval.", lambda f: f.speedup_high),
    "tokens_per_second": ("Tokens committed per wall second of the window.", lambda f: f.tokens_per_second),
    "sequences": ("Sequences in the window.", lambda f: f.sequences),
    "draft_steps": ("Draft steps in the window.", lambda f: f.steps),
    "window_seconds": (
        "Length of the window of these figures: it adapts to the traffic.",
        lambda figures: figures.window.end - figures.window.start if figures.window else None,
    ),
}
"""By name after `specdeck_bucket_`; `specdeck_all_` for everything pooled."""

ENGINE_GAUGES: Final[dict[str, tuple[str, Callable[[EngineView], float | None]]]] = {
    "up": ("1 while it serves.", lambda view: float(view.state == "serving")),
    "executed_k": ("Draft length that the last step asked of the drafter.", lambda view: view.executed_k),
    "running": ("Sequences running.", lambda view: view.running),
    "waiting": ("Sequences waiting.", lambda view: view.waiting),
    "policy_applied": ("Version of the policy that its last step carried out.", lambda view: view.policy_applied),
    "policy_mismatch": (
        "1 while what is executed differs from what was configured and no limit or cause explains it.",
        lambda view: None if view.configured is None else float(view.unexplained),
    ),
    "last_frame_age_seconds": ("Since anything was heard of it.", lambda view: view.last_frame_age),
}

COUNTERS: Final[dict[str, tuple[str, Callable[[Snapshot], float]]]] = {
    "rows": ("Sequence-steps recorded.", lambda snapshot: snapshot.store.rows),
    "frames_lost": ("Telemetry frames that never arrived.", lambda snapshot: snapshot.loss.frames_lost),
    "gaps": ("Stretches of which nothing is known.", lambda snapshot: snapshot.loss.gaps),
    "rows_quarantined": ("Impossible rows, set apart.", lambda snapshot: snapshot.loss.quarantined),
    "rows_unattributed": ("Rows whose sequence was never introduced.", lambda snapshot: snapshot.loss.unattributed),
    "messages_broken": ("Telemetry messages that were no frames.", lambda snapshot: snapshot.loss.broken_messages),
}

GATEWAY_COUNTERS: Final[dict[str, tuple[str, Callable[[GatewayView], int]]]] = {
    "requests": ("Requests that the gateway took.", lambda view: view.requests),
    "errors": ("Answered 500 or above, or cut inside the answer.", lambda view: view.errors),
    "unavailable": (
        "Answered 503 with a Retry-After: there was no engine to take them.",
        lambda view: view.unavailable,
    ),
    "refused": ("Answered 4xx by the gateway itself.", lambda view: view.refused),
    "hints": ("Requests that asked for disable_speculation.", lambda view: view.hints_seen),
    "hints_malformed": (
        "Of the refused: a disable_speculation that is neither true nor false.",
        lambda view: view.hints_rejected,
    ),
    "unsupported": (
        "Of the refused: min_p or logit_bias, and no engine without speculation.",
        lambda view: view.unsupported,
    ),
    "vanilla": ("Requests that the engine without speculation got.", lambda view: view.vanilla_requests),
    "vanilla_spilled": (
        "Requests for it that another engine served at K = 0 while it was away.",
        lambda view: view.vanilla_spilled,
    ),
}
"""By name after `specdeck_gateway_`. No labels: what clients send names no series."""

GATEWAY_GAUGES: Final[dict[str, tuple[str, Callable[[GatewayView], float | None]]]] = {
    "up": ("1 while the gateway serves.", lambda view: float(view.state == "serving")),
    "vanilla_up": (
        "1 while the engine without speculation listens. Absent where there is none.",
        lambda view: None if view.vanilla_ok is None else float(view.vanilla_ok),
    ),
}

STATION_GAUGES: Final[dict[str, tuple[str, Callable[[Snapshot], float | None]]]] = {
    "recording": ("1 while records are written to the store.", lambda snapshot: float(snapshot.store.recording)),
    "store_bytes": ("Size of the store's file.", lambda snapshot: snapshot.store.bytes),
    "policy_version": ("Version of the policy that is sent.", lambda snapshot: snapshot.policy_version),
}


def exposition(snapshot: Snapshot) -> bytes:
    """Every family, absent figures left out: never NaN."""
    return bytes(generate_latest(_Families(snapshot)))  # all it asks for is collect()


class _Families:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        snapshot = self._snapshot
        yield from _bucket_gauges(snapshot.buckets)
        yield _k_shares(snapshot.buckets)
        yield from _overall(snapshot.total)
        yield from _engines(snapshot.engines)
        yield _alerts(snapshot)
        for name, (text, value) in COUNTERS.items():
            yield CounterMetricFamily(f"specdeck_{name}", text, value=value(snapshot))
        yield from _gateway(snapshot.gateway)
        for name, (text, gauge) in STATION_GAUGES.items():
            found = gauge(snapshot)
            if found is not None:
                yield GaugeMetricFamily(f"specdeck_{name}", text, value=found)


def _bucket_gauges(buckets: Sequence[BucketView]) -> Iterator[Metric]:
    for name, (text, value) in BUCKET_GAUGES.items():
        family = GaugeMetricFamily(f"specdeck_bucket_{name}", text, labels=BUCKET_LABELS)
        for bucket in buckets:
            found = value(bucket.figures)
            if found is not None:
                family.add_metric(_labels(bucket), found)
        yield family


def _k_shares(buckets: Sequence[BucketView]) -> Metric:
    family = GaugeMetricFamily(
        "specdeck_bucket_k_share", "Share of decode rows for which this K was asked.", labels=(*BUCKET_LABELS, "k")
    )
    for bucket in buckets:
        for k, share in enumerate(bucket.k_mix):
            if share:
                family.add_metric([*_labels(bucket), str(k)], share)
    return family


def _overall(total: Figures | None) -> Iterator[Metric]:
    for name, (text, value) in BUCKET_GAUGES.items():
        found = None if total is None else value(total)
        if found is not None:
            yield GaugeMetricFamily(f"specdeck_all_{name}", f"All buckets pooled. {text}", value=found)


def _engines(engines: Sequence[EngineView]) -> Iterator[Metric]:
    for name, (text, value) in ENGINE_GAUGES.items():
        family = GaugeMetricFamily(f"specdeck_engine_{name}", text, labels=("engine",))
        for view in engines:
            found = value(view)
            if found is not None:
                family.add_metric([view.engine], found)
        yield family


def _gateway(view: GatewayView | None) -> Iterator[Metric]:
    if view is None:
        return
    for name, (text, count) in GATEWAY_COUNTERS.items():
        yield CounterMetricFamily(f"specdeck_gateway_{name}", text, value=count(view))
    for name, (text, gauge) in GATEWAY_GAUGES.items():
        found = gauge(view)
        if found is not None:
            yield GaugeMetricFamily(f"specdeck_gateway_{name}", text, value=found)


def _alerts(snapshot: Snapshot) -> Metric:
    family = GaugeMetricFamily("specdeck_alerts_firing", "Alerts that fire now.", labels=("kind", "severity"))
    firing = Counter((alert.kind, alert.severity) for alert in snapshot.alerts if alert.state == "firing")
    for (kind, severity), count in sorted(firing.items()):
        family.add_metric([kind, severity], count)
    return family


def _labels(bucket: BucketView) -> list[str]:
    return [value or "" for value in (getattr(bucket.key, name) for name in BUCKET_LABELS)]
