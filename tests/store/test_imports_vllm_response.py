"""Answers of vLLM with what each draft step did: they become a trace whose figures are those of the steps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.records import EngineRecord, FinishRecord, Record, Row, SequenceRecord, StepRecord
from store.imports.errors import ImportFailed
from store.imports.vllm_response import OPTION, read_responses
from tests.store.builders import reported
from tests.store.imports_data.builders import response

CREATED = 1_790_000_000.0
STEPS = [(4, 4), (4, 1), (3, 0), (4, 2)]


def written(folder: Path, *responses: dict[str, Any], name: str = "answers.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(each) + "\n" for each in responses))
    return path


def taken(folder: Path, *responses: dict[str, Any]) -> list[Record]:
    return list(read_responses([written(folder, *responses)]).records)


def steps_of(records: Sequence[Record]) -> list[StepRecord]:
    return [record for record in records if isinstance(record, StepRecord)]


def rows_of(records: Sequence[Record]) -> list[Row]:
    return [row for step in steps_of(records) for row in step.rows]


def timed(**milliseconds: float) -> dict[str, Any]:
    """An answer that says how long it took."""
    answer = response(STEPS)
    return answer | {"metrics": answer["metrics"] | milliseconds}


# What an answer says


def test_each_draft_step_becomes_a_row_after_the_prefills(tmp_path: Path) -> None:
    rows = rows_of(taken(tmp_path, response(STEPS)))
    assert [(row.k_asked, row.drafted, row.accepted, row.emitted, row.context, row.cause) for row in rows] == [
        (0, 0, 0, 1, 0, "prefill"),
        (4, 4, 4, 5, 100, "full"),
        (4, 4, 1, 2, 105, "full"),
        (3, 3, 0, 1, 107, "full"),
        (4, 4, 2, 3, 108, "full"),
    ]
    assert {(row.seq, row.limit, row.proposed, row.invalid) for row in rows} == {("cmpl-1", "max", None, 0)}


def test_the_figures_are_those_of_the_steps(tmp_path: Path) -> None:
    report = reported(taken(tmp_path, response(STEPS), response([(4, 3)], id="cmpl-2")))
    (bucket,) = [bucket for bucket in report.buckets if bucket.decode_rows and bucket.context == "0-512"]
    assert (bucket.sequences, bucket.steps, bucket.drafted, bucket.accepted) == (2, 5, 19, 10)
    assert bucket.alpha == pytest.approx((4 / 4 + 1 / 4 + 0 / 3 + 2 / 4 + 3 / 4) / 5)
    assert bucket.pooled_acceptance == pytest.approx(10 / 19)
    assert bucket.mean_acceptance_length == pytest.approx(3)
    assert bucket.committed_per_step == pytest.approx(3)
    assert bucket.emitted == 17
    assert (bucket.workload, bucket.temperature) == ("untagged", "unknown")
    assert bucket.model_version == "SmolLM2 | unknown | unknown | vllm unknown"
    assert (report.quarantined, report.transitions, report.mismatches) == (0, [], [])


def test_the_engine_and_the_sequence_are_what_the_answer_tells_of_them(tmp_path: Path) -> None:
    records = taken(tmp_path, response(STEPS, system_fingerprint="vllm-0.32.0-tp2-0badcafe"))
    engine, sequence, finish = records[0], records[1], records[-1]
    assert isinstance(engine, EngineRecord)
    assert (engine.engine, engine.target, engine.vllm, engine.max_k) == ("import:SmolLM2", "SmolLM2", "0.32.0", 4)
    assert isinstance(sequence, SequenceRecord)
    assert (sequence.seq, sequence.request, sequence.ts, sequence.prompt_tokens) == ("cmpl-1", "cmpl-1", CREATED, 100)
    assert (sequence.workload, sequence.temperature) == (None, None)
    assert isinstance(finish, FinishRecord)
    assert (finish.reason, finish.output_tokens) == ("stop", 12)


@pytest.mark.parametrize(
    ("tokens", "emitted"),
    [(12, [1, 5, 2, 1, 3]), (10, [1, 5, 2, 1, 1]), (9, [1, 5, 2, 1, 0]), (3, [1, 2, 0, 0, 0]), (0, [0, 0, 0, 0])],
)
def test_an_answer_that_was_cut_short_emits_no_more_than_its_tokens(
    tmp_path: Path, tokens: int, emitted: list[int]
) -> None:
    rows = rows_of(taken(tmp_path, response(STEPS, tokens)))
    assert [row.emitted for row in rows] == emitted
    assert [row.accepted for row in rows if row.cause != "prefill"] == [4, 1, 0, 2]


def test_tokens_that_no_draft_step_made_came_from_steps_without_a_draft(tmp_path: Path) -> None:
    found = read_responses([written(tmp_path, response(STEPS, 15))])
    rows = rows_of(list(found.records))
    undrafted = [row for row in rows if row.cause == "unknown"]
    assert [(row.k_asked, row.drafted, row.emitted) for row in undrafted] == [(4, 0, 1)] * 3
    assert sum(row.emitted for row in rows) == 15
    assert [row.drafted for row in rows[1:]] == [0, 4, 0, 4, 0, 3, 4]
    assert any(note.startswith("3 tokens came from steps without a draft") for note in found.notes)


def test_a_draft_that_a_grammar_struck_altogether_is_no_draft_step(tmp_path: Path) -> None:
    rows = rows_of(taken(tmp_path, response([(4, 2), (0, 0)])))
    assert [(row.k_asked, row.drafted, row.cause) for row in rows[1:]] == [(4, 4, "full"), (4, 0, "grammar")]


def test_an_answer_that_drafted_nothing_counts(tmp_path: Path) -> None:
    rows = rows_of(taken(tmp_path, response([], 4)))
    assert [(row.cause, row.emitted) for row in rows] == [("prefill", 1), *[("unknown", 1)] * 3]


def test_without_usage_all_that_was_accepted_was_kept_and_that_is_said(tmp_path: Path) -> None:
    found = read_responses([written(tmp_path, response(STEPS, usage=None))])
    assert [row.emitted for row in rows_of(list(found.records))] == [1, 5, 2, 1, 3]
    assert any("no usage" in note for note in found.notes)


def test_impossible_steps_are_kept_as_they_are_for_the_quarantine(tmp_path: Path) -> None:
    report = reported(taken(tmp_path, response([(4, 2), (3, 5), (-1, 0), (4, 1)])))
    assert report.quarantined == 2
    assert report.total is not None
    assert (report.total.drafted, report.total.accepted) == (8, 3)


# Times


def test_steps_are_spread_evenly_over_the_time_that_the_answer_took(tmp_path: Path) -> None:
    answer = timed(queue_time_ms=500.0, time_to_first_token_ms=250.0, generation_time_ms=2000.0)
    found = read_responses([written(tmp_path, answer)])
    records = list(found.records)
    assert [(step.ts - CREATED, step.duration_ms) for step in steps_of(records)] == [
        (0.75, 250.0), (1.25, 500.0), (1.75, 500.0), (2.25, 500.0), (2.75, 500.0),
    ]  # fmt: skip
    assert records[-1].ts == CREATED + 2.75
    assert found.notes == []


@pytest.mark.parametrize("milliseconds", [{}, {"generation_time_ms": 0.0}, {"generation_time_ms": -3.0}])
def test_without_a_duration_steps_are_a_millisecond_apart_and_that_is_said(
    tmp_path: Path, milliseconds: dict[str, float]
) -> None:
    found = read_responses([written(tmp_path, timed(**milliseconds))])
    steps = steps_of(list(found.records))
    assert [step.ts - CREATED for step in steps] == pytest.approx([0.001, 0.002, 0.003, 0.004, 0.005], abs=1e-6)
    (note,) = found.notes
    assert "1 ms apart" in note
    assert "--enable-per-request-metrics" in note


def test_answers_are_merged_in_the_order_of_time(tmp_path: Path) -> None:
    late = response(STEPS, id="late", created=CREATED + 1)
    slow = timed(generation_time_ms=4000.0) | {"id": "slow"}
    records = taken(tmp_path, late, slow)
    times = [record.ts for record in records[1:]]
    assert times == sorted(times)
    assert {row.seq for row in rows_of(records)[2:5]} == {"slow", "late"}
    assert [step.step for step in steps_of(records)] == list(range(1, 11))


# Files


def test_one_answer_a_list_lines_a_stream_and_a_batch_say_the_same(tmp_path: Path) -> None:
    answer = response(STEPS)
    chunk = {"id": "cmpl-1", "object": "chat.completion.chunk", "choices": [{"delta": {"content": "x"}}]}
    stream = [chunk, answer | {"object": "chat.completion.chunk", "choices": []}]
    batch = {"id": "batch-1", "custom_id": "x", "response": {"status_code": 200, "body": answer}, "error": None}
    texts = {
        "object": json.dumps(answer, indent=2),
        "list": json.dumps([answer]),
        "lines": "\n" + json.dumps(answer) + "\r\n\r\n",
        "mark": "\ufeff" + json.dumps(answer),
        "batch": json.dumps(batch) + "\n",
        "stream": "".join(f"data: {json.dumps(each)}\n\n" for each in stream) + "data: [DONE]\n\n",
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.write_text(text)
        rows = rows_of(list(read_responses([path]).records))
        assert [(row.drafted, row.accepted) for row in rows[1:]] == STEPS, name


def test_several_files_are_one_trace_and_models_are_engines(tmp_path: Path) -> None:
    files = [
        written(tmp_path, response(STEPS), response(STEPS, id="b", model="Other"), name="one"),
        written(tmp_path, response(STEPS, id="c"), name="two"),
    ]
    records = list(read_responses(files).records)
    assert [record.engine for record in records if isinstance(record, EngineRecord)] == [
        "import:SmolLM2",
        "import:Other",
    ]
    assert {step.engine: step.step for step in steps_of(records)} == {"import:SmolLM2": 10, "import:Other": 5}


def test_one_model_with_two_k_is_two_engines_so_that_no_k_looks_changed(tmp_path: Path) -> None:
    deep = response([(8, 3)] * 30, id="deep")
    deep["metrics"]["speculative_decoding"]["num_spec_tokens"] = 8
    records = taken(tmp_path, response([(4, 1)] * 30), deep)
    report = reported(records)
    assert (report.transitions, report.mismatches) == ([], [])
    names = [record.engine for record in records if isinstance(record, EngineRecord)]
    assert names == ["import:SmolLM2 K=4 vllm unknown", "import:SmolLM2 K=8 vllm unknown"]


def test_answers_without_the_metrics_are_left_out_and_named(tmp_path: Path) -> None:
    summary = response(STEPS, id="summary")
    for name in ("per_step_drafted", "per_step_accepted"):
        del summary["metrics"]["speculative_decoding"][name]
    many = [response(STEPS, id=f"n{n}", metrics=None) for n in range(6)]
    found = read_responses([written(tmp_path, response(STEPS), summary, *many, {"error": {"code": 400}})])
    assert len(rows_of(list(found.records))) == 5
    assert found.notes[0] == (
        "8 of 9 answers have no speculation per step and were left out: summary, n0, n1, n2, n3, …"
    )


def test_where_no_answer_has_the_metrics_the_error_names_the_servers_option(tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match=rf"answers\.jsonl: none of 2 answers .*{OPTION}"):
        read_responses([written(tmp_path, response(STEPS, metrics=None), {"error": "x"})])
    with pytest.raises(ImportFailed, match=rf"no answer in it.*{OPTION}"):
        read_responses([written(tmp_path)])


def test_an_answer_given_twice_counts_once_and_another_of_the_same_id_counts_too(tmp_path: Path) -> None:
    found = read_responses([written(tmp_path, response(STEPS), response(STEPS), response([(4, 1)]))])
    names = [record.seq for record in found.records if isinstance(record, SequenceRecord)]
    assert names == ["cmpl-1", "cmpl-1#2"]
    assert "cmpl-1 was given twice: counted once" in found.notes


def test_names_stay_what_they_are(tmp_path: Path) -> None:
    name = "[bold red]x[/]'; DROP TABLE steps;--"
    (bucket, *_) = reported(taken(tmp_path, response(STEPS, id=name, model=name))).buckets
    assert bucket.model_version is not None
    assert bucket.model_version.startswith(name)


# What is broken


def altered(after: str, before: str = "[4, 4, 3, 4]") -> str:
    return json.dumps(response(STEPS)).replace(before, after)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{", "not JSON"),
        pytest.param('{"x": ' + "[" * 10_000, "not JSON", id="deep"),
        pytest.param("\x00", "not JSON", id="zero byte"),
        ("[1, 2]", "no answer of vLLM"),
        ("7", "no answer of vLLM"),
        ('{"metrics": 3}', "no answer of vLLM"),
        ('{"id": 3}', "no answer of vLLM"),
        pytest.param(json.dumps(response(STEPS, created=None)), "`created`", id="no time"),
        pytest.param(json.dumps(response(STEPS, created=-1)), "`created`", id="time below 0"),
        pytest.param(json.dumps(response(STEPS, created=1e12)), "`created`", id="time too late"),
        pytest.param(json.dumps(response(STEPS, 10**9)), "completion_tokens is 1000000000", id="too many tokens"),
        pytest.param(json.dumps(response(STEPS, -1)), "completion_tokens is -1", id="tokens below 0"),
        pytest.param(altered("[4, 4, 3]"), "per_step_drafted has 3 entries", id="one step short"),
        pytest.param(altered("null"), "per_step_drafted has 0 entries", id="no steps"),
        pytest.param(altered("[4, 4, 3.5, 4]"), "no answer of vLLM", id="half a token"),
        pytest.param(altered("[4, 4, NaN, 4]"), "not JSON", id="not a number"),
        pytest.param(altered('_tokens": 9999', '_tokens": 4'), "num_spec_tokens is 9999", id="K too large"),
    ],
)
def test_a_broken_answer_is_named(tmp_path: Path, line: str, what: str) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text(f"{json.dumps(response(STEPS))}\n{line}\n{json.dumps(response(STEPS))}\n")
    with pytest.raises(ImportFailed, match=rf"answers\.jsonl:2: .*{what}") as failed:
        read_responses([path])
    assert failed.value.line == 2


def test_a_broken_answer_of_a_list_is_named_by_its_place(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    path.write_text(json.dumps([response(STEPS), response(STEPS, created=0)]))
    with pytest.raises(ImportFailed, match=r"answers\.json: answer 2: `created`"):
        read_responses([path])


def test_a_half_written_last_line_is_dropped_and_said(tmp_path: Path) -> None:
    path = written(tmp_path, response(STEPS), response(STEPS, id="b"))
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for length in (first + 1, first + 40, len(whole) - 2):
        path.write_bytes(whole[:length])
        found = read_responses([path])
        assert f"{path}: line 2 is cut off: dropped" in found.notes
        assert len(rows_of(list(found.records))) == 5


def test_huge_counts_are_not_lost(tmp_path: Path) -> None:
    report = reported(taken(tmp_path, response([(2**62, 2**61), (4, 1)], 20)))
    assert report.quarantined == 1
    assert report.total is not None
    assert report.total.accepted == 1


def consumed(path: Path, data: bytes) -> list[Record]:
    path.write_bytes(data)
    try:
        return list(read_responses([path]).records)
    except ImportFailed:
        return []


@settings(deadline=None)
@given(st.binary(max_size=80) | st.text(alphabet='{}[]",:0e-metrics\n ', max_size=40).map(str.encode))
def test_whatever_bytes_come_they_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    assert consumed(tmp_path_factory.getbasetemp() / "fuzzed.json", data) == []


numbers = st.integers(-(2**70), 2**70) | st.integers(-2, 6) | st.floats() | st.none() | st.text(max_size=3)
counts = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-1, 5), max_size=5)


tokens = st.integers(-1, 60) | st.integers(2**20 + 1, 2**70) | st.none()  # as many rows as that are slow to check


@settings(deadline=None)
@given(
    counts, counts,
    st.fixed_dictionaries(dict.fromkeys(("created", "k", "prompt", "ms"), numbers) | {"output": tokens}),
)  # fmt: skip
def test_whatever_numbers_an_answer_holds_its_rows_keep_what_it_said(
    tmp_path_factory: pytest.TempPathFactory, drafted: list[int], accepted: list[int], odd: dict[str, Any]
) -> None:
    answer = {
        "created": odd["created"],
        "usage": {"prompt_tokens": odd["prompt"], "completion_tokens": odd["output"]},
        "metrics": {
            "generation_time_ms": odd["ms"],
            "speculative_decoding": {
                "num_spec_tokens": odd["k"], "per_step_drafted": drafted, "per_step_accepted": accepted,
            },
        },
    }  # fmt: skip
    records = consumed(tmp_path_factory.getbasetemp() / "fuzzed.json", json.dumps(answer).encode())
    rows = [row for row in rows_of(records) if row.cause not in ("prefill", "unknown")]
    if records:
        assert [(row.drafted, row.accepted) for row in rows] == list(zip(drafted, accepted, strict=True))
        assert all(row.emitted >= 0 for row in rows)
        msgspec.json.encode(records)
