"""What an operator wants to be told, and where: `[notify]` of the settings file."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from console.notices.watch import RANKS, Severity

From = Literal["off", "info", "warn", "critical"]
"""How grave an alert has to be."""
LEVELS: Final[tuple[From, ...]] = ("off", "info", "warn", "critical")
FORMS: Final = ("osc9", "osc777")


class NotifySettings(msgspec.Struct, frozen=True, kw_only=True):
    """`note`, `bell`, `desktop`: of a console; `webhook`: of the station."""

    note: From = "info"
    """A passing note on the console's screen."""
    bell: From = "critical"
    """The terminal's bell."""
    desktop: From = "off"
    """A notification of the desktop, which the terminal makes of OSC 9 or 777."""
    desktop_form: Literal["osc9", "osc777"] = "osc9"
    others: bool = True
    """A passing note says what other consoles and commands did."""
    webhook: str | None = None
    """An address that the station posts alerts to. What follows its host may be secret."""
    webhook_from: From = "warn"
    a_minute: int = 6
    """Most messages of each channel in a minute; the others are told with the next."""


MOST_A_MINUTE: Final = 60


def wanted(level: From, severity: Severity) -> bool:
    """Whether an alert is grave enough for a channel."""
    return level != "off" and RANKS[severity] >= RANKS[level]
