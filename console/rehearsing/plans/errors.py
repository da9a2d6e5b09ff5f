"""What is wrong with a plan of a rehearsal."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class PlanError(ValueError):
    """A plan, or a file that it names, that cannot be meant or run: names place and remedy."""


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean …?` where one of the known words is like this one, else nothing."""
    found = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {found[0]}?" if found else ""


def shown(value: object) -> str:
    """A value as it may stand in a message: on one line, cut short."""
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        text = "a very large number"
    return text if len(text) <= 60 else f"{text[:57]}…"


def named(path: Path | str) -> str:
    """A file as it may stand in a message: as it is, or quoted where its name would disturb the screen."""
    text = str(path)
    return text if text.isprintable() else shown(text)
