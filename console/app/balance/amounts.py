"""Seconds of engine time as text. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from console.app.drawing import numbers
from console.app.drawing.spans import Role
from store.balance.records import WorkloadBalance


def spent(seconds: float) -> str:
    """In a sentence: `3.1 s`, `41 s`, `260 s`, then minutes and hours."""
    size = abs(seconds)
    return f"{size:.0f} s" if 99.5 <= size < 999.5 else numbers.duration(size)


def places(amounts: Iterable[float | None]) -> int:
    """Decimals with which all amounts of a table are shown, so that they can be added up."""
    largest = max((abs(amount) for amount in amounts if amount is not None), default=0.0)
    return 0 if largest >= 1000 else 1 if largest >= 10 else 2


def amount(seconds: float | None, decimals: int, *, signed: bool = False) -> str:
    """In a table; what is rounded to nothing has no sign."""
    if seconds is None:
        return numbers.ABSENT
    rounded = round(seconds, decimals) or 0.0
    sign = "−" if rounded < 0 else "+" if signed and rounded > 0 else ""
    return f"{sign}{abs(rounded):,.{decimals}f}"


def share(value: float | None) -> str:
    """A share in whole percent, never rounded up to all of it."""
    if value is None:
        return numbers.ABSENT
    return f"{min(99, round(value * 100)) if value < 1 else 100} %"


def sign_of(balance: WorkloadBalance) -> tuple[str, Role]:
    """Glyph and role: ● saved, ▲ lost, = neither for sure, ◐ too little is measured, ○ little or nothing was seen."""
    if balance.saved is None:
        return ("◐", "accent") if balance.state == "calibrating" else ("○", "dim")
    if balance.state == "calibrating":
        return "◐", "accent"
    if balance.state != "ok":
        return "○", "dim"
    if balance.saved_low is not None and balance.saved_high is not None and balance.saved_low < 0 < balance.saved_high:
        return "=", "dim"
    return ("●", "ok") if balance.saved >= 0 else ("▲", "warn")


def half_width(balance: WorkloadBalance) -> float | None:
    """Half the interval of what was saved, seconds."""
    low, high = balance.saved_low, balance.saved_high
    return None if low is None or high is None else (high - low) / 2
