"""What is plainly wrong now: conditions for the alert board, from the views that the snapshot shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from console.feed.messages import EngineView, GatewayView, LossView
from console.station.engines import MISMATCH_STEPS, KnownEngine
from console.station.events import Condition, RisingCount
from store.resolved import departs

ORPHANED_SECONDS: Final = 15.0
"""An engine announces itself every 10 s, and at once when it hears a station again."""


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
            found += _unheard(view, known[view.engine], now)
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
        text = f"engine {view.engine} {known.mismatch}, for {known.mismatch_steps} steps"
        found.append(Condition(f"mismatch {view.engine}", "policy_mismatch", "critical", text))
    other = _not_executed(view, known)
    if other is not None:
        found.append(Condition(f"dropped {view.engine}", "policy_mismatch", "critical", other))
    if view.policy_error:
        text = f"engine {view.engine} refused the policy: {view.policy_error}"
        found.append(Condition(f"refused {view.engine}", "policy_mismatch", "critical", text))
    return found


def _not_executed(view: EngineView, known: KnownEngine) -> str | None:
    """What the engine does in place of what was configured, and why; None where it does that."""
    if view.configured is None or not view.max_k:
        return None
    resolved = known.resolved(view.configured)
    if resolved is None or not departs(view.configured, resolved):
        return None
    dropped = resolved.mode != view.configured.mode
    verb = f"dropped the {view.configured.mode} policy" if dropped else "lowered the policy"
    return f"engine {view.engine} {verb}: {resolved.reason or 'no reason given'}"


def _unheard(view: EngineView, known: KnownEngine, now: float) -> list[Condition]:
    """An engine that says that no station speaks to it, and says so again, while this one sends it the policy."""
    if view.state != "serving" or known.orphaned_heard is None or now - known.orphaned_heard < ORPHANED_SECONDS:
        return []
    text = (
        f"engine {view.engine} does not hear this station: the policy is not getting through and adaptive's own K is "
        "left out; see the engine's log, or restart it"
    )
    return [Condition(f"orphaned {view.engine}", "policy_mismatch", "critical", text)]
