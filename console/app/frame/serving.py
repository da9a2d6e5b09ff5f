"""What shows a console in browsers, as the console sees it: the command that opened it brings one."""

from __future__ import annotations

from typing import Protocol


class ServingError(Exception):
    """It can't be served: the text says why and what to do."""


class Serving(Protocol):
    """A web server that ends with the console. Methods block, a second or so: call them in a thread."""

    @property
    def command(self) -> str:
        """What to type in a shell for the same, without options."""
        ...

    @property
    def address(self) -> str | None:
        """The URL with its token while it serves, None else."""
        ...

    def start(self) -> str:
        """Serve read-only on a free port of loopback; the URL. Raises ServingError."""
        ...

    def stop(self) -> None:
        """Serve no longer; the consoles in its tabs end."""
        ...
