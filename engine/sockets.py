"""Names of the unix sockets in the runtime directory: short, since a path over 107 bytes is refused."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from engine.places import runtime_dir


class Sockets(NamedTuple):
    """Every socket of one running specdeck. All are files of `directory`, which only its owner can enter."""

    directory: Path

    @property
    def telemetry(self) -> Path:
        """PULL of the station; engines PUSH frames. This path is what `SPECDECK_SOCKET` holds."""
        return self.directory / "telemetry"

    @property
    def policy(self) -> Path:
        """XPUB of the station; engines subscribe to the policy state under their own engine id."""
        return policy_socket(self.telemetry)

    @property
    def engine_http(self) -> Path:
        """The unix socket of vLLM's API server."""
        return self.directory / "vllm"

    @property
    def feed(self) -> Path:
        """ROUTER of the station: queries and actions of consoles."""
        return self.directory / "feed"

    @property
    def snapshots(self) -> Path:
        """PUB of the station: the complete snapshot, 4 times a second."""
        return self.directory / "snapshots"

    @property
    def gateway_control(self) -> Path:
        """REP of the gateway: the station's lane table and upstream."""
        return self.directory / "gateway"


def policy_socket(telemetry: Path) -> Path:
    """The policy socket that belongs to a telemetry socket."""
    return telemetry.with_name(telemetry.name + ".policy")


def sockets() -> Sockets:
    return Sockets(runtime_dir())


def ipc(path: Path) -> str:
    """The ZeroMQ address of a unix socket path."""
    return f"ipc://{path}"
