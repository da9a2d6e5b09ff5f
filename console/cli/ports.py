"""Who holds a port: a clear answer before anything is started that would fail to bind it."""

from __future__ import annotations

import socket
from typing import Final, NamedTuple

import psutil

from console.statefile import state_path
from engine.places import runtime_dir
from engine.process import ManagedProcess

DEFAULT_PORT: Final = 8000


class Holder(NamedTuple):
    name: str
    ours: bool
    """It is the gateway of this runtime directory, which a new station adopts."""


def holder_of(host: str, port: int) -> Holder | None:
    """Who listens on `port`, None when it can be bound."""
    if _bindable(host, port):
        return None
    pid = _listener(port)
    if pid is None:
        return Holder("another program", ours=False)
    gateway = ManagedProcess.adopt(state_path(runtime_dir(), "gateway"))
    if gateway is not None and gateway.pid == pid:
        return Holder(f"specdeck's gateway (pid {pid})", ours=True)
    try:
        name = psutil.Process(pid).name()
    except psutil.Error:
        name = "a program"
    return Holder(f"{name} (pid {pid})", ours=False)


def free(host: str) -> int:
    with socket.socket(_family(host)) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _bindable(host: str, port: int) -> bool:
    with socket.socket(_family(host)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _listener(port: int) -> int | None:
    try:
        connections = psutil.net_connections("tcp")
    except psutil.Error:
        return None
    for connection in connections:
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
            return int(connection.pid) if connection.pid else None
    return None
