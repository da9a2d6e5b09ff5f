"""The controller's numbers as an operator may set them: `SPECDECK_DECIDING`, a JSON object with any of their fields.

`SPECDECK_DECIDING='{"window_s": 120, "longest_pause_s": 300}'` turns a workload off after two minutes and tries it
again every four at the latest. Fields and defaults are those of `engine.deciding.settings.DecidingSettings`; what is
left out keeps its own.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Final

import msgspec

from engine.deciding.settings import DecidingSettings
from engine.policy.state import LONGEST_BLOCK, SHORTEST_BLOCK

VARIABLE: Final = "SPECDECK_DECIDING"

_DEFAULTS: Final = msgspec.structs.asdict(DecidingSettings())
_SHARES: Final = frozenset({"probe_share", "confirming_share", "confidence", "hopeful"})
"""Fields between 0 and 1, both left out."""
_MAY_BE_0: Final = frozenset({"min_gain", "probe_clear_steps", "shortest_pause_s", "changed"})


class BadDeciding(ValueError):
    """`SPECDECK_DECIDING` can't be meant: names the field and what it may be."""


def deciding_settings(
    text: str | None = None, where: str = VARIABLE, file: Mapping[str, float] | None = None
) -> DecidingSettings:
    """The settings in `text`, by default in the environment; what is not set there as in `file`, else by default.

    Args:
        where: what a complaint calls `text`.
        file: fields of the settings file, checked by themselves before.

    Raises:
        BadDeciding: it is no JSON object of known fields with numbers that they can have.
    """
    text = os.environ.get(VARIABLE, "") if text is None else text
    try:
        given = msgspec.json.decode(text, type=dict[str, float]) if text.strip() else {}
        unknown = sorted(given.keys() - _DEFAULTS.keys())
        if unknown:
            raise BadDeciding(f"there is no setting {', '.join(unknown)}; there are: {', '.join(_DEFAULTS)}")
        numbers = {name: _number(name, value) for name, value in {**(file or {}), **given}.items()}
        return _checked(msgspec.structs.replace(DecidingSettings(), **numbers))
    except msgspec.DecodeError as error:
        raise BadDeciding(f'{where}: {error}; give a JSON object like {{"window_s": 120}}') from error
    except BadDeciding as error:
        raise BadDeciding(f"{where}: {error}") from error


def _number(name: str, value: float) -> float | int:
    if name in _SHARES and not 0 < value < 1:
        raise BadDeciding(f"{name} is {value:g}; it lies between 0 and 1")
    if not math.isfinite(value) or value < 0 or (value == 0 and name not in _MAY_BE_0):
        least = "at least 0" if name in _MAY_BE_0 else "above 0"
        raise BadDeciding(f"{name} is {value:g}; it must be {least}")
    if not isinstance(_DEFAULTS[name], int):
        return value
    if value != int(value):
        raise BadDeciding(f"{name} is {value:g}; it is a whole number")
    if name == "probe_least_steps" and value < SHORTEST_BLOCK:
        raise BadDeciding(f"{name} is {value:g}; it is at least {SHORTEST_BLOCK}")
    if name == "probe_most_steps" and value > LONGEST_BLOCK:
        raise BadDeciding(f"{name} is {value:g}; it is at most {LONGEST_BLOCK}")
    return int(value)


def _checked(settings: DecidingSettings) -> DecidingSettings:
    """What must fit together."""
    for less, more in (
        ("recent_s", "window_s"), ("shortest_pause_s", "longest_pause_s"), ("probe_least_steps", "probe_most_steps"),
        ("fallback_below", "recover_above"),
    ):  # fmt: skip
        low, high = getattr(settings, less), getattr(settings, more)
        if low > high:
            raise BadDeciding(f"{less} is {low:g} and {more} {high:g}; the first must not be the larger")
    return settings
