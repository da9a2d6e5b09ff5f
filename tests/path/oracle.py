"""The oracle: requests of every ending and kind, sent at once, and for each what vLLM's own response says of its
speculation beside what specdeck stored of it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from engine.records import FinishRecord, PolicyMode, Row, SequenceRecord, StepRecord
from tests.path.served import Served, until

CODE = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n\n\ndef mul(a, b):\n"
REPEAT = "one two three four five six seven eight nine ten. " * 3 + "one two three"
CHAT = "Question: What is the capital of France?\nAnswer:"
SCHEMA = {"type": "object", "properties": {"name": {"enum": ["a", "b"]}}, "required": ["name"]}


class Oracle(NamedTuple):
    """Both by the request id that the client gave, which begins with `k` and the K that was in force."""

    answers: dict[str, dict[str, Any]]
    rows: dict[str, list[Row]]

    def compare(self) -> int:
        """Every verification of every request equals vLLM's detail; how many there were."""
        compared = 0
        for name, answer in self.answers.items():
            detail = answer["metrics"]["speculative_decoding"] or {}
            drafted = [row for row in self.rows[name] if row.drafted]
            theirs = (detail.get("per_step_drafted") or [], detail.get("per_step_accepted") or [])
            ours = ([row.drafted for row in drafted], [row.accepted for row in drafted])
            assert ours == theirs, f"{name}: stored {ours}, vLLM says {theirs}"
            compared += len(drafted)
        print(f"{compared} verifications compared")
        return compared


def consult(served: Served, ks: Sequence[int]) -> Oracle:
    """Each K in turn, 16 requests at once."""
    answers: dict[str, dict[str, Any]] = {}
    for k in ks:
        served.policy(PolicyMode(mode="static", k=k))
        bodies = _bodies(k)
        assert len(bodies) == 16
        with ThreadPoolExecutor(16) as pool:
            sent = {name: pool.submit(served.complete, body, name) for name, body in bodies.items()}
            answers |= {name: future.result() for name, future in sent.items()}
    return Oracle(answers, _stored(served, answers))


def _bodies(k: int) -> dict[str, dict[str, Any]]:
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


def _stored(served: Served, answers: dict[str, dict[str, Any]]) -> dict[str, list[Row]]:
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
