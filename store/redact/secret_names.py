"""Names that say that what they name is secret: of fields, of options, of environment variables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

_KEYS: Final = "api|access|account|auth|encryption|master|private|secret|signing|subscription"
SECRET_NAME: Final = rf"""(?:(?:{_KEYS})[_-]?key|secret|passw(?:or)?d|passphrase|pwd|credential)s?
    (?:[_-]?(?:key|id|value|hash|string|text|data|\d+))*"""
ENDS_SECRET: Final = re.compile(rf"(?:{SECRET_NAME}|token|authorization|cookie|(?<![a-z])key)$", re.I | re.X)
_OURS: Final = ("SPECDECK_API_KEY", "SPECDECK_NOTIFY_WEBHOOK")
_SHORTEST: Final = 8
"""Characters. What is shorter than that occurs in other words; rules by name find it where it counts."""


def is_secret(name: str) -> bool:
    return ENDS_SECRET.search(name) is not None


def secret_values(environ: Mapping[str, str]) -> Iterator[str]:
    """Values of an environment whose names say that they are secret."""
    for name, value in environ.items():
        if value and (name in _OURS or (len(value) >= _SHORTEST and is_secret(name))):
            yield value


def secret_arguments(argv: Sequence[str]) -> Iterator[str]:
    """Values of options of a command line whose names say that they are secret."""
    for name, value in _options(argv):
        if value and is_secret(name):
            yield value


def _options(argv: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each value with the option before it. `--api-key` takes several."""
    option = ""
    for word in argv:
        name, equals, value = word.partition("=")
        if name.startswith("-"):
            option = "" if equals else name
            if equals:
                yield name, value
        elif option:
            yield option, word
