"""TOML as its standard has it: whole numbers of 64 bits. Python's own reader takes any, which then can't be printed."""

from __future__ import annotations

from typing import Any, Final

_LARGEST: Final = 2**63 - 1


def parse_toml(text: str) -> dict[str, Any]:
    """Raises ValueError: it is no TOML; says where."""
    import tomllib

    try:
        found = tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    _check(found, "")
    return found


def _check(value: Any, place: str) -> None:
    if isinstance(value, dict):
        for key, one in value.items():
            _check(one, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for number, one in enumerate(value, 1):
            _check(one, f"{place}[{number}]")
    elif isinstance(value, int) and not -_LARGEST - 1 <= value <= _LARGEST:
        raise ValueError(f"{place[:80]!r} is a whole number beyond 64 bits")
