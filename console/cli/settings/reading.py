"""Reads the settings file: every table and key is known and can be meant, or all that is wrong is named at once."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from engine.toml_text import parse_toml

_LONGEST: Final = 1 << 20

Table = dict[str, Any]


class SettingsError(ValueError):
    """A settings file that can't be used. `problems`: a line each, naming table and key."""

    def __init__(self, path: Path, problems: list[str]) -> None:
        self.path = path
        self.problems = problems
        more = f" (and {len(problems) - 1} more: `specdeck config validate`)" if len(problems) > 1 else ""
        super().__init__(f"{path}: {problems[0]}{more}")


class Settings(msgspec.Struct, frozen=True):
    """What the file says, checked; empty where there is none."""

    path: Path
    exists: bool = False
    serve: Table = {}
    """Options of what starts a station, by their names with underscores."""
    web: Table = {}
    """Options of `specdeck web`."""
    deciding: dict[str, float] = {}
    theme: str | None = None
    keys: dict[str, str] = {}
    """Textual key names by action id."""
    notify: Table = {}


def read_settings(path: Path) -> Settings:
    """Read and check the whole file.

    Raises:
        SettingsError: it can't be read, or something in it can't be meant.
    """
    if not path.exists():
        return Settings(path)
    found = _parsed(path)
    problems = [problem for problem in _problems(found) if problem]
    if problems:
        raise SettingsError(path, problems)
    from console.cli.settings.keys import textual_keys

    return Settings(
        path,
        True,
        serve=found.get("serve", {}),
        web=found.get("web", {}),
        deciding=found.get("deciding", {}),
        theme=found.get("console", {}).get("theme"),
        keys={action: textual_keys(keys) for action, keys in found.get("keys", {}).items()},
        notify=found.get("notify", {}),
    )


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean max_k?`, or what there is."""
    known = list(known)
    close = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {close[0]}?" if close else f"; there are: {', '.join(known)}"


def _parsed(path: Path) -> Table:
    try:
        with path.open("rb") as file:
            raw = file.read(_LONGEST + 1)
    except OSError as error:
        raise SettingsError(path, [f"can't be read: {error.strerror or error}"]) from error
    if len(raw) > _LONGEST:
        raise SettingsError(path, [f"over {_LONGEST >> 20} MiB: that is no settings file"])
    try:
        return parse_toml(raw.decode())
    except ValueError as error:  # no TOML, or no UTF-8
        raise SettingsError(path, [f"no TOML: {error}"]) from error


def _problems(found: Table) -> Iterator[str]:
    for name, table in found.items():
        check = _TABLES.get(name)
        if check is None:
            yield f"[{name}] is unknown{nearest(name, _TABLES)}"
        elif not isinstance(table, dict):
            yield f"{name} must be a table, [{name}]"
        else:
            yield from check(table)


def _serve(table: Table) -> Iterator[str]:
    from console.cli.settings.serving import problems

    return problems(table)


def _web(table: Table) -> Iterator[str]:
    from console.cli.settings.web import problems

    return problems(table)


def _deciding(table: Table) -> Iterator[str]:
    from console.station.deciding_settings import BadDeciding, deciding_settings

    try:
        deciding_settings(msgspec.json.encode(table).decode(), where="[deciding]")
    except BadDeciding as error:
        yield str(error)
    except TypeError as error:  # a date, which JSON has no form for
        yield f"[deciding]: numbers only ({error})"


def _console(table: Table) -> Iterator[str]:
    from console.app.drawing.themes import THEME_WORDS

    for name, value in table.items():
        if name != "theme":
            yield f"[console] {name} is unknown{nearest(name, ['theme'])}"
        elif not isinstance(value, str) or value not in THEME_WORDS:
            yield f"[console] theme is {value!r}{nearest(str(value), THEME_WORDS)}"


def _keys(table: Table) -> Iterator[str]:
    from console.cli.settings.keys import problems

    return problems(table)


def _notify(table: Table) -> Iterator[str]:
    from console.cli.settings.notifying import problems

    return problems(table)


_TABLES: Final[dict[str, Callable[[Table], Iterator[str]]]] = {
    "serve": _serve, "web": _web, "deciding": _deciding, "console": _console, "keys": _keys,
    "notify": _notify,
}  # fmt: skip
