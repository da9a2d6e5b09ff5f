"""Redaction of text: whatever is private is gone, and what a reader needs is still there."""

from __future__ import annotations

import ipaddress
import json
import shlex
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.redact.private import Private
from store.redact.redactor import Redactor
from tests.store.redact_cases import HARMLESS, HOSTILE, SOMEBODY


@pytest.mark.parametrize(("text", "private"), HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_private_is_left_in_text(text: str, private: str) -> None:
    assert private in text
    assert private not in Redactor(SOMEBODY).text(text)


@pytest.mark.parametrize("text", HARMLESS, ids=range(len(HARMLESS)))
def test_what_is_not_private_stays_as_it_is(text: str) -> None:
    assert Redactor(SOMEBODY).text(text) == text


def test_the_stand_ins_say_what_was_there() -> None:
    text = "jdoe on gpu-01 (10.1.2.3) wrote to a@b.io from /home/jdoe/x: api_key=abc, chatcmpl-1 over http://u:p@h/"
    assert Redactor(SOMEBODY).text(text) == (
        "<user> on <host> (<address>) wrote to <e-mail> from ~/x: api_key=<secret> <request> over http://<credentials>@<host>/"
    )


def test_a_key_is_found_as_json_python_and_urls_spell_it() -> None:
    key = 'a"b\\c&d'
    redactor = Redactor(Private(secrets=(key,)))
    spelled = [key, msgspec.json.encode(key).decode()[1:-1], repr(key)[1:-1], "a%22b%5Cc%26d"]
    for form in spelled:
        assert redactor.text(f"<{form}>") == "<<secret>>"


def test_stand_ins_are_not_taken_for_text_again() -> None:
    """A user may be called `secret`, a host `user`, a tag `host`, and the text may hold our private characters."""
    redactor = Redactor(Private(secrets=("k" * 9,), users=("secret",), hosts=("user",)))
    redactor.tag("host")
    assert redactor.text("k" * 9 + " secret user host \ue000") == "<secret> <user> <host> tag-1 \ufffd"


@settings(deadline=None)
@given(before=st.text(max_size=30), after=st.text(max_size=30), key=st.from_regex(r"[A-Z0-9]{8,40}", fullmatch=True))
def test_the_stations_own_key_is_gone_wherever_it_stands(before: str, after: str, key: str) -> None:
    redactor = Redactor(Private(secrets=(key,)))
    assert key not in redactor.text(before + key + after)
    assert key not in str(redactor.value({"x": [before, {before + key: key + after}]}))


@settings(deadline=None)
@given(
    st.ip_addresses(v=4),
    st.sampled_from(["{}", "peer {}:8000", "({})", "tcp://{}/", "x={},", "from {}.", "[::ffff:{}]", "a_{}"]),
)
def test_no_address_of_four_bytes_is_left(address: ipaddress.IPv4Address, around: str) -> None:
    shown = Redactor().text(around.format(address))
    assert (str(address) in shown) == (address.is_loopback or address.is_unspecified)


@settings(deadline=None)
@given(
    st.ip_addresses(v=6),
    st.booleans(),
    st.sampled_from(["{}", "peer {} gone", "[{}]:80", "http://[{}]/", "{}%eth0", "addr={}", "{}:", "x:{}", "({})"]),
)
def test_no_address_of_sixteen_bytes_is_left(address: ipaddress.IPv6Address, whole: bool, around: str) -> None:
    written = address.exploded if whole else str(address)
    inner = address.ipv4_mapped or address
    shown = Redactor().text(around.format(written))
    if not (inner.is_loopback or inner.is_unspecified):
        assert written not in shown


@settings(deadline=None)
@given(
    st.from_regex(r"[a-z0-9._%+-]{1,20}@[a-z0-9-]{1,10}\.(com|org|co\.uk)", fullmatch=True),
    st.sampled_from(["{}", "<{}>", "mailto:{}", "by {}.", "{},x", "'{}'"]),
)
def test_no_e_mail_address_is_left(address: str, around: str) -> None:
    shown = Redactor().text(around.format(address))
    assert address not in shown
    assert "@" not in shown.replace("<credentials>@", "")


@settings(deadline=None)
@given(
    st.sampled_from(["api_key", "API-KEY", "hf_token", "password", "secretKey", "passphrase", "my_credential"]),
    st.sampled_from(["=", ": ", " = ", "='", '": "', " := ", "=>"]),
    st.from_regex(r"[A-Za-z][A-Za-z0-9+/_.=-]{7,30}", fullmatch=True),
)
def test_no_value_that_is_assigned_to_a_secret_name_is_left(name: str, sign: str, value: str) -> None:
    quote = sign[-1] if sign[-1] in "'\"" else ""
    shown = Redactor().text(f"n=1 {name}{sign}{value}{quote} m=2")
    assert value not in shown
    assert shown.startswith("n=1 ")
    assert shown.endswith(" m=2")


@settings(deadline=None)
@given(st.text())
def test_any_text_can_be_redacted(text: str) -> None:
    assert isinstance(Redactor(SOMEBODY).text(text), str)


@pytest.mark.parametrize(
    "piece",
    [
        "a", "0:", "://a:b", "eyJ-", "password=", "token ", "-", "a@b.", "x.", '\\"', "key=", "model /", "'content': '",
        "secret=[", "secret={'", "secret='", '"""', "token=(a,", "--api-key x ", "prompt: '", "text=[[", "\\", "b'",
        "ABCDEFGHIJKLMNOP\n", "api_key: |\n  ", "user=", "host=a.", "&sig=", "~a", "/home/", "a.local", "is ", " ",
    ],
    ids=repr,
)  # fmt: skip
def test_a_huge_line_is_no_trap(piece: str) -> None:
    """A rule that tries every place against all the rest of the line would take hours for a log of this."""
    Redactor(SOMEBODY).text(piece * (100_000 // len(piece)))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, max_examples=60)
@given(
    JSON_VALUES,
    st.sampled_from(["api_key", "hf_token", "password", "Authorization", "clientSecret", "AWS_SECRET_ACCESS_KEY"]),
    st.text(st.characters(exclude_categories=("Cs",)), min_size=4, max_size=20).filter(lambda text: text.strip()),
    st.integers(0, 2),
)
def test_a_secret_in_json_is_gone_however_often_it_was_quoted(other: Any, name: str, inner: str, times: int) -> None:
    """The name says it all: what the secret is made of does not matter."""
    secret = f"qzx{inner}dog"
    text = msgspec.json.encode({"a": other, name: secret, "z": 1}).decode()
    for _ in range(times):
        text = msgspec.json.encode(text).decode()
    shown = Redactor().text(text)
    assert "qzx" not in shown
    assert "dog" not in shown


@settings(deadline=None, max_examples=60)
@given(
    st.text(st.characters(exclude_categories=("Cs",)), min_size=4, max_size=20).filter(lambda text: text.strip()),
    st.lists(st.sampled_from([json.dumps, ascii, repr, shlex.quote, quote]), max_size=2),
)
def test_a_known_secret_is_gone_however_it_was_written(inner: str, ways: list[Callable[[str], str]]) -> None:
    secret = f"qzx{inner}dog"
    text = secret
    for way in ways:
        text = way(text)
    shown = Redactor(Private(secrets=(f"{secret}\n",))).text(f"it is {text}.")
    assert "qzx" not in shown, "a key that was read from a file has a line feed at its end"
    assert "dog" not in shown


def test_what_follows_a_secret_is_still_there() -> None:
    """Too much is taken out only where it can't be told where the secret ends."""
    shown = Redactor().text(
        "args: {'api_key': ['abc', 'd,e'], 'port': 1} and api_key=(1, 2), n=1; password='a\\'b' m=2"
    )
    assert shown == "args: {'api_key': <secret>, 'port': 1} and api_key=<secret>, n=1; password=<secret> m=2"
    assert Redactor().text("api_key: |\n  abc\nport: 1") == "api_key: <secret>\nport: 1"
    assert Redactor().text("x --api-key a b --port 1") == "x --api-key <secret> --port 1"
