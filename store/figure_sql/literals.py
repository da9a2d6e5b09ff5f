"""Values as DuckDB reads them, in characters that neither a shell nor a terminal takes for anything else."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Final

_PIECE: Final = 34
"""Cells of a text's longest piece, so that a query can be broken into lines that fit a small terminal."""
_SPECIAL: Final = frozenset('"$`\\!')
"""What shells read even between double quotes."""


def text(value: str) -> str:
    """A text, whatever is in it: what is not plainly printable stands there by its number.

    >>> text("it's $5")
    "('it''s ' || chr(36) || '5')"
    """
    pieces = list(_pieces(value))
    if not pieces:
        return "''"
    return pieces[0] if len(pieces) == 1 else f"({' || '.join(pieces)})"


def number(value: float) -> str:
    """A number to its last digit. With an exponent DuckDB takes it for a DOUBLE, not for a DECIMAL that it rounds."""
    if value == int(value):
        return str(int(value))
    return repr(value) if "e" in repr(value) else f"{value!r}e0"


def names(values: Iterable[str], index: str) -> str:
    """What a code stands for: the entry of a list at `index`, counted from 0."""
    return f"[{', '.join(text(value) for value in values)}][{index} + 1]"


def _pieces(value: str) -> Iterable[str]:
    for safe, characters in groupby(value, _is_safe):
        if not safe:
            yield from (f"chr({ord(character)})" for character in characters)
            continue
        piece, cells = "", 0
        for character in characters:
            shown = "''" if character == "'" else character
            size = len(shown) if character.isascii() else 2
            if cells + size > _PIECE:
                yield f"'{piece}'"
                piece, cells = "", 0
            piece, cells = piece + shown, cells + size
        yield f"'{piece}'"


def _is_safe(character: str) -> bool:
    return character.isprintable() and character not in _SPECIAL
