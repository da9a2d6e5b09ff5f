"""The judge's settings as they are typed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from console.cli.outcomes import BadInput

if TYPE_CHECKING:
    from store.judge.settings import JudgeSettings

F = TypeVar("F", bound=Callable[..., Any])


def floor(text: str) -> Callable[[F], F]:
    """The option --speedup-floor, None where it is not given. `text`: its help."""
    return click.option("--speedup-floor", type=float, default=None, metavar="X", callback=_checked, help=text)


def judge_settings(speedup_floor: float | None) -> JudgeSettings | None:
    """None: nothing differs from the defaults."""
    if speedup_floor is None:
        return None
    from store.judge.settings import JudgeSettings

    return JudgeSettings(speedup_floor=speedup_floor)


def _checked(_: click.Context, __: click.Parameter, value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value > 0):
        raise BadInput(f"--speedup-floor {value}: a realised speedup is a number above 0; 1 is as fast as without")
    return value
