"""What a request says about itself is read once, from all its places, and reaches the scheduler as it was meant."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.gateway.failures import Refusal
from console.gateway.lanes import Lanes, TableRefused
from console.gateway.plan import Plan, plan, readable
from console.gateway.unsupported import refused_with_speculation
from engine.hints import Hints, parse_hints

CHAT = "/v1/chat/completions"
FALSE = ["0", "false", " FALSE ", "", 0, 0.0, False]
TRUE = ["1", "true", " True", 1, 1.0, True]
TAGS = st.text(max_size=6) | st.integers() | st.floats(allow_nan=False) | st.booleans() | st.just(["list"])
HEADER_TAGS = st.text(st.characters(min_codepoint=0x20, exclude_categories=["Cs"]), max_size=6)


def _plan(body: Any, *headers: tuple[bytes, bytes], lanes: Lanes | None = None, **engines: bool) -> Plan:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    options = {"vanilla_engine": False, "speculation": True} | engines
    return plan(CHAT, list(headers), raw, lanes or Lanes(), **options)


def _as_the_engine_reads(body: bytes) -> Hints:
    """vLLM takes `vllm_xargs` for `extra_args`, with booleans as numbers."""
    xargs = json.loads(body).get("vllm_xargs") or {}
    return parse_hints({name: int(value) if isinstance(value, bool) else value for name, value in xargs.items()})


@given(
    header_tag=st.none() | HEADER_TAGS,
    header_flag=st.none() | st.sampled_from([value for value in TRUE + FALSE if isinstance(value, str)]),
    field=st.none() | st.sampled_from(TRUE + FALSE),
    xargs=st.none()
    | st.fixed_dictionaries({}, optional={"workload": TAGS, "disable_speculation": st.sampled_from(TRUE + FALSE)}),
)
def test_the_tag_of_the_header_goes_first_and_any_true_hint_wins(
    header_tag: str | None, header_flag: str | None, field: Any, xargs: dict[str, Any] | None
) -> None:
    body = {"prompt": "x", "disable_speculation": field, "vllm_xargs": xargs}
    body = {name: value for name, value in body.items() if value is not None}
    headers = {b"x-workload": header_tag, b"x-disable-speculation": header_flag}
    sent = [(name, value.encode()) for name, value in headers.items() if value is not None]
    tag = (header_tag or "").strip() or _as_the_engine_reads(json.dumps({"vllm_xargs": xargs}).encode()).workload
    disable = any(value in TRUE for value in (header_flag, field, (xargs or {}).get("disable_speculation")))

    planned = _plan(body, *sent)
    assert _as_the_engine_reads(planned.body) == Hints(tag, disable, None)
    assert "disable_speculation" not in json.loads(planned.body)
    assert planned.hinted == disable


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b'{ "prompt" : "x" }', []),
        (b'{"vllm_xargs":{"workload":"code","disable_speculation":true}}', [(b"x-workload", b" code ")]),
        (b'{"vllm_xargs":{"disable_speculation":"true"}}', [(b"x-disable-speculation", b"1")]),
        (b'{"vllm_xargs":{"workload":5}}', [(b"x-workload", b"5"), (b"x-disable-speculation", b"0")]),
        (b'{"prompt":"x"}', [(b"x-workload", b"  "), (b"x-disable-speculation", b"")]),
    ],
)
def test_a_request_that_needs_nothing_keeps_its_bytes(body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    planned = _plan(body, *headers)
    assert planned.body is body
    assert not planned.tag_put
    assert not planned.lost


@pytest.mark.parametrize("wrong", ["yes", "2", "truefalse", "-1", "[bold]", "nan"])
@pytest.mark.parametrize("place", ["x-disable-speculation", "disable_speculation", "vllm_xargs.disable_speculation"])
def test_a_malformed_hint_is_400_and_says_where_what_and_what_may_stand_there(place: str, wrong: str) -> None:
    body: dict[str, Any] = {"disable_speculation": 1}
    headers = [(b"x-disable-speculation", b"1")]
    if place == "x-disable-speculation":
        headers.append((b"x-disable-speculation", wrong.encode()))
    elif place == "disable_speculation":
        body["disable_speculation"] = wrong
    else:
        body["vllm_xargs"] = {"disable_speculation": wrong}
    with pytest.raises(Refusal) as refusal:
        _plan(body, *headers)
    failure = refusal.value.failure
    assert (failure.status, failure.param, failure.code) == (400, place, "malformed_hint")
    assert all(word in failure.message for word in (place, wrong, "1, 0, true or false"))
    assert refusal.value.counts == ("refused", "hints_rejected")


@pytest.mark.parametrize("wrong", [[1], {"a": 1}, 2, 0.5, -1, 10**30, [], "x" * 10_000])
def test_a_hint_of_another_type_is_malformed_too_and_its_answer_stays_short(wrong: Any) -> None:
    with pytest.raises(Refusal) as refusal:
        _plan({"disable_speculation": wrong})
    assert len(refusal.value.failure.message) < 300


@pytest.mark.parametrize(
    "body", [b"", b"not json", b"[1]", b'"x"', b"\x1f\x8b\x08gzip", b'{"vllm_xargs": [1]}', b'{"a":1']
)
def test_where_nothing_can_be_put_in_the_body_stays_and_the_loss_is_told(body: bytes) -> None:
    planned = _plan(body, (b"x-workload", b"code"), (b"x-disable-speculation", b"1"))
    assert (planned.body, planned.tag_put, planned.lost, planned.hinted) == (body, False, True, True)
    assert not _plan(body).lost


@pytest.mark.parametrize("header", ["größer".encode(), "größer".encode("latin-1")])
def test_a_tag_is_a_name_of_any_script_and_at_most_128_characters(header: bytes) -> None:
    assert json.loads(_plan({}, (b"x-workload", header)).body) == {"vllm_xargs": {"workload": "größer"}}
    hostile = b"[bold red]x[/]'; DROP TABLE steps;--" * 10
    assert json.loads(_plan({}, (b"x-workload", hostile)).body)["vllm_xargs"]["workload"] == hostile.decode()[:128]


@pytest.mark.parametrize(
    ("method", "path", "media_type", "expected"),
    [
        ("POST", CHAT, b"application/json", True),
        ("POST", "/v1/completions", b"Application/JSON; charset=utf-8", True),
        ("POST", "/v1/responses", b"application/json", True),
        ("POST", "/v1/messages", b"application/json", True),
        ("GET", CHAT, b"application/json", False),
        ("POST", CHAT, b"text/plain", False),
        ("POST", CHAT, b"application/jsonl", False),
        ("POST", "/v1/embeddings", b"application/json", False),
        ("POST", "/v1/audio/transcriptions", b"multipart/form-data; boundary=x", False),
    ],
)
def test_only_bodies_that_vllm_reads_hints_from_are_read_whole(
    method: str, path: str, media_type: bytes, expected: bool
) -> None:
    assert readable(method, path, [(b"content-type", media_type)]) is expected


def test_a_body_without_a_content_type_is_left_alone_as_vllm_refuses_it() -> None:
    assert not readable("POST", CHAT, [])


# -- lanes and parameters -------------------------------------------------------------------------------------------


def _lanes(**lanes: str) -> Lanes:
    found = Lanes()
    found.replace({"version": 1, "lanes": lanes})
    return found


def test_the_lane_is_that_of_the_tag_which_the_engine_will_see() -> None:
    lanes = _lanes(code="vanilla", untagged="vanilla", chat="speculative")

    def goes(body: Any, *headers: tuple[bytes, bytes], **engines: bool) -> str | None:
        return _plan(body, *headers, lanes=lanes, **({"vanilla_engine": True} | engines)).vanilla

    assert goes({"vllm_xargs": {"workload": " code "}}) == "lane"
    assert goes({"vllm_xargs": {"workload": "chat"}}, (b"x-workload", b"code")) == "lane"
    assert goes({"vllm_xargs": {"workload": "code"}}, (b"x-workload", b"chat")) is None
    assert goes({"vllm_xargs": {"workload": "code"}}, (b"x-workload", b"new")) is None
    assert goes({}) == "lane"
    assert goes({}, vanilla_engine=False) is None


def test_a_hint_goes_to_the_engine_without_speculation_where_there_is_one() -> None:
    hinted: list[tuple[Any, tuple[tuple[bytes, bytes], ...]]] = [
        ({"disable_speculation": True}, ()),
        ({"vllm_xargs": {"disable_speculation": "1"}}, ()),
        ({}, ((b"x-disable-speculation", b"true"),)),
    ]
    for body, headers in hinted:
        assert _plan(body, *headers, vanilla_engine=True).vanilla == "hint"
        assert _plan(body, *headers).vanilla is None
    assert _plan({"disable_speculation": False}, vanilla_engine=True).vanilla is None


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"min_p": 0.1}, ("min_p",)),
        ({"min_p": "0.1"}, ("min_p",)),
        ({"min_p": 1e-5}, ()),
        ({"min_p": 0}, ()),
        ({"min_p": None}, ()),
        ({"min_p": 0.1, "temperature": 0}, ()),
        ({"min_p": 0.1, "temperature": 1e-6}, ("min_p",)),
        ({"min_p": 0.1, "temperature": 0.7}, ("min_p",)),
        ({"min_p": 10**400}, ()),
        ({"min_p": [0.1]}, ()),
        ({"logit_bias": {}}, ()),
        ({"logit_bias": None}, ()),
        ({"logit_bias": {"5": 1}, "temperature": 0}, ("logit_bias",)),
        ({"logit_bias": {"5": 1}, "min_p": 0.2}, ("min_p", "logit_bias")),
        ({"logit_bias": {"5": 1}, "use_beam_search": True}, ()),
    ],
)
def test_exactly_the_requests_that_vllm_would_refuse_go_to_the_engine_without_speculation(
    fields: dict[str, Any], names: tuple[str, ...]
) -> None:
    assert refused_with_speculation(CHAT, fields.get) == names
    assert _plan(fields, vanilla_engine=True).vanilla == ("parameters" if names else None)
    assert _plan(fields, speculation=False).vanilla is None
    if names:
        with pytest.raises(Refusal) as refusal:
            _plan(fields)
        failure = refusal.value.failure
        assert (failure.status, failure.param) == (400, names[0])
        assert all(word in failure.message for word in (*names, "speculative", "--vanilla-engine"))
        assert refusal.value.counts == ("refused", "unsupported")


def test_paths_differ_in_what_they_take() -> None:
    fields = {"min_p": 0.5, "use_beam_search": True}
    assert refused_with_speculation("/v1/messages", fields.get) == ()
    assert refused_with_speculation("/v1/responses", fields.get) == ("min_p",)


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ({}, "version"),
        ([], "object"),
        ({"version": True}, "version"),
        ({"version": -1}, "version"),
        ({"version": 2, "lane": {}}, "lane"),
        ({"version": 2, "lanes": {"code": "fast"}}, "lanes"),
        ({"version": 2, "lanes": {"": "vanilla"}}, "lanes"),
        ({"version": 2, "lanes": {"x" * 129: "vanilla"}}, "lanes"),
        ({"version": 2, "lanes": {" code": "vanilla"}}, "' code'"),
        ({"version": 2, "lanes": {str(n): "vanilla" for n in range(5000)}}, "lanes"),
    ],
)
def test_a_wrong_table_is_refused_with_its_place_and_the_one_before_stays(wrong: Any, place: str) -> None:
    lanes = _lanes(code="vanilla")
    with pytest.raises(TableRefused, match="lane table") as refused:
        lanes.replace(wrong)
    assert place in str(refused.value)
    assert len(str(refused.value)) < 400
    assert (lanes.table.version, lanes.of("code"), lanes.of(None)) == (1, "vanilla", "speculative")
