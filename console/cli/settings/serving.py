"""The table [serve]: options of `specdeck`, `specdeck demo` and `specdeck serve`, checked as the command line's are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import click

from console.cli.outcomes import BadInput
from console.cli.settings.reading import nearest
from engine.policy import PolicyError, parse_mode

SECRET: Final = frozenset({"api_key"})
"""Not for a file that is shown and copied: the environment has a place for it."""


def options() -> dict[str, click.Option]:
    """Every option that the table may set, by its name with underscores."""
    from console.cli.root import root

    return {
        parameter.name: parameter
        for parameter in root.params
        if isinstance(parameter, click.Option) and parameter.name is not None and parameter.name not in _NOT_SETTINGS
    }


_NOT_SETTINGS: Final = frozenset({"version", "help", "no_calibration"})


def problems(table: dict[str, Any]) -> Iterator[str]:
    """What of it can't be meant, a line each."""
    known = options()
    for name, value in table.items():
        option = known.get(name)
        if name in SECRET:
            yield f"[serve] {name}: keys don't belong into this file; set SPECDECK_API_KEY"
        elif option is None:
            yield f"[serve] {name} is unknown{nearest(name, (one for one in known if one not in SECRET))}"
        else:
            yield from value_problems("serve", name, option, value)


def value_problems(where: str, name: str, option: click.Option, value: Any) -> Iterator[str]:
    """What is wrong with the value of an option in the table `where`, a line each."""
    if option.is_flag and not isinstance(value, bool):
        yield f"[{where}] {name} is {value!r}: true or false"
        return
    if option.multiple and not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
        yield f"[{where}] {name} is {value!r}: a list of texts"
        return
    if not option.multiple and isinstance(value, list | dict):
        yield f"[{where}] {name} is {value!r}: one value"
        return
    if isinstance(value, bool) and not option.is_flag:
        yield f"[{where}] {name} is {str(value).lower()}: not a switch"
        return
    try:
        context = click.Context(click.Command(where))
        option.process_value(context, value)
        if name == "policy":
            parse_mode(str(value))
    except click.BadParameter as error:
        yield f"[{where}] {name} is {value!r}: {error.message}"
    except (BadInput, PolicyError, ValueError, TypeError, OverflowError) as error:
        yield f"[{where}] {name}: {error}"
