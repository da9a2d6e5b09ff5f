"""Exit codes and the exceptions that carry them, each printed as one line on stderr.

0 ok · 1 a check failed · 2 usage or bad input · 3 engine or store not reachable · 130 interrupted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import click

OK: Final = 0
CHECK_FAILED: Final = 1
BAD_INPUT: Final = 2
UNREACHABLE: Final = 3
INTERRUPTED: Final = 130


class BadInput(click.ClickException):
    """A file, option or message that is wrong: names it and the remedy."""

    exit_code = BAD_INPUT


class Unreachable(click.ClickException):
    """The station, engine or store is not there or held by somebody else."""

    exit_code = UNREACHABLE


class CheckFailed(click.ClickException):
    """Everything ran, and what it found is not in order."""

    exit_code = CHECK_FAILED


@contextlib.contextmanager
def friendly() -> Iterator[None]:
    """Turn an interrupt into exit code 130, and a closed pipe (`… | head`) into a quiet end."""
    try:
        yield
    except KeyboardInterrupt:
        say("interrupted")
        raise click.exceptions.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        quiet_stdout()
        raise click.exceptions.Exit(OK) from None


def quiet_stdout() -> None:
    """Nobody reads stdout any more: keep the interpreter from complaining about it while it exits."""
    import sys

    _quiet(sys.stdout.fileno())


def say(text: str) -> None:
    """Narration: stderr, so that stdout stays data. Nobody may read it any more: what is being ended must not break off
    for that."""
    try:
        click.echo(text, err=True)
    except OSError:
        import sys

        _quiet(sys.stderr.fileno())


def _quiet(descriptor: int) -> None:
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
