"""A picture of the terminal as text: its characters, and below them which style each run of them has.

A style is written once, in the legend, as it is in each theme: themes differ in colours alone. A line of runs such as
`3 a9 b12` says that line 3 has nine cells in style a and twelve in style b; lines that are alike are told together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import groupby
from string import ascii_lowercase, ascii_uppercase

from rich.cells import cell_len
from rich.style import Style
from textual.app import App
from textual.strip import Strip

NAMES = [*ascii_lowercase, *ascii_uppercase, *(a + b for a in ascii_uppercase for b in ascii_lowercase)]


Cell = tuple[str, str]


@dataclass(frozen=True)
class Capture:
    """What is painted: a text and a style for each cell of each line. Wide characters fill their second cell with an
    empty text."""

    lines: tuple[tuple[Cell, ...], ...]

    @cached_property
    def text(self) -> str:
        return "\n".join("".join(text for text, _ in line).rstrip() for line in self.lines)

    @property
    def widest(self) -> int:
        return max(len(line) for line in self.lines)


def capture(app: App[object]) -> Capture:
    """The screen as it stands."""
    return read(painted(app))


def painted(app: App[object]) -> list[Strip]:
    """What would go to the terminal, line by line."""
    return app.screen._compositor.render_strips()


def read(strips: list[Strip]) -> Capture:
    return Capture(tuple(tuple(_cells(strip)) for strip in strips))


@cache
def style_text(style: Style | None) -> str:
    """`#8b949e on #101418 bold`, with `-` for what is left to the terminal."""
    if style is None:
        return "-"
    colours = [colour.name if colour is not None else "-" for colour in (style.color, style.bgcolor)]
    marks = [name for name in ("bold", "dim", "italic", "underline", "reverse") if getattr(style, name)]
    return " ".join([f"{colours[0]} on {colours[1]}", *marks])


def written(pictures: Mapping[str, Mapping[str, Capture]]) -> str:
    """Pictures by their title, each in one theme or several, with one legend for all of them."""
    legend = _Legend()
    parts: list[str] = []
    themes = list(dict.fromkeys(theme for one in pictures.values() for theme in one))
    for title, by_theme in pictures.items():
        first = next(iter(by_theme.values()))
        runs = list(_runs([by_theme.get(theme) for theme in themes], legend))
        parts.append("\n".join([f"== {title}", first.text, f"-- {title}: styles", *_alike(runs)]))
    names = [f"{name} {' | '.join(styles)}" for styles, name in legend.styles.items()]
    return "\n".join([*parts, f"== styles: {' | '.join(themes)}", *names, ""])


def _cells(strip: Strip) -> Iterator[Cell]:
    for segment in strip:
        style = style_text(segment.style)
        if segment.text.isascii():
            yield from [(character, style) for character in segment.text]
            continue
        for character in segment.text:
            yield from ((character, style), ("", style))[: cell_len(character)]


class _Legend:
    """Names for styles, the same in all themes, in the order in which they are met."""

    def __init__(self) -> None:
        self.styles: dict[tuple[str, ...], str] = {}
        self._known: dict[tuple[Cell, ...], str] = {}

    def name(self, cells: tuple[Cell, ...]) -> str:
        """Of one place of the screen, as it is in each theme."""
        if cells not in self._known:
            styles = tuple(_seen(text, style) if style else "" for text, style in cells)
            self._known[cells] = self.styles.setdefault(styles, NAMES[len(self.styles)])
        return self._known[cells]


def _runs(captures: list[Capture | None], legend: _Legend) -> Iterator[str]:
    """Line by line. A theme that was not taken has no style."""
    taken = [one for one in captures if one is not None]
    nothing = [("", "")] * taken[0].widest
    for row in range(len(taken[0].lines)):
        places = zip(*(nothing if one is None else one.lines[row] for one in captures), strict=True)
        yield " ".join(f"{name}{len(list(run))}" for name, run in groupby(map(legend.name, places)))


def _seen(text: str, style: str) -> str:
    """A blank cell's foreground is nobody's business."""
    rest = style.partition(" on ")[2]
    return f"- on {rest.split(' ')[0]}" if text == " " and "underline" not in rest and "reverse" not in rest else style


def _alike(runs: list[str]) -> Iterator[str]:
    row = 1
    for run, same in groupby(runs):
        count = len(list(same))
        yield f"{row} {run}" if count == 1 else f"{row}-{row + count - 1} {run}"
        row += count
