"""Who asks: the name under which the station keeps what this console or command does, so that others can tell them
apart."""

from __future__ import annotations

import getpass
import os
from contextlib import suppress
from typing import Final

from console.notices.words import plain

VARIABLE: Final = "SPECDECK_ACTOR"
"""A name of one's own, where several people share an account, or for what a timer runs."""
LONGEST: Final = 64


def own_actor() -> str:
    """`ada@pts/3`: the user and the terminal; without a terminal the process. What `SPECDECK_ACTOR` says goes before.

    One that the station's own parts use (`adaptive`, `drill`, …) is told apart by the terminal behind it.
    """
    given = plain(os.environ.get(VARIABLE, "").strip(), LONGEST)
    if given and given not in _OF_THE_STATION:
        return given
    return f"{given or _user()}@{_place()}"


_OF_THE_STATION: Final = frozenset({"adaptive", "station", "rehearsal", "drill"})


def _user() -> str:
    try:
        return plain(getpass.getuser(), LONGEST // 2)
    except (OSError, KeyError):  # in a container the user may have a number only
        return str(os.getuid())


def _place() -> str:
    for descriptor in (0, 2, 1):
        with suppress(OSError):
            return os.ttyname(descriptor).removeprefix("/dev/")
    return f"pid{os.getpid()}"
