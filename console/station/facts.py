"""What is plainly wrong now: conditions for the alert board, from the views that the snapshot shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from console.feed.messages import EngineView, GatewayView, LossView
from console.station.engines import MISMATCH_STEPS, KnownEngine
from console.station.events import Condition, RisingCount


class Facts:
    """Remembers counters only, so that a loss is told while it is news."""

    def __init__(self) -> None:
        self._lost = RisingCount()
        self._broken = RisingCount()
        self._quarantined = RisingCount()

    def conditions(
        self,
        views: Iterable[EngineView],
        known: Mapping[str, KnownEngine],
        gateway: GatewayView | None,
        loss: LossView,
        store_error: str | None,
        now: float,
    ) -> list[Condition]:
        """Everything that is wrong, each under a cause of its own."""
        found: list[Condition] = []
        for view in views:
            found += _engine(view)
            found += _mismatch(view, known[view.engine])
        if gateway is not None and gateway.state == "down":
            found.append(Condition("gateway", "gateway_down", "critical", f"{gateway.url} is down: {gateway.detail}"))
        if store_error is not None:
            found.append(Condition("store", "recording_stopped", "critical", store_error))
        found += self._losses(loss, now)
        return found

    def _losses(self, loss: LossView, now: float) -> list[Condition]:
        found: list[Condition] = []
        if lost := self._lost.update(loss.frames_lost, now):
            found.append(Condition("lost", "telemetry_loss", "warn", f"{lost} frames lost: shown as gaps"))
        if broken := self._broken.update(loss.broken_messages, now):
            found.append(
                Condition(
                    "broken",
                    "telemetry_loss",
                    "warn",
                    f"{broken} telemetry messages were no frames (see the station's log)",
                )
            )
        if rows := self._quarantined.update(loss.quarantined, now):
            found.append(
                Condition("quarantine", "quarantine", "warn", f"{rows} impossible rows set aside: in no figure")
            )
        return found


def _engine(view: EngineView) -> list[Condition]:
    if view.state in ("restarting", "failed", "lost"):
        text = view.detail or f"nothing heard of it for {view.last_frame_age or 0:.0f} s"
        return [Condition(f"down {view.engine}", "engine_down", "critical", f"engine {view.engine}: {text}")]
    return []


def _mismatch(view: EngineView, known: KnownEngine) -> list[Condition]:
    found: list[Condition] = []
    if known.mismatch_steps > MISMATCH_STEPS and known.mismatch is not None:
        found.append(
            Condition(
                f"mismatch {view.engine}",
                "policy_mismatch",
                "critical",
                f"engine {view.engine} {known.mismatch}, for {known.mismatch_steps} steps",
            )
        )
    record = known.record
    if record is not None and record.configured.mode == "schedule" and record.resolved.mode != "schedule":
        why = record.resolved.reason or "no reason given"
        found.append(
            Condition(
                f"dropped {view.engine}",
                "policy_mismatch",
                "critical",
                f"engine {view.engine} dropped the schedule: {why}",
            )
        )
    if view.policy_error:
        found.append(
            Condition(
                f"refused {view.engine}",
                "policy_mismatch",
                "critical",
                f"engine {view.engine} refused the policy: {view.policy_error}",
            )
        )
    return found
