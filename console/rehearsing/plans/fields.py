"""A table of a TOML document, read field by field: a wrong type or an unknown key is refused by name."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from console.rehearsing.plans.errors import PlanError, nearest, shown


class Table:
    """`where` is put before each complaint, e.g. `workload 2 (chat)`; empty for the document itself."""

    def __init__(self, entries: dict[str, Any], where: str, known: Iterable[str]) -> None:
        self._entries = entries
        self.where = where
        known = list(known)
        for key in entries:
            if key not in known:
                raise self.error(f"{shown(key)} is unknown{nearest(key, known)} (known: {', '.join(known)})")

    def error(self, complaint: str) -> PlanError:
        return PlanError(f"{self.where}: {complaint}" if self.where else complaint)

    def has(self, key: str) -> bool:
        return key in self._entries

    def text(self, key: str, default: str | None = None, example: str = "") -> str:
        found = self._found(key, default, example)
        if not isinstance(found, str):
            raise self.error(f"{key} must be text in quotes, not {shown(found)}")
        return found

    def flag(self, key: str, default: bool) -> bool:
        found = self._entries.get(key, default)
        if not isinstance(found, bool):
            raise self.error(f"{key} must be true or false, not {shown(found)}")
        return found

    def whole(self, key: str, default: int) -> int:
        return self._whole(key, self._entries.get(key, default))

    def wholes(self, key: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """One whole number, or a list of them."""
        found = self._entries.get(key)
        if found is None:
            return default
        if isinstance(found, list) and not found:
            raise self.error(f"{key} is an empty list")
        return tuple(self._whole(key, value) for value in (found if isinstance(found, list) else [found]))

    def number(self, key: str, default: float | None = None, example: str = "") -> float:
        return self._number(key, self._found(key, default, example))

    def maybe(self, key: str) -> float | None:
        """A number, None where it is not given."""
        return self._number(key, self._entries[key]) if key in self._entries else None

    def texts(self, key: str, example: str) -> tuple[str, ...]:
        found = self._found(key, None, example)
        if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
            raise self.error(f"{key} must be a list of texts, e.g. {example}")
        return tuple(found)

    def table(self, key: str, known: Iterable[str], where: str) -> Table:
        """A table inside this one, empty where it is not given."""
        found = self._entries.get(key, {})
        if not isinstance(found, dict):
            raise self.error(f"{key} must be a table, not {shown(found)}")
        return Table(found, where, known)

    def tables(self, key: str, known: Iterable[str]) -> list[Table]:
        """The tables of an array `[[key]]`, each called by its number and its name."""
        found = self._entries.get(key, [])
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise self.error(f"{key} is written as tables, each under a line [[{key}]]")
        known = list(known)
        return [Table(one, place(key, number, one.get("name")), known) for number, one in enumerate(found, 1)]

    def _found(self, key: str, default: Any, example: str) -> Any:
        found = self._entries.get(key, default)
        if found is None:
            raise self.error(f"{key} is missing" + (f", e.g. {key} = {example}" if example else ""))
        return found

    def _number(self, key: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(f"{key} must be a number, not {shown(value)}")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self.error(f"{key} must be a finite number, not {shown(value)}")
        return number

    def _whole(self, key: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(f"{key} must be a whole number, not {shown(value)}")
        return value


def place(kind: str, number: int, name: object) -> str:
    """`workload 2 (chat)`; without the name where there is none to be shown."""
    return f"{kind} {number} ({name[:40]})" if isinstance(name, str) and name.isprintable() else f"{kind} {number}"
