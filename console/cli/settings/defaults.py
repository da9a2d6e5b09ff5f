"""The settings file as click's defaults: below the command line and the environment, above an option's own default.

Click asks for the default of every option of `specdeck` whatever command is called. So a broken file is no error here:
whoever starts a station or opens a console asks `in_force` first, and `specdeck status` works all the same.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from functools import cache
from typing import Any, Final

import msgspec

from console.cli.outcomes import BadInput
from console.cli.settings.place import settings_path
from console.cli.settings.reading import Settings, SettingsError, read_settings

THEME_VARIABLE: Final = "SPECDECK_CONSOLE_THEME"


def in_force() -> Settings:
    """The settings file's, with the theme that the environment asks for. Raises BadInput: something of it can't be
    meant."""
    found = _read()
    if isinstance(found, SettingsError):
        raise BadInput(str(found)) from found
    theme = os.environ.get(THEME_VARIABLE)
    if not theme:
        return found
    from console.app.drawing.themes import THEME_WORDS

    if theme not in THEME_WORDS:
        raise BadInput(f"{THEME_VARIABLE} is {theme!r}: one of {', '.join(THEME_WORDS)}")
    return msgspec.structs.replace(found, theme=theme)


def file_defaults() -> MutableMapping[str, Any] | None:
    """Defaults of the options that start a station or serve browsers, for click's `default_map`; None where there is no
    file."""
    if not settings_path().exists():
        return None
    found = _read()
    if isinstance(found, SettingsError):
        return None
    from console.cli.root import STARTING

    return {**found.serve, **dict.fromkeys(STARTING, found.serve), "web": found.web}


@cache
def _read() -> Settings | SettingsError:
    try:
        return read_settings(settings_path())
    except SettingsError as error:
        return error
