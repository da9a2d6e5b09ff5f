"""A child process ends with whoever started it, however that ended: its standard input is then at its end."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable


def when_parent_is_gone(do: Callable[[], None]) -> None:
    """Call `do`, once and on another thread, when nobody can write to standard input any more."""
    threading.Thread(target=_wait, args=(do,), name="parent", daemon=True).start()


def _wait(do: Callable[[], None]) -> None:
    try:
        while os.read(0, 4096):
            pass
    except OSError:  # there is none: as good as gone
        pass
    do()
