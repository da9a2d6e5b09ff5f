"""Which processes there are, with their sockets, store and log: what `specdeck status` lists."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from console.feed.protocol import ProcessesResult, ProcessView
from console.station.control import Control
from console.station.engine_supervisor import EngineSupervisor
from console.station.options import OWNED_ENGINE

if TYPE_CHECKING:
    from console.station.station import Station


async def processes(station: Station, _: None, actor: str) -> ProcessesResult:
    sockets = station.sockets
    supervisor = station.control.supervisor if station.control is not None else None
    vanilla = station.control.own.vanilla_http if station.control is not None else None
    return ProcessesResult(
        processes=list(_processes(station)),
        sockets={
            "telemetry": str(sockets.telemetry),
            "policy": str(sockets.policy),
            "feed": str(sockets.feed),
            "snapshots": str(sockets.snapshots),
            "engine_http": str(sockets.engine_http),
            "gateway_control": str(sockets.gateway_control),
            **({} if vanilla is None else {"vanilla_http": str(vanilla)}),
        },
        store=station.options.store,
        engine_log=str(supervisor.log_path) if supervisor is not None else None,
    )


def _processes(station: Station) -> Iterator[ProcessView]:
    yield ProcessView("station", os.getpid(), True, station.options.store)
    if station.control is not None:
        yield from _controlled(station.control)


def _controlled(control: Control) -> Iterator[ProcessView]:
    gateway = control.gateway.view()
    yield ProcessView("gateway", gateway.pid, gateway.pid is not None, f"{gateway.state} {gateway.url}")
    for supervisor in control.own.supervisors.values():
        yield from _engine(supervisor)
    if control.rehearsals.pid is not None:
        yield ProcessView("rehearsal", control.rehearsals.pid, True, "started here")
    if control.demo.pid is not None:
        yield ProcessView("demo traffic", control.demo.pid, True, "")


def _engine(supervisor: EngineSupervisor) -> Iterator[ProcessView]:
    log = f", log {supervisor.log_path}" if supervisor.engine != OWNED_ENGINE else ""  # that one has a line of its own
    detail = f"{supervisor.state}{log}"
    yield ProcessView(f"engine {supervisor.engine}", supervisor.pid, supervisor.pid is not None, detail)
    for pid, name in supervisor.children().items():
        yield ProcessView(name, pid, True, f"of engine {supervisor.engine}")
