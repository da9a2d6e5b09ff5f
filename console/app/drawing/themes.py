"""The three themes and the palette: from the role of a text to a style.

Every state has a glyph beside its colour, so no theme and no terminal without colours loses one. The third theme takes
its hues from Okabe and Ito, which stay apart with every common colour vision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rich.style import Style
from textual.color import Color
from textual.theme import Theme

from console.app.drawing.spans import Role

DARK: Final = Theme(
    name="specdeck-dark",
    dark=True,
    background="#101418",
    surface="#161b21",
    panel="#1f262e",
    foreground="#c9d1d9",
    primary="#6cb6ff",
    secondary="#b392f0",
    accent="#6cb6ff",
    success="#57ab5a",
    warning="#d9a03c",
    error="#f4695f",
    variables={"dim": "#8b949e", "faint": "#3f4954", "bright": "#f0f6fc", "k": "#6d66b5", "load": "#3f7377"},
)

LIGHT: Final = Theme(
    name="specdeck-light",
    dark=False,
    background="#fbfbf9",
    surface="#f3f3ef",
    panel="#e6e6e0",
    foreground="#24292f",
    primary="#0a5fb8",
    secondary="#6f42c1",
    accent="#0a5fb8",
    success="#1a7f37",
    warning="#8f5b00",
    error="#c0261f",
    variables={"dim": "#62686f", "faint": "#c3c6c0", "bright": "#000000", "k": "#8b83cf", "load": "#6aa5a5"},
)

CLEAR: Final = Theme(
    name="specdeck-clear",
    dark=True,
    background="#0e0e10",
    surface="#161619",
    panel="#232328",
    foreground="#d6d6d6",
    primary="#56b4e9",
    secondary="#cc79a7",
    accent="#56b4e9",
    success="#56b4e9",
    warning="#f0e442",
    error="#e6701c",
    variables={"dim": "#989898", "faint": "#48484e", "bright": "#ffffff", "k": "#a9628a", "load": "#00805d"},
)

THEMES: Final = (DARK, LIGHT, CLEAR)

THEME_WORDS: Final = {theme.name.removeprefix("specdeck-"): theme.name for theme in THEMES}
"""Their names by the word that an operator writes: `dark`, `light`, `clear`."""

_COLOURS: Final[dict[Role, tuple[str, bool]]] = {
    "text": ("foreground", False),
    "bright": ("bright", True),
    "dim": ("dim", False),
    "faint": ("faint", False),
    "title": ("primary", False),
    "key": ("primary", True),
    "accent": ("accent", True),
    "ok": ("success", False),
    "warn": ("warning", True),
    "critical": ("error", True),
    "fallback": ("secondary", True),
    "alpha": ("primary", False),
    "k": ("k", False),
    "load": ("load", False),
}
"""Role → theme variable and whether it is bold."""


HEAT: Final = (0.08, 0.16, 0.25, 0.35, 0.46)
"""How much of the colour of success each level of heat has on the ground."""


_SIXTEEN: Final[dict[bool, dict[Role, str]]] = {
    True: {"warn": "#ffff55", "fallback": "#ff55ff"},
    False: {
        "title": "#0000aa", "key": "#0000aa", "accent": "#0000aa", "alpha": "#0000aa", "warn": "#aa0000",
        "k": "#aa00aa", "load": "#555555", "dim": "#555555", "faint": "#555555",
    },
}  # fmt: skip
"""By whether the ground is dark: roles whose colour comes to nothing, or to another's, where there are only sixteen.

They are the terminal's own sixteen, as rich names them, so that no other is taken for the nearest.
"""


class Palette:
    """Rich styles by role, made once for each theme. `sixteen`: the terminal has no more colours than that."""

    __slots__ = ("cursor", "heat", "styles")

    def __init__(self, variables: Mapping[str, str], sixteen: bool = False) -> None:
        cold, warm = Color.parse(variables["background"]), Color.parse(variables["success"])
        instead = _SIXTEEN[cold.brightness < 0.5] if sixteen else {}
        self.styles: dict[Role, Style] = {
            role: Style(color=instead.get(role) or _hex(variables[name]), bold=True if bold else None)
            for role, (name, bold) in _COLOURS.items()
        }
        self.cursor = Style(bgcolor=_hex(variables["panel"]))
        # of sixteen colours a ground would be a grey that swallows half of the roles: the cells' glyphs tell enough
        grounds = [Style()] * len(HEAT) if sixteen else [Style(bgcolor=cold.blend(warm, share).hex6) for share in HEAT]
        self.heat = [Style(), *grounds]

    def __getitem__(self, role: Role) -> Style:
        return self.styles[role]


def next_theme(name: str) -> str:
    """The theme after `name`, in the order of `THEMES`."""
    names = [theme.name for theme in THEMES]
    return names[(names.index(name) + 1) % len(names)] if name in names else names[0]


def _hex(colour: str) -> str:
    return Color.parse(colour).hex6
