"""What-if against the truth on the real engine: the n-gram drafter at temperature 0, recorded at K 8, asked for 4, 2, 1
and off, and these then run for real on the same requests.

One engine serves throughout. Each block sends the same fixed list of requests (four workloads, answers of fixed
lengths, four at a time) once under every arm, the arms in turn forwards and backwards so that a drift of the machine
falls on all alike. Prefix caching is off: no arm profits from prompts that another has read. What is asked knows only
the steps at K 8 and those of the start-up calibration: the steps of the other arms are taken out of the record first.

Holds when tokens per step of every arm are within 2 % of the truth. Takes eight minutes, and wants the machine for
itself.

    python -m tests.acceptance.whatif_engine
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx

from console.feed.protocol import PolicySet
from console.traffic.prompts import WORKLOADS, Prompt, Workload, prompts
from engine.policy import describe
from engine.records import PolicyMode, StepRecord
from store.database import Store
from store.ingest import Ingest
from store.records import stored_records
from store.whatif import WhatIf, what_if
from tests.acceptance.result import write
from tests.path.policies import set_policy
from tests.path.served import Served, until

MAX_K: Final = 8
RECORDED: Final = PolicyMode(mode="static", k=MAX_K)
ASKED: Final = (*(PolicyMode(mode="static", k=k) for k in (4, 2, 1)), PolicyMode(mode="off"))
STREAMS: Final = 4
BLOCKS: Final = int(os.environ.get("SPECDECK_ACCEPT_ROUNDS", "3"))
REQUESTS: Final = int(os.environ.get("SPECDECK_WHATIF_REQUESTS", "24"))
"""Of each block, a fourth of each workload."""
ANSWER_TOKENS: Final = (64, 96, 128, 160)
WITHIN: Final = 0.02
CALIBRATED_SECONDS: Final = 180.0


class Request(NamedTuple):
    workload: Workload
    prompt: Prompt
    tokens: int


class Turn(NamedTuple):
    """One arm's turn in one block. Unix seconds."""

    block: int
    mode: PolicyMode
    begin: float
    end: float
    answers: list[list[int]]
    """Token ids, in the order of the requests."""


def main() -> bool:
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as directory:
        figures = measure(Path(directory), BLOCKS, REQUESTS)
    print("\n".join(table(figures)))
    print(write("whatif_engine", figures))
    return all(abs(row["error"]) <= WITHIN for row in figures["arms"])


def measure(directory: Path, blocks: int, many: int) -> dict[str, Any]:
    """Serve in `directory`, measure, and leave the store there."""
    started = time.time()
    served = Served(
        directory, "--drafter=ngram", f"--max-k={MAX_K}", "--calibrate=60", "--engine-arg=--no-enable-prefix-caching",
        policy=describe(RECORDED), calibrated=True,
    )  # fmt: skip
    try:
        served.wait_serving()
        until("calibrated", lambda: _calibrated(served), CALIBRATED_SECONDS)
        turns = list(_turns(served, blocks, many))
    finally:
        served.stop()
    with Store.open(directory / "data" / "specdeck.duckdb", read_only=True) as store:
        arms, per_block = _compared(store, turns)
    return {
        "streams": STREAMS, "blocks": blocks, "requests": many, "recorded": describe(RECORDED),
        "seconds": round(time.time() - started), "same_answers": _same_answers(turns), "arms": arms,
        "by_block": per_block,
    }  # fmt: skip


def _calibrated(served: Served) -> bool:
    picture = served.snapshot_or_none()
    return picture is not None and picture.calibration is not None and picture.calibration.state in ("done", "skipped")


def _turns(served: Served, blocks: int, many: int) -> Iterator[Turn]:
    model = served.model()
    for block in range(blocks):
        requests = list(_requests(block, many))
        arms = [RECORDED, *ASKED]
        for mode in arms if block % 2 == 0 else arms[::-1]:
            set_policy(served, PolicySet(policy=mode, why="an arm's turn"))
            time.sleep(1.0)
            begin = time.time()
            answers = asyncio.run(_answered(served.url, model, requests))
            end = time.time()
            _say(f"block {block + 1}/{blocks} {describe(mode)}: {end - begin:.0f} s, load {os.getloadavg()[0]:.1f}")
            yield Turn(block, mode, begin, end, answers)


