"""What a request says about itself, in its headers and its body: the workload tag and `disable_speculation`.

For the tag the header goes before the body; of the places that may say `disable_speculation`, any true one wins. Both
are spelled as the engine reads them (`engine.hints`), so that gateway and scheduler never differ about a request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from console.gateway.body import XARGS, JsonBody
from console.gateway.headers import Headers
from engine.hints import parse_flag, parse_workload

WORKLOAD: Final = "workload"
DISABLE: Final = "disable_speculation"
WORKLOAD_HEADER: Final = "x-workload"
DISABLE_HEADER: Final = "x-disable-speculation"
_HINT_HEADERS: Final = (WORKLOAD_HEADER.encode(), DISABLE_HEADER.encode())


class HintRefused(ValueError):
    """A `disable_speculation` that is neither true nor false: `place` names where it stood, `came` shows it."""

    def __init__(self, place: str, came: str) -> None:
        super().__init__(f"{place}: {came}")
        self.place = place
        self.came = came


class HeaderHints(NamedTuple):
    """What the headers say; `workload` None is untagged."""

    workload: str | None
    disable: bool

    def __bool__(self) -> bool:
        return self.workload is not None or self.disable


class Hints(NamedTuple):
    """What a request says, all places together. `missing`: what has to be put into `vllm_xargs` to reach the engine."""

    workload: str | None
    disable: bool
    missing: Mapping[str, str | int]


def header_hints(headers: Headers) -> HeaderHints:
    """Read the headers (names in lower case).

    Raises:
        HintRefused: a malformed `x-disable-speculation`.
    """
    tags = (parse_workload(_text(value)) for value in _values(headers, WORKLOAD_HEADER))
    flags = [_flag(DISABLE_HEADER, _text(value)) for value in _values(headers, DISABLE_HEADER)]
    return HeaderHints(next((tag for tag in tags if tag is not None), None), any(flags))


def said_in_headers(headers: Headers) -> bool:
    """Whether the headers hold anything that would have to go into a body."""
    return any(name in _HINT_HEADERS and value.strip() for name, value in headers)


def all_hints(header: HeaderHints, body: JsonBody) -> Hints:
    """The hints of header and body together.

    Raises:
        HintRefused: a malformed `disable_speculation` in the body.
    """
    said_inside = _flag(f"{XARGS}.{DISABLE}", body.xargs.get(DISABLE))
    disable = any((header.disable, _flag(DISABLE, body.get(DISABLE)), said_inside))
    tag_inside = parse_workload(_as_it_arrives(body.xargs.get(WORKLOAD)))
    missing: dict[str, str | int] = {}
    if header.workload is not None and header.workload != tag_inside:
        missing[WORKLOAD] = header.workload
    if disable and not said_inside:
        missing[DISABLE] = 1
    return Hints(header.workload or tag_inside, disable, missing)


def _flag(place: str, value: Any) -> bool:
    flag, came = parse_flag(value)
    if came is not None:
        raise HintRefused(place, came)
    return flag


def _as_it_arrives(value: Any) -> Any:
    """vLLM hands `true` to the scheduler as 1."""
    return int(value) if isinstance(value, bool) else value


def _values(headers: Headers, name: str) -> list[bytes]:
    return [value for key, value in headers if key == name.encode()]


def _text(value: bytes) -> str:
    """HTTP knows no encoding of header values: UTF-8 where it is that, else Latin-1, which anything is."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
