"""Where the gateway listens: parsing the address, the rule about API keys, and binding with a clear error."""

from __future__ import annotations

import errno
import ipaddress
import socket
from typing import NamedTuple


class UsageError(ValueError):
    """A setting that cannot be meant: exit code 2."""


class PortError(OSError):
    """The port cannot be had: exit code 3."""


class Address(NamedTuple):
    """A TCP address; port 0 lets the system choose."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Only this machine can reach it. A host name other than `localhost` is taken as public: it may move."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Parse `HOST:PORT`, an IPv6 host in brackets.

    Raises:
        UsageError: no host, no port, or a port outside 0 … 65535.
    """
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise UsageError(f"listen address {text!r}: write an IPv6 host in brackets, e.g. [::1]:8000")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise UsageError(f"listen address {text!r}: expected HOST:PORT, e.g. 127.0.0.1:8000")
    return Address(host, int(port))


def require_key_if_public(address: Address, api_key: bytes | None) -> None:
    """Refuse to open the engine to other machines without an API key.

    Raises:
        UsageError: says how to give one.
    """
    if api_key is None and not address.loopback:
        raise UsageError(
            f"refusing to listen on {address} without an API key: anyone who reaches that port could use the engine. "
            "Give a key with --api-key-file FILE (or SPECDECK_API_KEY), or listen on 127.0.0.1"
        )


def bind(address: Address) -> socket.socket:
    """Bind and listen, before anything else is started.

    Raises:
        PortError: the port is taken, or the address is not this machine's.
    """
    try:
        family, kind, protocol, _, resolved = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror as error:
        raise PortError(f"cannot listen on {address}: {error.strerror}; use an address of this machine") from error
    listener = socket.socket(family, kind, protocol)
    try:
        # Only skips the wait for old connections to fade; a live listener still holds the port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(resolved)
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise PortError(_why_not(address, error)) from error
    listener.setblocking(False)
    return listener


def bound_address(listener: socket.socket) -> Address:
    """The address a listener really has, port 0 resolved."""
    host, port = listener.getsockname()[:2]
    return Address(host, port)


def _why_not(address: Address, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {address.port} on {address.host} is taken by another process: stop that one "
            f"(`ss -ltnp 'sport = :{address.port}'` names it) or choose another port with --listen {address.host}:PORT"
        )
    if error.errno == errno.EACCES:
        return f"no permission to listen on port {address.port}: choose one of 1024 or above"
    return f"cannot listen on {address}: {error.strerror}; use an address of this machine"
