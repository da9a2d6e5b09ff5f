"""Ports for servers under test, each given out once."""

from __future__ import annotations

import itertools
import os
import random
import socket

_PORTS = range(20_000, 30_000)
"""Below those that the kernel gives to clients: one of theirs could take a port before its server does."""

_LANES = 8
"""Of test processes side by side (`pytest -n`) each has ports of its own."""

_lane = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _LANES
_own = _PORTS[_lane::_LANES]
_turns = itertools.count(random.SystemRandom().randrange(len(_own)))


def free_port() -> int:
    """One that nobody listens on, and that no other caller is given."""
    for turn in itertools.islice(_turns, len(_own)):
        port = _own[turn % len(_own)]
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError(f"no port is free between {_PORTS.start} and {_PORTS.stop}")
