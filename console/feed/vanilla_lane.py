"""Who serves the vanilla lane, in the words of every screen and list."""

from __future__ import annotations

import msgspec

from console.feed.messages import EngineView, GatewayView, Snapshot


class VanillaLane(msgspec.Struct, frozen=True):
    """`engine`: the id of the engine without speculation, None where the lane is K = 0 in the same engine."""

    engine: str | None
    ok: bool | None
    """Whether that engine answers; None where there is none, or the gateway has not said yet."""
    text: str


def vanilla_lane(snapshot: Snapshot) -> VanillaLane | None:
    """None of a station that runs no gateway."""
    gateway = snapshot.gateway
    if gateway is None:
        return None
    if not gateway.vanilla_engine:
        return VanillaLane(None, None, "K = 0 in the same engine")
    engine = next((view for view in snapshot.engines if view.owned and view.drafter == "none"), None)
    if engine is None:
        return VanillaLane(None, gateway.vanilla_ok, "an engine of its own")
    return VanillaLane(engine.engine, gateway.vanilla_ok, _text(engine, gateway))


def _text(engine: EngineView, gateway: GatewayView) -> str:
    text = f"an engine of its own ({engine.engine}, {engine.state})"
    if engine.state == "serving" and gateway.vanilla_ok is not False:
        return text
    return f"{text}; until it serves: K = 0 in the other engine"
