"""What the gateway puts into a body arrives, and nothing else of that body changes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from console.gateway.body import NoPlace, read_body, rewritten
from console.gateway.json_places import read_object

SPACE = st.sampled_from(["", "", "", " ", "\n", "\t\r\n  "])
NUMBERS = st.sampled_from(["0", "-0", "1.0e5", "1E400", "0.10", "12345678901234567890123", "NaN", "-Infinity"])
STRINGS = st.builds(json.dumps, st.text(max_size=8), ensure_ascii=st.booleans()) | st.sampled_from(
    [r'"\/\b"', r'"\ud800"', r'"\"}"', '"ключ"', '"]}"']
)
SCALARS = NUMBERS | STRINGS | st.sampled_from(["true", "false", "null"])
NAMES = st.sampled_from(
    [
        '"vllm_xargs"',
        r'"vllm_\u0078args"',
        '"disable_speculation"',
        r'"disable\u005fspeculation"',
        '"workload"',
        '"m"',
        '""',
        '"prompt"',
    ]
)
VALUES = st.sampled_from([{}, {"workload": "code"}, {"disable_speculation": 1}, {"workload": '"\\ü', "x": 1}])


def _joined(parts: list[str], spaces: list[str], signs: str) -> str:
    return signs[0] + spaces[0] + ",".join(spaces[1] + part + spaces[2] for part in parts) + spaces[3] + signs[1]


def _lists(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(_joined, st.lists(inner, max_size=3), st.lists(SPACE, min_size=4, max_size=4), st.just("[]"))


def _objects(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    member = st.builds("{0}{2}:{3}{1}".format, NAMES, inner, SPACE, SPACE)
    return st.builds(_joined, st.lists(member, max_size=5), st.lists(SPACE, min_size=4, max_size=4), st.just("{}"))


JSON = st.recursive(SCALARS, lambda inner: _lists(inner) | _objects(inner), max_leaves=12)
OBJECTS = st.builds("{0}{1}{2}".format, SPACE, _objects(JSON), SPACE)


def _exact(text: str) -> Any:
    """Everything that a reader could notice: names that come twice, and numbers as they are written."""
    return json.loads(
        text, object_pairs_hook=lambda pairs: ("object", pairs), parse_int=str, parse_float=str, parse_constant=str
    )


def _with(pairs: list[tuple[str, Any]], values: dict[str, Any]) -> list[tuple[str, Any]]:
    """`pairs` with each value set where that name last stood, and the new ones in front."""
    pairs, new = list(pairs), []
    for name, value in values.items():
        places = [place for place, (other, _) in enumerate(pairs) if other == name]
        if places:
            pairs[places[-1]] = (name, value)
        else:
            new.append((name, value))
    return new + pairs


@settings(max_examples=200, deadline=None)
@given(OBJECTS, VALUES)
@example('{"disable_speculation":1}', {"workload": "code"})
@example('{"disable_speculation":1 , "disable_speculation" : 0}', {})
@example('{"a":1,"disable_speculation":1,"disable_speculation":1}', {})
@example('{"vllm_xargs":{"workload":1},"vllm_xargs":{}}', {"workload": "code"})
@example('{"vllm_xargs":{"workload":1,"workload":2,"x":{}}}', {"workload": "code"})
@example('{"vllm_xargs": null }', {"workload": "code"})
@example("{ }", {"workload": "code", "disable_speculation": 1})
def test_only_what_is_put_in_and_what_is_taken_out_changes(text: str, values: dict[str, Any]) -> None:
    body = read_body(text.encode("utf-8", "surrogatepass"))
    assert body is not None
    pairs = [pair for pair in _exact(text)[1] if pair[0] != "disable_speculation"]
    there = [value for name, value in pairs if name == "vllm_xargs"]
    inside = there[-1] if there else None
    if values and inside is not None and not (isinstance(inside, tuple) and inside[0] == "object"):
        with pytest.raises(NoPlace):
            rewritten(body, values, without="disable_speculation")
        return
    after = rewritten(body, values, without="disable_speculation").decode("utf-8", "surrogatepass")
    put = {name: str(value) if isinstance(value, int) else value for name, value in values.items()}
    if put:
        pairs = _with(pairs, {"vllm_xargs": ("object", _with(inside[1] if inside else [], put))})
    assert _exact(after) == ("object", pairs)
    assert _as_written(after) == _as_written(text)


def _as_written(text: str) -> list[str]:
    """The members that stay, letter for letter."""
    changed = ("vllm_xargs", "disable_speculation")
    return [text[member.start : member.end] for member in read_object(text).members if member.name not in changed]


@settings(deadline=None)
@given(OBJECTS, VALUES)
def test_a_body_that_has_everything_already_keeps_its_bytes(text: str, values: dict[str, Any]) -> None:
    body = read_body(text.encode("utf-8", "surrogatepass"))
    assert body is not None
    try:
        once = rewritten(body, values, without="disable_speculation")
    except NoPlace:
        return
    again = read_body(once)
    assert again is not None
    assert dict(again.xargs).items() >= values.items()
    assert rewritten(again, {}, without="disable_speculation") == once


@st.composite
def _damaged(draw: st.DrawFn) -> bytes:
    text = draw(OBJECTS | JSON)
    raw = text.encode(draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])), "surrogatepass")
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(raw)))
        middle = draw(st.sampled_from([b"", b"", b",", b"}", b'"', b"\xff", b"\x00", b"{", b"\\", b" "]))
        raw = raw[:place] + middle + raw[place + draw(st.integers(0, 2)) :]
    return raw


@settings(max_examples=200, deadline=None)
@given(_damaged() | st.binary(max_size=20))
@example(b"")
@example(b"\xef\xbb\xbf\xef\xbb\xbf{}")
@example(b"{}{}")
@example(b'{"a":1,}')
def test_a_body_is_read_when_and_as_vllm_reads_it(raw: bytes) -> None:
    try:
        theirs = json.loads(raw)
    except ValueError:
        theirs = None
    ours = read_body(raw)
    assert (ours is not None) == isinstance(theirs, dict)
    if ours is not None:
        assert repr({member.name: member.value for member in ours.whole.members}) == repr(theirs)


@pytest.mark.parametrize(
    "raw", [b'{"a":' + b"[" * 200_000, b'{"a":' + b'{"b":' * 200_000, b'{"a":' + b"9" * 5000 + b"}"]
)
def test_what_json_itself_gives_up_on_is_left_to_the_engine(raw: bytes) -> None:
    assert read_body(raw) is None


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32-be"])
def test_a_rewritten_body_keeps_its_encoding(encoding: str) -> None:
    body = read_body('{"prompt": "größer €"}'.encode(encoding))
    assert body is not None
    after = rewritten(body, {"workload": "ключ"}, without="disable_speculation")
    assert json.detect_encoding(after) == json.detect_encoding(body.raw)
    assert json.loads(after) == {"vllm_xargs": {"workload": "ключ"}, "prompt": "größer €"}


def test_bytes_that_are_no_proper_text_but_that_json_takes_stay_as_they_are() -> None:
    body = read_body(b'{"prompt": "\xed\xa0\x80"}')
    assert body is not None
    after = rewritten(body, {"workload": "code"}, without="disable_speculation")
    assert after == b'{"vllm_xargs": {"workload": "code"}, "prompt": "\xed\xa0\x80"}'
