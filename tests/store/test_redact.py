"""Redaction of records and of what JSON holds: nothing private is left, and the figures are the same."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from engine.records import ControlRecord, FinishRecord, GapRecord, PolicyMode, Record, SequenceRecord, StateRecord
from store.buckets import OTHER, UNATTRIBUTED, UNTAGGED, model_version
from store.redact.private import Private
from store.redact.redactor import Redactor
from store.redact.secret_names import secret_arguments, secret_values
from tests.store.builders import T0, engine, finish, reported, row, sequence, step, trace_of
from tests.store.redact_cases import KEY, LEAKS, SOMEBODY


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


def test_what_a_decision_was_made_by_names_no_workload() -> None:
    numbers = {"workload": "acme", "batch": 3.5, "others": {"acme-2": 1}, "text": "acme K 4→2 beside acme-2"}
    (control,) = redacted([ControlRecord(T0, "adaptive", "k", "acme", numbers=numbers)], Redactor())
    assert isinstance(control, ControlRecord)
    assert control.numbers == {
        "workload": "tag-1", "batch": 3.5, "others": {"tag-2": 1}, "text": "tag-1 K 4→2 beside tag-2",
    }  # fmt: skip


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


def test_a_value_beside_a_name_is_secret_when_the_name_says_so() -> None:
    value = {"env": [{"name": "HF_TOKEN", "value": "abc"}, {"name": "HF_HOME", "value": "/x"}], "h": [["cookie", "a"]]}
    assert Redactor().value(value) == {
        "env": [{"name": "HF_TOKEN", "value": "<secret>"}, {"name": "HF_HOME", "value": "/x"}],
        "h": [["cookie", "<secret>"]],
    }


def test_of_a_malformed_hint_only_that_there_was_one_is_left() -> None:
    """A client may have written anything there, also what no rule knows."""
    record = Redactor().record(sequence("a", hint_error="my dog is called qzx"))
    assert isinstance(record, SequenceRecord)
    assert record.hint_error == "<text>"


def test_a_command_line_is_understood() -> None:
    argv = ["vllm", "serve", "--api-key", "abc", "--hf-token=abc", "--model", "/data/x/llama", "--max-num-seqs", "32"]
    assert Redactor().value({"engine_args": argv})["engine_args"] == [
        "vllm", "serve", "--api-key", "<secret>", "--hf-token=<secret>", "--model", "llama", "--max-num-seqs", "32",
    ]  # fmt: skip
    assert list(secret_arguments(argv)) == ["abc", "abc"]
    assert list(secret_arguments(["--api-key", "a", "b", "--port", "1"])) == ["a", "b"]
    assert Redactor().value(["--api-key", "a", "b", "--port", "1"]) == [
        "--api-key", "<secret>", "<secret>", "--port", "1",
    ]  # fmt: skip
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
