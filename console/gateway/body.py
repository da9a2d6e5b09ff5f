"""A request body as vLLM will read it, and the same body with something put into its `vllm_xargs`.

What needs nothing stays the very bytes that the client sent; else only the places that change are rewritten: key order,
numbers as written, escapes, spacing and names that come twice stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from console.gateway.json_places import Edit, JsonObject, edited, read_object, read_object_at, removals

XARGS: Final = "vllm_xargs"
"""vLLM's own place for arguments of extensions; they reach the scheduler as `SamplingParams.extra_args`."""


class NoPlace(ValueError):
    """`vllm_xargs` holds something that is no object: nothing can be put in (and vLLM will refuse the request)."""


@dataclass(frozen=True, slots=True)
class JsonBody:
    """A body that is a JSON object. `text` is `raw` in `encoding`."""

    raw: bytes
    text: str
    encoding: str
    whole: JsonObject
    xargs: Mapping[str, Any]
    """`vllm_xargs` as vLLM will read it; empty where it is absent or no object."""

    def get(self, name: str) -> Any:
        """The value of a top-level field, None when absent."""
        member = self.whole.last(name)
        return member.value if member is not None else None


def read_body(raw: bytes) -> JsonBody | None:
    """The body as `json.loads` reads it, None where that finds no object (then the engine says what is wrong)."""
    encoding = json.detect_encoding(raw)
    try:
        text = raw.decode(encoding, "surrogatepass")
        whole = read_object(text)
    except (ValueError, RecursionError):
        return None
    member = whole.last(XARGS)
    xargs = member.value if member is not None and isinstance(member.value, dict) else {}
    return JsonBody(raw, text, encoding, whole, xargs)


def rewritten(body: JsonBody, values: Mapping[str, str | int], *, without: str) -> bytes:
    """The body with `values` set in its `vllm_xargs` and the top-level field `without` taken out.

    Raises:
        NoPlace: there are values and no object to put them into.
    """
    edits = [*removals(body.whole, without), *_settings(body, values, without)]
    return edited(body.text, edits).encode(body.encoding, "surrogatepass") if edits else body.raw


def _settings(body: JsonBody, values: Mapping[str, str | int], without: str) -> Iterator[Edit]:
    member = body.whole.last(XARGS)
    if not values:
        return
    if member is None:
        followed = any(other.name != without for other in body.whole.members)
        yield _insertion(body.whole, {XARGS: dict(values)}, followed=followed)
    elif member.value is None:
        yield Edit(member.value_start, member.end, json.dumps(dict(values)))
    elif isinstance(member.value, dict):
        yield from _settings_inside(read_object_at(body.text, member.value_start), values)
    else:
        raise NoPlace(f"{XARGS} is no object")


def _settings_inside(xargs: JsonObject, values: Mapping[str, str | int]) -> Iterator[Edit]:
    new = {}
    for name, value in values.items():
        there = xargs.last(name)
        if there is None:
            new[name] = value
        else:
            yield Edit(there.value_start, there.end, json.dumps(value))
    if new:
        yield _insertion(xargs, new, followed=bool(xargs.members))


def _insertion(into: JsonObject, fields: Mapping[str, Any], *, followed: bool) -> Edit:
    """`fields` at the front of an object; `followed` by what it holds already."""
    return Edit(into.open, into.open, json.dumps(fields)[1:-1] + (", " if followed else ""))
