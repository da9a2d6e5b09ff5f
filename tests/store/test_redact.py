"""Redaction: whatever is private is gone from text and records, and what a reader needs is still there."""

from __future__ import annotations

import ipaddress
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.records import ControlRecord, FinishRecord, GapRecord, PolicyMode, Record, StateRecord
from store.buckets import OTHER, UNATTRIBUTED, UNTAGGED, model_version
from store.redact import Private, Redactor, secret_arguments, secret_values
from tests.store.builders import T0, engine, finish, reported, row, sequence, step, trace_of

KEY = "Zx81-station-key"
SOMEBODY = Private(
    secrets=(KEY,),
    homes=("/home/jdoe", "/srv/homes/jdoe"),
    users=("jdoe", "Jane Doe"),
    hosts=("gpu-01.corp.example", "gpu-01"),
    models=("/data/models/acme-secret/llama", "org/open-model"),
)
LEAKS = ("jdoe", "Jane", "gpu-01", "corp.example", KEY, "acme", "hunter2", "10.1.2.3", "/data/", "cmpl-")

HOSTILE = [
    (f"the key is {KEY}.", KEY),
    (f"x{KEY}y", KEY),
    ("GET /v1/models?api_key=qzx123&n=1", "qzx"),
    ("api-key: 'qzx 123'", "123"),
    ('{"api_key": "qzx\\"dog", "port": 1}', "dog"),
    ('{\\"password\\": \\"open sesame\\"}', "sesame"),
    ("apiKey=qzx", "qzx"),
    ("Authorization: Bearer qzx.dog-1", "qzx"),
    ("{'authorization': 'Basic dXNlcjpwYXNz'}", "dXNlc"),
    ("headers=[(b'authorization', b'Bearer qzx')]", "qzx"),
    ("curl -H 'X-API-Key: qzx'", "qzx"),
    ("Cookie: session=qzx; other=dog", "dog"),
    ("sent bearer qzx to it", "qzx"),
    ("Basic dXNlcjpwYXNzd29yZA== was refused", "dXNlc"),
    ("found sk-proj-AbCd1234 in the prompt", "AbCd"),
    ("HF_TOKEN=hf_abcdefABCDEF123", "hf_abc"),
    ("logged in with hf_qzxDogCat", "qzx"),
    ("ghp_abcdefghij0123456789 and AKIAABCDEFGHIJKLMNOP", "abcdefghij"),
    ("ghp_abcdefghij0123456789 and AKIAABCDEFGHIJKLMNOP", "AKIA"),
    ("jwt eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", "eyJz"),
    ("password = hunter2", "hunter2"),
    ("passwd:hunter2", "hunter2"),
    ("DB_PASSWORD='hunter 2'", "hunter"),
    ("pwd=none-of-your-business", "business"),
    ("secret => qzx", "qzx"),
    ("client_secret_id=7734", "7734"),
    ("credentials: {'a': 'qzx', 'b': 'dog'}", "dog"),
    ("accessToken: qzx", "qzx"),
    ("token=123456789", "123456789"),
    ("tokens=qzx,dog", "dog"),
    ("--hf-token qzx --port 8000", "qzx"),
    ("['--api-key', 'qzx']", "qzx"),
    ("--password=qzx", "qzx"),
    ("the token is dGhpcyBpcyBhIHNlY3JldA==", "dGhp"),
    ("key 0123456789abcdef0123456789abcdef", "0123456789abcdef"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEqzx\nDEK-Info: dog\n-----END RSA PRIVATE KEY-----", "MIIE"),
    ("-----BEGIN PRIVATE KEY-----\nMIIEqzx", "MIIE"),
    ("postgres://jane:qzx@db.internal/x", "qzx"),
    ("postgres://jane:q/zx@db.internal/x", "q/zx"),
    ("https://qzx@git.example/x.git", "qzx"),
    ("http://jane:q@zx@host/", "zx"),
    ("cd /home/jdoe/models", "jdoe"),
    ("in /home/jdoe.", "jdoe"),
    ("file:///srv/homes/jdoe/x", "jdoe"),
    ("/home/alice/models and /Users/bob/x", "alice"),
    ("/home/alice/models and /Users/bob/x", "bob"),
    ("jdoe_test, JDOE", "jdoe"),
    ("jdoe_test, JDOE", "JDOE"),
    ("asked by Jane Doe at noon", "Jane"),
    ("on gpu-01.corp.example:8000", "corp"),
    ("on GPU-01-ib0 and gpu-01.other.net", "GPU-01"),
    ("on GPU-01-ib0 and gpu-01.other.net", "other.net"),
    ("ends with 10.1.2.3.", "10.1.2.3"),
    ("peer 010.001.002.003", "010.001"),
    ("a:b:10.1.2.3", "10.1.2.3"),
    ("fe80::1%eth0 is up", "fe80"),
    ("http://[2001:db8::1]:8000/", "2001"),
    ("addr:2001:db8::1: refused", "2001"),
    ("at 12:34:56 ::ffff:10.1.2.3", "10.1.2.3"),
    ("node ip-10-1-2-3.ec2.internal", "10-1-2-3"),
    ("mail bob.o+x@mail.acme-corp.com.", "bob"),
    ("von jürgen@firma.de", "jürgen"),
    ("Aborted request chatcmpl-qzx-0.", "qzx"),
    ("cmpl-qzx@dog:1 finished", "dog"),
    ("request_id=my-own-qzx", "qzx"),
    ("X-Request-Id: qzx", "qzx"),
    ("Received request: prompt: 'tell me \\'why\\'', params: n=1", "tell"),
    ("prompt_token_ids: [101, 102, 103], x", "102"),
    ("input_value={'role': 'user', 'content': \"qzx 'dog'\"}", "qzx"),
    ("RequestOutput(prompt='qzx', outputs=[CompletionOutput(text='dog')])", "dog"),
    ("model='/data/other/corporation/llama-7b', tokenizer='/data/other/corporation/tok'", "corporation"),
    ("Starting to load model /mnt/corporation/llama-7b...", "corporation"),
    ("{'model': '~/corporation/llama', 'method': 'eagle3'}", "corporation"),
    ("reading /data/models/acme-secret/llama/model.safetensors", "acme-secret"),
]  # fmt: skip

HARMLESS = [
    "num_speculative_tokens=4, max_num_batched_tokens=2048,max_num_seqs=32, 'num_speculative_tokens': 4}",
    "Avg prompt throughput: 120.0 tokens/s, Running: 3 reqs, prompt tokens: 16, tokens = -1",
    "time to first token: 30, per token = 3.25 ms",
    "api_key=None, hf_token=None), password: null, 'token': False}",
    "http://127.0.0.1:8000 and http://[::1]:8000/v1, listening on 0.0.0.0 and [::]",
    "tokenizer_mode=auto, skip_tokenizer_init=False, eos_token_id=2, stop_token_ids=[]",
    "hf_overrides={}, hf_config=LlamaConfig, hf_text_config=None, disk-usage 3",
    "SmolLM2-135M-Instruct@87706b2011f07b7a:0.1.2:bfloat16:- · eagle3 · vLLM 0.32.0",
    "2026-11-30 00:14:18,576 INFO console.station.events: engine: e0 is serving",
    "at::native::add in c10::Error, std::cafe::x, 00:1b:44:11:3a:b7",
    "[model.py:733] Resolved architecture: LlamaForCausalLMEagle3, served_model_name=SmolLM2-135M",
    "Loading safetensors checkpoint shards: 100% Completed | 1/1 [00:00<00:00,  6.77it/s]",
    "model: HuggingFaceTB/SmolLM2-135M-Instruct, drafter ngram",
    "Request throughput: 3.1 req/s; Request rejected: the engine is starting",
    "limit token_budget, cause no_proposal, ratio 3:2",
    "",
]


@pytest.mark.parametrize(("text", "private"), HOSTILE)
def test_nothing_private_is_left_in_text(text: str, private: str) -> None:
    assert private in text
    assert private not in Redactor(SOMEBODY).text(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_not_private_stays_as_it_is(text: str) -> None:
    assert Redactor(SOMEBODY).text(text) == text


def test_the_stand_ins_say_what_was_there() -> None:
    text = "jdoe on gpu-01 (10.1.2.3) wrote to a@b.io from /home/jdoe/x: api_key=abc, chatcmpl-1 over http://u:p@h/"
    assert Redactor(SOMEBODY).text(text) == (
        "<user> on <host> (<address>) wrote to <e-mail> from ~/x: api_key=<secret> <request> over http://<credentials>@h/"
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
    ["a", "0:", "://a:b", "eyJ-", "password=", "token ", "-", "a@b.", "x.", '\\"', "key=", "model /", "'content': '"],
)
def test_a_huge_line_is_no_trap(piece: str) -> None:
    """A rule that tries every place against all the rest of the line would take hours for a log of this."""
    Redactor(SOMEBODY).text(piece * (100_000 // len(piece)))


def private_records() -> list[Record]:
    reason = PolicyMode(mode="static", k=4, reason="asked by jdoe from 10.1.2.3")
    return [
        engine(engine="gpu-01", target="/data/acme/llama@ab12:-:bf16:-", drafter="/data/acme/head", configured=reason),
        sequence("chatcmpl-secret-name", "acme-prod", request="chatcmpl-1", hint_error="'password=hunter2'"),
        sequence("b", None),
        step(1, [row("chatcmpl-secret-name"), row("b"), row("stranger")]),
        ControlRecord(
            T0 + 0.2, "jdoe", "workloads", "acme-prod", {"workloads": {"acme-prod": {"k": 3}, "acme-old": {"k": 0}}},
            {"workloads": {"acme-prod": {"k": 0}}, "api_key": "hunter2"}, 2, "Acme-Prod is slow for jdoe@corp.example",
        ),
        GapRecord("gpu-01", T0 + 0.3, 3, None, f"killed by jdoe with {KEY}"),
        FinishRecord("e0", "chatcmpl-secret-name", T0 + 0.4, "stop", 10),
    ]  # fmt: skip


def redacted(records: list[Record], redactor: Redactor) -> list[Record]:
    for record in records:
        redactor.learn(record)
    return [record for record in map(redactor.record, records) if record is not None]


def test_nothing_private_is_left_in_records() -> None:
    text = msgspec.json.encode(redacted(private_records(), Redactor(SOMEBODY))).decode()
    assert [leak for leak in (*LEAKS, "Acme", "stranger") if leak in text] == []
    assert '"llama@ab12:-:bf16:-"' in text
    assert '"head"' in text


def test_figures_of_redacted_records_are_the_same_under_other_names() -> None:
    rows = [row("b", d=2, a=1) if number % 3 == 2 else row("a", d=4, a=number % 5) for number in range(60)]
    records = trace_of(rows, a="acme", b="jdoe-chat")
    before, after = reported(records), reported(redacted(records, Redactor(SOMEBODY)))
    assert [bucket.workload for bucket in after.buckets] == ["tag-1", "tag-2"]
    names = {"tag-1": "acme", "tag-2": "jdoe-chat"}
    assert [msgspec.structs.replace(bucket, workload=names[bucket.workload or ""]) for bucket in after.buckets] == (
        before.buckets
    )
    assert after.total == before.total


def test_a_tag_has_one_number_in_records_reports_policies_and_text() -> None:
    redactor = Redactor(SOMEBODY)
    records = redacted(private_records(), redactor)
    (control,) = (record for record in records if isinstance(record, ControlRecord))
    assert control.workload == "tag-1"
    assert control.before == {"workloads": {"tag-1": {"k": 3}, "tag-2": {"k": 0}}}
    assert control.why == "tag-1 is slow for <e-mail>"
    report = redactor.value({"buckets": [{"workload": "acme-prod"}, {"workload": "untagged"}]})
    assert report == {"buckets": [{"workload": "tag-1"}, {"workload": "untagged"}]}
    assert redactor.text("lane of acme-old: vanilla; acme-prod_2, macme-prod") == (
        "lane of tag-2: vanilla; tag-1_2, macme-prod"
    )


def test_a_tag_in_a_text_before_its_first_sequence_is_known_by_then() -> None:
    records: list[Record] = [engine(), ControlRecord(T0, "operator", "mode", why="for acme"), sequence("a", "acme")]
    _, control, _ = redacted(records, Redactor())
    assert isinstance(control, ControlRecord)
    assert control.why == "for tag-1"


def test_tags_of_ours_stay_and_no_tag_is_none() -> None:
    redactor = Redactor()
    assert [redactor.tag(tag) for tag in (UNTAGGED, OTHER, UNATTRIBUTED, None, "", "x", "y", "x")] == [
        UNTAGGED, OTHER, UNATTRIBUTED, None, "", "tag-1", "tag-2", "tag-1",
    ]  # fmt: skip
    assert redactor.text("untagged, other") == "untagged, other"


def test_tags_can_be_kept_but_never_the_key() -> None:
    redactor = Redactor(SOMEBODY, keep_tags=True)
    kept = redacted([sequence("a", "acme"), sequence("b", f"x{KEY}"), StateRecord(T0, {"why": KEY})], redactor)
    assert [getattr(record, "workload", None) for record in kept] == ["acme", "x<secret>", None]
    assert isinstance(kept[2], StateRecord)
    assert kept[2].state == {"why": "<secret>"}
    assert redactor.text("acme") == "acme"


def test_a_state_that_may_name_tags_in_a_form_of_its_own_is_left_out() -> None:
    assert Redactor().record(StateRecord(T0, {"acme|0-512": 1})) is None


@pytest.mark.parametrize("word", ["static", "cpu", "ngram", "mode", "free", "e0", "stop", "target", "0.32.0"])
def test_a_tag_that_is_a_word_of_ours_changes_no_word_of_ours(word: str) -> None:
    redactor = Redactor()
    redactor.tag(word)
    for record in (engine(boot="b1"), step(1, []), ControlRecord(T0, "policy", "mode", after={"mode": "static"})):
        assert redactor.record(record) == record
    finished = redactor.record(finish("1", T0))
    assert finished == finish("1", T0)


@pytest.mark.parametrize(
    ("actor", "shown"), [("operator", "operator"), ("policy", "policy"), ("station", "station"), ("jane", "operator")]
)
def test_people_are_operators(actor: str, shown: str) -> None:
    record = Redactor().record(ControlRecord(T0, actor, "mode"))
    assert isinstance(record, ControlRecord)
    assert record.actor == shown


def test_who_acted_is_not_named_in_a_reason_either() -> None:
    acted = ControlRecord(T0, "jane", "mode", why="jane is on call")
    assert redacted([acted], Redactor()) == [ControlRecord(T0, "operator", "mode", why="<user> is on call")]


def test_a_sequence_has_one_number_in_arrival_rows_and_finish_and_each_engine_its_own() -> None:
    records: list[Record] = [
        sequence("x"), sequence("y"), msgspec.structs.replace(sequence("x"), engine="e1"),
        step(1, [row("y"), row("x")]), finish("y", T0),
    ]  # fmt: skip
    x, y, other, stepped, finished = (msgspec.to_builtins(one) for one in redacted(records, Redactor()))
    assert [x["seq"], y["seq"], other["seq"], finished["seq"]] == ["1", "2", "3", "2"]
    assert [values[0] for values in stepped["rows"]] == ["2", "1"]
    assert x["request"] is None


def test_a_model_version_of_a_report_is_that_of_the_redacted_records() -> None:
    record = engine(target="/data/acme/llama@ab12:-:bf16:-", drafter="~/heads/one/")
    redactor = Redactor(SOMEBODY)
    (shown,) = redacted([record], redactor)
    assert redactor.model(model_version(record)) == model_version(shown)  # type: ignore[arg-type]
    assert redactor.text(f"e0 runs {record.target}, {record.drafter}") == "e0 runs llama@ab12:-:bf16:-, one/"


@pytest.mark.parametrize(
    ("identity", "shown"),
    [
        ("org/name", "org/name"),
        ("org/name@1:refs/pr/7:bf16:-", "org/name@1:refs/pr/7:bf16:-"),
        ("/a@b/c/model", "model"),
        ("./heads/one@ab:-:-:-", "one@ab:-:-:-"),
        ("a/b/c", "c"),
        ("/", "/"),
        ("", ""),
        ("~", "~"),
    ],
)
def test_of_a_models_path_the_last_part_is_left(identity: str, shown: str) -> None:
    assert Redactor().value({"target": identity}) == {"target": shown}


def test_what_a_field_is_called_says_that_it_is_secret() -> None:
    value: dict[str, Any] = {"api_key": "abc", "hf_token": "abc", "prompt_tokens": 12, "key": None, "password": ""}
    assert Redactor().value(value) == value | {"api_key": "<secret>", "hf_token": "<secret>"}


def test_a_command_line_is_understood() -> None:
    argv = ["vllm", "serve", "--api-key", "abc", "--hf-token=abc", "--model", "/data/x/llama", "--max-num-seqs", "32"]
    assert Redactor().value({"engine_args": argv})["engine_args"] == [
        "vllm", "serve", "--api-key", "<secret>", "--hf-token=<secret>", "--model", "llama", "--max-num-seqs", "32",
    ]  # fmt: skip
    assert list(secret_arguments(argv)) == ["abc", "abc"]
    assert list(secret_arguments(["--api-key"])) == list(secret_arguments([])) == []


def test_secrets_of_an_environment_are_known_by_their_names() -> None:
    environ = {
        "SPECDECK_API_KEY": "k", "HF_TOKEN": "hf-12345678", "AWS_SECRET_ACCESS_KEY": "abcdefgh",
        "DB_PASSWORD": "hunter22", "TOKENIZERS_PARALLELISM": "false-but-long", "PATH": "/usr/bin:/bin",
        "EMPTY_TOKEN": "", "SHORT_TOKEN": "1",
    }  # fmt: skip
    assert sorted(secret_values(environ)) == ["abcdefgh", "hf-12345678", "hunter22", "k"]


def test_here_knows_this_user_and_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/jdoe")
    monkeypatch.setenv("USER", "jdoe")
    monkeypatch.setattr("socket.gethostname", lambda: "gpu-01.corp.example")
    private = Private.here(["s"], hosts=["0.0.0.0", "localhost", "api.corp.example"])
    assert "/home/jdoe" in private.homes
    assert "jdoe" in private.users
    assert {"gpu-01", "gpu-01.corp.example", "api.corp.example"} <= set(private.hosts)
    assert not {"0.0.0.0", "localhost", "api", ""} & {*private.hosts, *private.users}
