"""The table [notify]: what comes to the operator by itself: on screen, terminal and desktop, and by webhook."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from console.cli.outcomes import BadInput
from console.cli.settings.reading import Settings, nearest
from console.notices.settings import FORMS, LEVELS, MOST_A_MINUTE, NotifySettings

_DEFAULTS: Final = NotifySettings()
_SWITCHES: Final = {"true": True, "1": True, "false": False, "0": False}


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return f"SPECDECK_NOTIFY_{name.upper()}"


def problems(table: dict[str, Any]) -> Iterator[str]:
    """What of it can't be meant, a line each. Never holds an address: what follows its host may be secret."""
    for name, value in table.items():
        if name not in NotifySettings.__struct_fields__:
            yield f"[notify] {name} is unknown{nearest(name, NotifySettings.__struct_fields__)}"
        elif (problem := _problem(name, value)) is not None:
            yield f"[notify] {name} {problem}"


def notify_settings(found: Settings) -> NotifySettings:
    """The file's, with what the environment sets before it. Raises BadInput: a variable that can't be meant."""
    chosen = dict(found.notify)
    for name in NotifySettings.__struct_fields__:
        text = os.environ.get(variable(name))
        if not text:
            continue
        value = _of_text(name, text.strip())
        if (problem := _problem(name, value)) is not None:
            raise BadInput(f"{variable(name)} {problem}")
        chosen[name] = value
    return NotifySettings(**{name: value for name, value in chosen.items() if value != ""})


def shown_values(found: Settings) -> Iterator[tuple[str, Any, Any, Any]]:
    """Name, and what environment, file and default say, the first that is not None counts. Of a webhook its host
    alone."""
    for name, default in msgspec.structs.asdict(_DEFAULTS).items():
        text, in_file = os.environ.get(variable(name)), found.notify.get(name)
        if name == "webhook":
            text, in_file = (None if not one else _host_of(one) for one in (text, in_file))
        yield name, text or None, in_file, default


def _host_of(address: str) -> str:
    from console.station.webhook_address import BadWebhook, read_webhook

    try:
        return f"(set) {read_webhook(address).shown}"
    except BadWebhook:
        return "(set)"


def _of_text(name: str, text: str) -> Any:
    if name == "others":
        return _SWITCHES.get(text.lower(), text)
    if name == "a_minute":
        return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else text
    return text


def _problem(name: str, value: Any) -> str | None:
    if name == "webhook":
        return _webhook_problem(value)
    if name == "others":
        return None if isinstance(value, bool) else f"is {value!r}: true or false"
    if name == "a_minute":
        whole = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_A_MINUTE
        return None if whole else f"is {value!r}: a whole number from 1 to {MOST_A_MINUTE}"
    known: tuple[str, ...] = FORMS if name == "desktop_form" else LEVELS
    return None if value in known else f"is {value!r}: one of {', '.join(known)}"


def _webhook_problem(value: Any) -> str | None:
    from console.station.webhook_address import BadWebhook, read_webhook

    if value == "":
        return None  # none, whatever the file says
    try:
        read_webhook(value)
    except BadWebhook as error:
        return f"can't be used: {error}"
    return None
