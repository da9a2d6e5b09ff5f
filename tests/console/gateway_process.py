"""A gateway in a process of its own, as the station starts it, for the tests of the gateway and of the traffic."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import zmq

DEADLINE = 30.0
"""Seconds after which something that should have happened counts as a hang."""


@dataclass
class Gateway:
    process: subprocess.Popen[str]
    folder: Path
    url: str = ""

    @property
    def upstream(self) -> Path:
        return self.folder / "vllm"

    @property
    def vanilla(self) -> Path:
        """Where a second engine listens, for gateways that are started with `--vanilla-upstream`."""
        return self.folder / "vanilla"

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port is not None
        return port

    def ask(self, message: dict[str, Any] | bytes) -> dict[str, Any]:
        return ask(self.folder / "control", message)

    def stats(self) -> dict[str, Any]:
        return self.ask({"get": "stats"})


def gateway_command(folder: Path, *arguments: str) -> list[str]:
    command = [sys.executable, "-m", "console.gateway", "--upstream", str(folder / "vllm")]
    return [*command, "--control", str(folder / "control"), *arguments]


def gateway_environment() -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name != "SPECDECK_API_KEY"}
    return {**environment, "PYTHONSAFEPATH": "1"}


@contextlib.contextmanager
def running_gateway(*arguments: str, vanilla: bool = False) -> Iterator[Gateway]:
    """A gateway on a free loopback port, in a short temporary folder (socket paths are limited)."""
    with tempfile.TemporaryDirectory(prefix="sdg") as name:
        folder = Path(name)
        command = gateway_command(folder, "--listen", "127.0.0.1:0", *arguments)
        command += ["--vanilla-upstream", str(folder / "vanilla")] if vanilla else []
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=gateway_environment(), cwd=folder)
        gateway = Gateway(process, folder)
        try:
            gateway.url = gateway.stats()["url"]
            yield gateway
        finally:
            process.kill()
            process.communicate()


def ask(control: Path, message: dict[str, Any] | bytes) -> dict[str, Any]:
    """One request on the control socket, waiting for the gateway to be there."""
    with zmq.Context() as context, context.socket(zmq.REQ) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RECONNECT_IVL, 20)
        socket.setsockopt(zmq.RCVTIMEO, int(DEADLINE * 1000))
        socket.connect(f"ipc://{control}")
        socket.send(message if isinstance(message, bytes) else msgspec.json.encode(message))
        reply: dict[str, Any] = msgspec.json.decode(socket.recv())
        return reply
