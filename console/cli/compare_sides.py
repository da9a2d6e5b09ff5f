"""Takes the two sides of a comparison from wherever they are: the station over its feed, stores and traces here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final, NamedTuple

from console.cli.outcomes import BadInput
from console.cli.sources import LIVE, opened
from console.cli.station import ask
from console.cli.windows import Bounds, overlap, parse_window
from console.feed.protocol import SideParams
from store.comparing.sides import Side
from store.figures import Window

_SIDE_SECONDS: Final = 120.0


class Source(NamedTuple):
    """Something that sides are taken from. `span`: all of its recorded time."""

    name: str
    span: tuple[float, float] | None
    side: Callable[[Bounds, list[str] | None], Side]


def taken(a: str, b: str | None, window_a: str | None, window_b: str | None, by: list[str] | None) -> tuple[Side, Side]:
    """Both sides.

    Raises:
        BadInput: no such file, no store and no trace, no window, or two windows of one record that overlap.
        Unreachable: no station runs, or somebody else holds the store.
    """
    same = b is None or _same(a, b)
    if same and (window_a is None or window_b is None):
        raise BadInput(
            f"{a} alone has two sides when both windows are named, as in --a +0m..+10m --b +10m..+20m; or name a B"
        )
    with ExitStack() as stack:
        left = stack.enter_context(_source(a))
        right = left if b is None or same else stack.enter_context(_source(b))
        bounds = parse_window(window_a, "--a", left.span), parse_window(window_b, "--b", right.span)
        if same and (seconds := overlap(*bounds)) > 0:
            raise BadInput(
                f"--a {window_a} and --b {window_b} overlap by {seconds:g} s: what is in both would be held against "
                "itself; end one where the other begins"
            )
        return left.side(bounds[0], by), right.side(bounds[1], by)


def _same(a: str, b: str) -> bool:
    if LIVE in (a, b):
        return a == b
    try:
        return os.path.samefile(a, b)
    except OSError:
        return a == b


@contextmanager
def _source(name: str) -> Iterator[Source]:
    if name == LIVE:
        span = ask("span", Window | None, seconds=_SIDE_SECONDS)  # type: ignore[arg-type]  # msgspec takes unions
        yield Source(name, _ends(span), _asked)
        return
    from store.comparing.measure import side
    from store.report import recorded_span

    with opened(name) as store:

        def of(bounds: Bounds, by: list[str] | None) -> Side:
            return side(store.connection, source=name, by=by, start=bounds.start, end=bounds.end)

        yield Source(name, _ends(recorded_span(store.connection)), of)


def _asked(bounds: Bounds, by: list[str] | None) -> Side:
    return ask("side", Side, SideParams(by=by, start=bounds.start, end=bounds.end), seconds=_SIDE_SECONDS)


def _ends(span: Window | None) -> tuple[float, float] | None:
    return None if span is None else (span.start, span.end)
