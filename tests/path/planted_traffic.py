"""Two workloads, a friendly and a hostile one, on an engine whose drafter plants errors (`planted_proposer`)."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from console.feed.messages import WorkloadView
from engine.records import Record, SequenceRecord, StepRecord
from tests.path.planted_proposer import VARIABLE
from tests.path.served import Served

PROPOSER = "tests.path.planted_proposer.Planted"
ROOT = Path(__file__).parents[2]
HOSTILE_SHARE = 0.98


class Stream(NamedTuple):
    """Requests of one workload. `tokens`: of an answer, such that both workloads' last about as many steps."""

    workload: str
    opening: str
    """First word of its prompts, one token: by it the drafter knows the workload."""
    tokens: int
    friendly_tokens: int


class Answered(NamedTuple):
    """An answer, and what vLLM itself says was drafted for it at each step, where it was asked to tell."""

    workload: str
    sent: float
    received: float
    drafted: list[int]


HOSTILE = Stream("hostile", "Write", 24, 96)
FRIENDLY = Stream("friendly", "Once", 96, 96)
TAILS = (" upon a time there was a small house by the sea, and", " about the garden and the river behind it:")


def environment(plan: Path) -> dict[str, str]:
    """What a `specdeck serve` with this drafter needs."""
    return {VARIABLE: str(plan), "PYTHONPATH": str(ROOT)}


class Traffic:
    """`each` sequences of both workloads at any moment, until it is left; of the hostile one `hostile` where given."""

    def __init__(self, served: Served, plan: Path, model: Path, each: int = 2, hostile: int | None = None) -> None:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
        self._first = {one.workload: tokenizer.encode(one.opening).ids[0] for one in (HOSTILE, FRIENDLY)}
        assert len(set(self._first.values())) == 2
        self._served, self._plan = served, plan
        self._many = {HOSTILE: each if hostile is None else hostile, FRIENDLY: each}
        self._ended = threading.Event()
        self._name = served.model()
        self.turned_friendly = False
        self.statuses: list[int] = []
        self.answers: list[Answered] = []
        self.plant(HOSTILE_SHARE)

    def plant(self, share: float) -> None:
        """From now on such a share of the hostile workload's draft tokens is wrong."""
        new = self._plan.with_suffix(".new")
        new.write_text(json.dumps({self._first[HOSTILE.workload]: share}))
        new.replace(self._plan)
        self.turned_friendly = share < 0.5

    @contextmanager
    def running(self) -> Iterator[Traffic]:
        threads = [
            threading.Thread(target=self._send, args=(stream, number), daemon=True)
            for stream, many in self._many.items()
            for number in range(many)
        ]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            for thread in threads:
                thread.join(60.0)

    def _send(self, stream: Stream, number: int) -> None:
        turn = number
        while not self._ended.is_set():
            tokens = stream.friendly_tokens if self.turned_friendly else stream.tokens
            body: dict[str, Any] = {
                "model": self._name, "prompt": stream.opening + TAILS[turn % len(TAILS)], "max_tokens": tokens,
                "temperature": 0.0, "ignore_eos": True, "vllm_xargs": {"workload": stream.workload},
            }  # fmt: skip
            turn, sent = turn + 1, time.time()
            try:
                answer = httpx.post(f"{self._served.url}/v1/completions", json=body, timeout=60.0)
                self.statuses.append(answer.status_code)
                if answer.status_code == 200:
                    self.answers.append(Answered(stream.workload, sent, time.time(), _drafted(answer.json())))
            except httpx.TransportError:
                self.statuses.append(0)
            if self.statuses[-1] != 200:
                self._ended.wait(0.5)


def _drafted(answer: dict[str, Any]) -> list[int]:
    detail = (answer.get("metrics") or {}).get("speculative_decoding") or {}
    return list(detail.get("per_step_drafted") or [])


def view_of(served: Served, workload: str) -> WorkloadView | None:
    """What the picture says of a workload; None while it doesn't or none can be had."""
    picture = served.snapshot_or_none()
    if picture is None:
        return None
    return next((view for view in picture.workloads if view.name == workload), None)


def turned_off(view: WorkloadView | None) -> bool:
    """Whether the controller lets the workload draft nothing, by either tier."""
    return view is not None and (view.fallback or view.k == 0)


def figures_of(records: list[Record], since: float, until: float) -> dict[str, dict[str, float | None]]:
    """Of each workload's decode rows between two moments, those of probes left out: mean K asked, tokens drafted and
    accepted, pooled acceptance (None where nothing was drafted)."""
    names = {record.seq: record.workload for record in records if isinstance(record, SequenceRecord)}
    found: dict[str, dict[str, float | None]] = {}
    for one in (HOSTILE, FRIENDLY):
        rows = [
            row
            for record in records
            if isinstance(record, StepRecord) and since <= record.ts <= until and record.probe is None
            for row in record.rows
            if row.cause != "prefill" and names.get(row.seq) == one.workload
        ]
        drafted, accepted = sum(row.drafted for row in rows), sum(row.accepted for row in rows)
        found[one.workload] = {
            "rows": len(rows), "mean_k": sum(row.k_asked for row in rows) / max(len(rows), 1), "drafted": drafted,
            "accepted": accepted, "acceptance": accepted / drafted if drafted else None,
        }  # fmt: skip
    return found
