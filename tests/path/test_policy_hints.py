"""`disable_speculation` by header, body field and `vllm_xargs`: nothing drafted for that request, by specdeck's rows
and by vLLM's own detail, and its neighbours draft as ever. Also where vLLM pads: with one token left to compute."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import httpx
import pytest

from console.feed.protocol import PolicySet
from engine.records import FinishRecord, PolicyMode, Row, SequenceRecord, StepRecord
from tests.path.policies import set_policy
from tests.path.served import Served, until

pytestmark = pytest.mark.engine

TEXT = "one two three four five six seven eight nine ten. " * 3
CACHED = "word " * 400 + TEXT
ONE_TOKEN: list[int] = [28]
WAYS: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "header": ({"x-disable-speculation": "true"}, {}),
    "field": ({}, {"disable_speculation": True}),
    "xargs": ({}, {"vllm_xargs": {"disable_speculation": 1}}),
    "none": ({}, {}),
}


class Told(NamedTuple):
    answer: dict[str, Any]
    rows: list[Row]
    hinted: bool


@pytest.fixture(scope="module")
def told(served: Served) -> dict[str, Told]:
    """Every way with every kind of prompt, twelve requests at once, by `way-kind`."""
    set_policy(served, PolicySet(policy=PolicyMode(mode="static", k=4)))
    served.complete({"prompt": CACHED, "max_tokens": 2})  # its blocks are in the prefix cache now
    names = {f"{way}-{kind}": (way, kind) for kind in ("plain", "one", "cached") for way in WAYS}
    with ThreadPoolExecutor(len(names)) as pool:
        sent = {name: pool.submit(_send, served, name, *both) for name, both in names.items()}
        answers = {name: future.result() for name, future in sent.items()}
    return until("rows of all of them stored", lambda: _stored(served, answers), 30.0)


def _send(served: Served, name: str, way: str, kind: str) -> dict[str, Any]:
    headers, fields = WAYS[way]
    prompt = {"plain": f"{name} {TEXT}", "one": ONE_TOKEN, "cached": CACHED}[kind]
    body = {"model": served.model(), "prompt": prompt, "max_tokens": 24, "temperature": 0.0, "ignore_eos": True}
    answer = httpx.post(
        f"{served.url}/v1/completions",
        json=body | fields,
        headers=headers | {"X-Request-Id": f"hint-{name}"},
        timeout=60.0,
    )
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def _stored(served: Served, answers: dict[str, dict[str, Any]]) -> dict[str, Told] | None:
    """None until all have ended in the store."""
    sequences: dict[str, SequenceRecord] = {}
    rows: dict[str, list[Row]] = {}
    ended = set()
    for record in served.records():
        if isinstance(record, SequenceRecord):
            sequences[record.seq] = record
        elif isinstance(record, FinishRecord):
            ended.add(record.seq)
        elif isinstance(record, StepRecord):
            for row in record.rows:
                rows.setdefault(row.seq, []).append(row)
    by_name = {name: one for one in sequences.values() for name in answers if f"hint-{name}-" in (one.request or "")}
    if set(by_name) != set(answers) or not {one.seq for one in by_name.values()} <= ended:
        return None
    return {name: Told(answers[name], rows[one.seq], one.disable_speculation) for name, one in by_name.items()}


@pytest.mark.parametrize("kind", ["plain", "one", "cached"])
@pytest.mark.parametrize("way", ["header", "field", "xargs"])
def test_a_request_that_asks_for_no_speculation_drafts_nothing(told: dict[str, Told], way: str, kind: str) -> None:
    found = told[f"{way}-{kind}"]
    assert found.hinted
    assert found.answer["usage"]["completion_tokens"] == 24 == sum(row.emitted for row in found.rows)
    assert {row.drafted for row in found.rows} == {0}
    assert {(row.k_asked, row.limit) for row in found.rows if row.cause != "prefill"} == {(0, "hint")}
    assert not (found.answer["metrics"]["speculative_decoding"] or {}).get("per_step_drafted"), "vLLM's own detail"


@pytest.mark.parametrize("kind", ["plain", "one", "cached"])
def test_a_neighbour_that_does_not_ask_drafts_as_ever(told: dict[str, Told], kind: str) -> None:
    found = told[f"none-{kind}"]
    detail = found.answer["metrics"]["speculative_decoding"]
    drafted = [row for row in found.rows if row.drafted]
    assert not found.hinted
    assert [row.drafted for row in drafted] == detail["per_step_drafted"]
    assert [row.accepted for row in drafted] == detail["per_step_accepted"]
    assert {row.k_asked for row in found.rows if row.cause != "prefill"} == {4}
    assert sum(row.drafted for row in found.rows) > 12


def test_a_hint_that_is_neither_true_nor_false_is_refused_with_its_place(served: Served) -> None:
    body = {"model": served.model(), "prompt": "x", "max_tokens": 2}
    answer = httpx.post(f"{served.url}/v1/completions", json=body | {"disable_speculation": "maybe"}, timeout=30.0)
    assert answer.status_code == 400
    assert "disable_speculation" in answer.text
