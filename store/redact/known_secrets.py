"""The rule for secrets that are known by heart: gone wherever they stand, however they are written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from store.redact.rule import SECRET, Rule

_ESCAPE: Final = r"(?:\\|%(?:25){0,2}5[cC]){0,16}"
"""Backslashes, which URLs write in their own way."""
_SHELLS: Final = 2
"""So many times a shell's quotes may stand around each other."""
_CONTROLS: Final = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}


def known_secrets(secrets: Iterable[str]) -> Rule | None:
    """The secrets themselves, as JSON, Python, shells and URLs write them, also one in another."""
    bare = {secret.strip() for secret in secrets} - {""}  # a file's last line feed is no part of its key
    if not bare:
        return None
    return Rule(re.compile("|".join(map(_spelled, sorted(bare, key=len, reverse=True)))), SECRET)


def _spelled(secret: str) -> str:
    plain = [character.isalnum() and character.isascii() for character in secret]
    return "".join(one if is_plain else _forms(one) for one, is_plain in zip(secret, plain, strict=True))


def _forms(character: str) -> str:
    """A character as it is, and as JSON, Python, URLs and shells write it."""
    forms = [_escaped(character)]
    if character in _CONTROLS:
        forms.append(_ESCAPE + _CONTROLS[character])
    units = character.encode("utf-16-be", "surrogatepass").hex(" ", 2).split()
    forms.append("".join(rf"{_ESCAPE}u{_either_case(unit)}" for unit in units))
    forms.append(rf"{_ESCAPE}(?:U{_either_case(f'{ord(character):08x}')}|x{_either_case(f'{ord(character):02x}')})")
    quoted = character
    for _ in range(_SHELLS if character == "'" else 0):
        quoted = quoted.replace("'", "'\"'\"'")
        forms.append("".join(map(_escaped, quoted)))
    return f"(?:{'|'.join(forms)})"


def _escaped(character: str) -> str:
    percent = "".join(f"%(?:25){{0,3}}{_either_case(f'{byte:02x}')}" for byte in character.encode("utf-8", "replace"))
    return rf"{_ESCAPE}(?:{re.escape(character)}|{percent})"


def _either_case(digits: str) -> str:
    return "".join(f"[{digit.lower()}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)
