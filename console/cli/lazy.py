"""A click group that knows its commands by name and a line each, and imports one only to run it or print its help."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import click

from console.cli.outcomes import friendly


class Lazy(NamedTuple):
    """Where a command lives, and its line in the list of commands."""

    module: str
    attribute: str
    summary: str


class LazyGroup(click.Group):
    def __init__(self, *args: Any, lazy: dict[str, Lazy], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        lazy = self._lazy.get(cmd_name)
        if lazy is None:
            return None
        command = getattr(importlib.import_module(lazy.module), lazy.attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands from the static lines alone: nothing is imported for it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.summary) for name, lazy in self._lazy.items()])

    def invoke(self, ctx: click.Context) -> Any:
        with friendly():
            return super().invoke(ctx)