def _requests(block: int, many: int) -> Iterator[Request]:
    """Workloads in turn; no prompt twice."""
    for number in range(many):
        place = block * many + number
        workload = WORKLOADS[number % len(WORKLOADS)]
        pool = prompts(workload)
        # A prime step through the list: neighbours in it are variations of one text.
        yield Request(workload, pool[place // len(WORKLOADS) * 7 % len(pool)], ANSWER_TOKENS[place % 4])


async def _answered(url: str, model: str, requests: Sequence[Request]) -> list[list[int]]:
    """Token ids of every answer; `STREAMS` requests under way at any time, begun in their order."""
    waiting = list(enumerate(requests))[::-1]
    answers: list[list[int]] = [[] for _ in requests]

    async def stream(http: httpx.AsyncClient) -> None:
        while waiting:
            place, request = waiting.pop()
            answer = await http.post(f"{url}/v1/chat/completions", json=_body(model, request))
            answer.raise_for_status()
            answers[place] = answer.json()["choices"][0]["token_ids"]

    async with httpx.AsyncClient(timeout=300.0, trust_env=False) as http:
        await asyncio.gather(*(stream(http) for _ in range(STREAMS)))
    return answers


def _body(model: str, request: Request) -> dict[str, Any]:
    return {
        "model": model, "messages": [{"role": one.role, "content": one.content} for one in request.prompt],
        "max_tokens": request.tokens, "temperature": 0.0, "ignore_eos": True, "return_token_ids": True,
        "vllm_xargs": {"workload": request.workload},
    }  # fmt: skip


def _compared(store: Store, turns: Sequence[Turn]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Of each arm that was asked for: predicted, naive and real, over all blocks and in each."""
    with _record_without(store, [turn for turn in turns if turn.mode != RECORDED]) as record:
        per_block = [
            _row(predicted, real)
            for turn in turns
            if turn.mode == RECORDED
            for predicted in what_if(record.connection, ASKED, turn.begin, turn.end)
            for real in (_real(store, turns, turn.block, predicted.policy),)
        ]
    return [_together([row for row in per_block if row["arm"] == describe(mode)]) for mode in ASKED], per_block


def _record_without(store: Store, turns: Sequence[Turn]) -> Store:
    """The same record without the steps of these turns: nothing of the truth is known to whoever asks it."""
    kept = Store.memory()
    ingest = Ingest(kept)
    for record in stored_records(store.connection):
        if isinstance(record, StepRecord) and any(turn.begin < record.ts <= turn.end for turn in turns):
            continue
        ingest.record(record)
    ingest.close()
    return kept


def _real(store: Store, turns: Sequence[Turn], block: int, mode: PolicyMode) -> WhatIf:
    """What was recorded of an arm's own turn."""
    (turn,) = [turn for turn in turns if turn.block == block and turn.mode == mode]
    return what_if(store.connection, [mode], turn.begin, turn.end)[0]


def _row(predicted: WhatIf, real: WhatIf) -> dict[str, Any]:
    told, truth, before = predicted.predicted, real.recorded, predicted.recorded
    tokens = {bucket.workload: bucket for bucket in real.buckets}
    return {
        "arm": describe(predicted.policy), "rows": predicted.decode_rows,
        "tokens": predicted.decode_rows * (before.tokens_per_step or 0.0),
        "recorded": before.tokens_per_step, "predicted": told.tokens_per_step, "low": told.tokens_per_step_low,
        "high": told.tokens_per_step_high, "naive": told.naive_tokens_per_step, "exact_share": told.exact_share,
        "recorded_start_share": told.recorded_start_share, "real": truth.tokens_per_step,
        "seconds_recorded": before.tokens_per_second, "seconds_predicted": told.tokens_per_second,
        "seconds_low": told.tokens_per_second_low, "seconds_high": told.tokens_per_second_high,
        "seconds_real": truth.tokens_per_second, "no_seconds": predicted.no_seconds,
        "workloads": {
            one.workload: {
                "predicted": one.predicted.tokens_per_step, "naive": one.predicted.naive_tokens_per_step,
                "real": tokens[one.workload].recorded.tokens_per_step,
            }
            for one in predicted.buckets if one.workload in tokens
        },
    }  # fmt: skip


def _together(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """All blocks of an arm: the same tokens over all steps, over all seconds."""
    whole: dict[str, Any] = {"arm": rows[0]["arm"]}
    tokens = sum(row["tokens"] for row in rows)
    for name in ("recorded", "predicted", "low", "high", "naive", "real"):
        whole[name] = tokens / sum(row["tokens"] / row[name] for row in rows)
    for name in ("recorded", "predicted", "low", "high", "real"):
        rates = [row[f"seconds_{name}"] for row in rows]
        told = all(rates)
        whole[f"seconds_{name}"] = (
            tokens / sum(r["tokens"] / x for r, x in zip(rows, rates, strict=True)) if told else None
        )
    whole["exact_share"] = sum(row["exact_share"] for row in rows) / len(rows)
    whole["error"], whole["naive_error"] = (whole[name] / whole["real"] - 1 for name in ("predicted", "naive"))
    predicted = whole["seconds_predicted"]
    whole["seconds_error"] = predicted / whole["seconds_real"] - 1 if predicted else None
    whole["seconds_inside"] = sum(_inside(row) for row in rows) if predicted else None
    whole["no_seconds"] = rows[0]["no_seconds"]
    return whole


def _inside(row: dict[str, Any]) -> bool:
    return bool(row["seconds_low"] <= row["seconds_real"] <= row["seconds_high"])


def _same_answers(turns: Sequence[Turn]) -> float:
    """Share of answers that are the same, token by token, as the recorded arm's."""
    recorded = {turn.block: turn.answers for turn in turns if turn.mode == RECORDED}
    pairs = [
        mine == theirs
        for turn in turns
        if turn.mode != RECORDED
        for mine, theirs in zip(turn.answers, recorded[turn.block], strict=True)
    ]
    return sum(pairs) / len(pairs)


def table(figures: dict[str, Any]) -> Iterator[str]:
    """The figures as Markdown."""
    yield "| policy | tokens per step: predicted (bounds) | real | error | naive | tokens/s: predicted (95 %) | real |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for row in figures["arms"]:
        rate = (
            "—"
            if row["seconds_predicted"] is None
            else (f"{row['seconds_predicted']:.0f} ({row['seconds_low']:.0f} to {row['seconds_high']:.0f})")
        )
        told = (
            f"{row['predicted']:.3f} ({row['low']:.3f} to {row['high']:.3f}) | {row['real']:.3f} | {row['error']:+.1%}"
        )
        naive = f"{row['naive']:.3f} ({row['naive_error']:+.1%})"
        yield f"| {row['arm']} | {told} | {naive} | {rate} | {row['seconds_real']:.0f} |"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
