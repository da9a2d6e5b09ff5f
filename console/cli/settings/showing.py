"""Every setting with its value and where that comes from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from console.app.actions import ACTIONS
from console.cli.options import variable
from console.cli.settings import web
from console.cli.settings.defaults import THEME_VARIABLE
from console.cli.settings.notifying import shown_values
from console.cli.settings.notifying import variable as notify_variable
from console.cli.settings.reading import Settings
from console.cli.settings.serving import SECRET, options
from console.station.deciding_settings import VARIABLE, deciding_settings

Source = Literal["environment", "file", "default"]


class Setting(msgspec.Struct, frozen=True):
    """`name`: table and key. `place`: the variable or the file; empty for a default. The command line goes before all
    three."""

    name: str
    value: Any
    source: Source
    place: str


def settings(found: Settings) -> Iterator[Setting]:
    """In the order of the tables. Of a secret only that it is set, of a webhook its host.

    Raises:
        BadDeciding: numbers in the environment that can't be meant.
    """
    for name, option in options().items():
        shown = _setting(f"serve.{name}", option.envvar or variable(name), found.serve.get(name), option.default, found)
        yield msgspec.structs.replace(shown, value="(set)") if name in SECRET and shown.value else shown
    for name, option in web.options().items():
        yield _setting(f"web.{name}", option.envvar, found.web.get(name), option.default, found)
    yield from _deciding(found)
    yield _setting("console.theme", THEME_VARIABLE, found.theme, "dark", found)
    yield from _notify(found)
    for action in ACTIONS.values():
        yield _setting(f"keys.{action.id}", None, found.keys.get(action.id), action.keys, found)


def _setting(name: str, in_environment: Any, in_file: Any, default: Any, found: Settings) -> Setting:
    if in_environment is not None and (text := os.environ.get(str(in_environment))):
        return Setting(name, text, "environment", str(in_environment))
    if in_file is not None:
        return Setting(name, in_file, "file", str(found.path))
    plain = default if isinstance(default, str | int | float | bool | list) else None
    return Setting(name, plain, "default", "")


def _notify(found: Settings) -> Iterator[Setting]:
    for name, in_environment, in_file, default in shown_values(found):
        if in_environment is not None:
            yield Setting(f"notify.{name}", in_environment, "environment", notify_variable(name))
        elif in_file is not None:
            yield Setting(f"notify.{name}", in_file, "file", str(found.path))
        else:
            yield Setting(f"notify.{name}", default, "default", "")


def _deciding(found: Settings) -> Iterator[Setting]:
    text = os.environ.get(VARIABLE, "")
    named = msgspec.json.decode(text) if text.strip() else {}
    for name, value in msgspec.structs.asdict(deciding_settings(file=found.deciding)).items():
        source: Source = "environment" if name in named else "file" if name in found.deciding else "default"
        place = {"environment": VARIABLE, "file": str(found.path), "default": ""}[source]
        yield Setting(f"deciding.{name}", value, source, place)
