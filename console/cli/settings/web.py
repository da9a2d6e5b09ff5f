"""The table [web]: options of `specdeck web`, checked as the command line's are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import click

from console.cli.settings.reading import nearest
from console.cli.settings.serving import value_problems

_SETTINGS: Final = ("host", "port", "sessions", "allow_host", "token_file")


def options() -> dict[str, click.Option]:
    """Every option that the table may set. That browsers may change things is asked for each time anew."""
    from console.cli.web import web

    named = {parameter.name: parameter for parameter in web.params if isinstance(parameter, click.Option)}
    return {name: named[name] for name in _SETTINGS}


def problems(table: dict[str, Any]) -> Iterator[str]:
    """What of it can't be meant, a line each."""
    known = options()
    for name, value in table.items():
        if name in ("token", "write", "no_token"):
            yield f"[web] {name}: not for this file; {_INSTEAD[name]}"
        elif name not in known:
            yield f"[web] {name} is unknown{nearest(name, known)}"
        else:
            yield from value_problems("web", name, known[name], value)


_INSTEAD: Final = {
    "token": "token_file names one that only you can read, or set SPECDECK_WEB_TOKEN",
    "write": "give --write when you mean it",
    "no_token": "give --no-token when you mean it",
}
