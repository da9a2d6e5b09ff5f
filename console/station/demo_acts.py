"""The demo's traffic as consoles ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.feed.messages import DemoTrafficView, EngineState, GatewayView, RehearsalView
from console.feed.protocol import DemoStart
from console.feed.server import FeedError
from console.station.demo_traffic import DemoTraffic
from console.station.rehearsal_process import Refused
from console.station.rehearsals import OVER

if TYPE_CHECKING:
    from console.station.station import Station


def hindrance(engine: EngineState | None, gateway: GatewayView, rehearsal: RehearsalView | None) -> str | None:
    """Why no demo traffic may begin now; None: it may. `engine`: of the one that is ours, None without one."""
    if engine is None:
        return "this station runs no engine of its own: there is nothing behind its public port to send traffic to"
    if engine != "serving":
        return f"the engine is {engine}: wait until it serves"
    if gateway.state != "serving":
        return f"the gateway is {gateway.state}{f': {gateway.detail}' if gateway.detail else ''}"
    if rehearsal is not None and rehearsal.state not in OVER:
        return "a rehearsal goes on: other traffic would spoil it"
    return None


async def demo_start(station: Station, params: DemoStart, actor: str) -> DemoTrafficView:
    """Raises FeedError where none may begin."""
    try:
        view = _traffic(station).start(params.seconds)
    except Refused as error:
        raise FeedError("refused", str(error)) from error
    station.tell("control", f"{actor}: demo traffic for {params.seconds:.0f} s")
    return view


async def demo_stop(station: Station, _: None, actor: str) -> DemoTrafficView:
    """Raises FeedError where none goes on."""
    try:
        return await _traffic(station).stop()
    except Refused as error:
        raise FeedError("refused", str(error)) from error


def _traffic(station: Station) -> DemoTraffic:
    """Raises FeedError of a station that only observes."""
    if station.control is None:
        raise FeedError("refused", "this station only observes: send requests to the vLLM that it looks at")
    return station.control.demo
