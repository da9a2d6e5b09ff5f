"""The windows that the live table shows figures over. Imports nothing: consoles read it too."""

from __future__ import annotations

from typing import Final

SPANS: Final[tuple[tuple[float, int, str], ...]] = ((300.0, 10, "5 min"), (3600.0, 60, "1 h"), (21600.0, 300, "6 h"))
"""Seconds, seconds of a cell, label; the shortest first."""


def place_of(seconds: float | None) -> int | None:
    """Number of the window of this length, which the operator fixed; None where none was.

    Raises:
        ValueError: there is no window of this length.
    """
    if seconds is None:
        return None
    place = next((place for place, (length, _, _) in enumerate(SPANS) if length == seconds), None)
    if place is None:
        raise ValueError(f"no window is {seconds:g} s long; there are {', '.join(label for *_, label in SPANS)}")
    return place
