"""Every role can be read in every theme on every kind of terminal: all colours, 256 or 16."""

from __future__ import annotations

import pytest
from rich.color import Color as Shown
from rich.color import ColorSystem
from textual.color import Color

from console.app.application import SpecdeckApp
from console.app.drawing.themes import THEMES, Palette
from tests.console.memory_feed import MemoryFeed

XTERM = (
    (0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0), (0, 0, 238), (205, 0, 205), (0, 205, 205), (229, 229, 229),
    (127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0), (92, 92, 255), (255, 0, 255), (0, 255, 255),
    (255, 255, 255),
)  # fmt: skip
"""What xterm makes of the sixteen."""

READ = ("text", "bright", "dim", "title", "key", "accent", "ok", "warn", "critical", "fallback")
SEEN = ("alpha", "k", "load")
"""Curves and areas, not letters."""


def shown(colour: Shown, system: ColorSystem) -> Color:
    """What the terminal makes of a colour."""
    down = colour.downgrade(system)
    if down.number is not None and down.number < 16:
        return Color(*XTERM[down.number])
    return Color(*down.get_truecolor())


def contrast(one: Color, other: Color) -> float:
    """After WCAG 2: 1 for the same luminance, 21 for black and white."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: Color) -> float:
    parts = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in colour.normalized]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


@pytest.mark.parametrize("system", [ColorSystem.TRUECOLOR, ColorSystem.EIGHT_BIT, ColorSystem.STANDARD])
@pytest.mark.parametrize("theme", [theme.name for theme in THEMES])
def test_each_role_stands_out_from_its_ground(theme: str, system: ColorSystem) -> None:
    app = SpecdeckApp(MemoryFeed())
    app.theme = theme
    variables = app.get_css_variables()
    palette = Palette(variables, sixteen=system is ColorSystem.STANDARD)
    grounds = [shown(Shown.parse(Color.parse(variables[name]).hex6), system) for name in ("background", "surface")]
    for roles, least in ((READ, 3.0), (SEEN, 1.8)):
        for role in roles:
            colour = palette[role].color  # type: ignore[index]
            assert colour is not None
            weakest = min(contrast(shown(colour, system), ground) for ground in grounds)
            assert weakest >= least, (role, weakest)
