"""The oracle over HTTP: what specdeck stored of each request equals the detail in vLLM's own response to it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from engine.records import FinishRecord, PolicyMode, Row, SequenceRecord, StepRecord
from tests.path.served import Served, until

pytestmark = pytest.mark.engine

CODE = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n\n\ndef mul(a, b):\n"
REPEAT = "one two three four five six seven eight nine ten. " * 3 + "one two three"
CHAT = "Question: What is the capital of France?\nAnswer:"
SCHEMA = {"type": "object", "properties": {"name": {"enum": ["a", "b"]}}, "required": ["name"]}


def _bodies(k: int) -> dict[str, dict[str, Any]]:
    """Requests of every ending and kind, 16 in all, to be sent at once."""
    tag = {"vllm_xargs": {"workload": f"oracle-{k}"}}
    bodies: dict[str, dict[str, Any]] = {
        "cut": {"prompt": CODE, "max_tokens": 23},
        "cut-early": {"prompt": REPEAT, "max_tokens": 3},
        "stop-token": {"prompt": CHAT, "max_tokens": 60, "stop_token_ids": [198]},
        "sampled": {"prompt": CHAT, "max_tokens": 40, "temperature": 0.8, "seed": 11},
        "sampled-free": {"prompt": REPEAT, "max_tokens": 40, "temperature": 0.8},
        "sampled-cut-tail": {"prompt": REPEAT, "max_tokens": 30, "temperature": 0.8, "top_k": 20, "top_p": 0.9},
        "chunked": {"prompt": "word " * 400 + REPEAT, "max_tokens": 30},
        "chunked-seeded": {"prompt": "verb " * 400 + REPEAT, "max_tokens": 30, "temperature": 0.8, "seed": 5},
        "cached": {"prompt": "word " * 400 + REPEAT, "max_tokens": 30},
        "grammar": {"prompt": CHAT, "max_tokens": 40, "structured_outputs": {"json": SCHEMA}},
        "hinted": {"prompt": REPEAT, "max_tokens": 30, "vllm_xargs": {"disable_speculation": 1}},
    }
    bodies |= {
        f"repeat-{number}": {"prompt": f"{number} {REPEAT}", "max_tokens": 220, "ignore_eos": True}
        for number in range(5)
    }
    return {
        f"k{k}-{name}": {
            "temperature": 0.0,
            **tag,
            **body,
            "vllm_xargs": tag["vllm_xargs"] | body.get("vllm_xargs", {}),
        }
        for name, body in bodies.items()
    }


@pytest.fixture(scope="module")
def answers(served: Served) -> dict[str, dict[str, Any]]:
    """Each K in turn, 16 requests at once; the answers by request id."""
    found: dict[str, dict[str, Any]] = {}
    for k in (1, 2, 4):
        served.policy(PolicyMode(mode="static", k=k))
        bodies = _bodies(k)
        assert len(bodies) == 16
        with ThreadPoolExecutor(16) as pool:
            sent = {name: pool.submit(served.complete, body, name) for name, body in bodies.items()}
            found |= {name: future.result() for name, future in sent.items()}
    return found


@pytest.fixture(scope="module")
def rows(served: Served, answers: dict[str, dict[str, Any]]) -> dict[str, list[Row]]:
    """What was stored of each of those requests, by the id that the client gave."""
    names: dict[str, str] = {}

    def all_finished() -> list[Any] | None:
        records = served.records()
        for record in records:
            if isinstance(record, SequenceRecord):
                for name in answers:
                    if (record.request or "").startswith(f"cmpl-{name}-"):
                        names[record.seq] = max(name, names.get(record.seq, ""), key=len)
        ended = {record.seq for record in records if isinstance(record, FinishRecord)}
        return records if len(names) == len(answers) and set(names) <= ended else None

    records = until("all requests of the oracle stored", all_finished, 60.0)
    found: dict[str, list[Row]] = {name: [] for name in answers}
    for record in records:
        if isinstance(record, StepRecord):
            for row in record.rows:
                if row.seq in names:
                    found[names[row.seq]].append(row)
    return found


def test_every_verification_of_every_request_equals_vllms_detail(
    answers: dict[str, dict[str, Any]], rows: dict[str, list[Row]]
) -> None:
    compared = 0
    for name, answer in answers.items():
        detail = answer["metrics"]["speculative_decoding"] or {}
        drafted = [row for row in rows[name] if row.drafted]
        assert [row.drafted for row in drafted] == (detail.get("per_step_drafted") or []), name
        assert [row.accepted for row in drafted] == (detail.get("per_step_accepted") or []), name
        compared += len(drafted)
    print(f"{compared} verifications compared")
    assert compared > 200


def test_every_token_of_every_answer_is_in_a_row(
    answers: dict[str, dict[str, Any]], rows: dict[str, list[Row]]
) -> None:
    for name, answer in answers.items():
        assert sum(row.emitted for row in rows[name]) == answer["usage"]["completion_tokens"], name


def test_k_was_what_was_asked_for(rows: dict[str, list[Row]]) -> None:
    for name, own in rows.items():
        k = int(name[1])
        decode = [row for row in own if row.cause != "prefill"]
        assert {row.k_asked for row in decode} <= ({0} if "hinted" in name else {k}), name
        assert all(row.cause != "unknown" for row in decode), name


def test_a_hinted_request_drafts_nothing_and_vllm_agrees(
    answers: dict[str, dict[str, Any]], rows: dict[str, list[Row]]
) -> None:
    for k in (1, 2, 4):
        name = f"k{k}-hinted"
        assert sum(row.drafted for row in rows[name]) == 0
        assert not (answers[name]["metrics"]["speculative_decoding"] or {}).get("per_step_drafted")


def test_sampled_answers_are_text(answers: dict[str, dict[str, Any]]) -> None:
    for name, answer in answers.items():
        if "sampled" in name or "seeded" in name:
            text = answer["choices"][0]["text"]
            assert sum(character.isascii() for character in text) >= 0.9 * len(text), (name, text)
