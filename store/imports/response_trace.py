"""The trace of answers whose draft steps are known one by one: a prefill row, then a step a row, in order of time."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final

import msgspec

from engine.records import (
    Cause,
    EngineRecord,
    FinishRecord,
    PolicyMode,
    Record,
    Row,
    SequenceRecord,
    StepRecord,
)

TOKEN_LIMIT: Final = 2**20
"""No prompt or answer is longer, tokens."""
STEP_MS: Final = 1.0
"""Duration of a step where the answer does not say how long it took."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer: what it drafted and accepted in each draft step, and what else it told. None is unknown."""

    name: str
    """Its id, unique among the answers of an import."""
    model: str
    vllm: str
    max_k: int
    created: float
    """When the server took the request up, Unix seconds (whole ones in vLLM)."""
    queue_ms: float | None
    prefill_ms: float | None
    """From the queue to the first token."""
    decode_ms: float | None
    """From the first token to the last."""
    prompt_tokens: int
    output_tokens: int | None
    drafted: list[int]
    accepted: list[int]
    reason: str

    @property
    def undrafted(self) -> int:
        """Steps without a draft: tokens that neither the prefill nor a draft step made, one each."""
        if self.output_tokens is None:
            return 0
        return max(0, self.output_tokens - 1 - sum(max(0, accepted + 1) for accepted in self.accepted))

    @property
    def engine(self) -> tuple[str, str, int]:
        """What must be equal for two answers to come from one engine as far as they tell."""
        return self.model, self.vllm, self.max_k


def records_of(answers: Sequence[Answer]) -> Iterator[Record]:
    """The records of `answers`, the engines' first, then all by time.

    An engine is named `import:MODEL`, with its K and version where one model ran with several.
    """
    engines = _engine_names(answers)
    for key, engine in engines.items():
        yield _engine_record(key, engine, min(answer.created for answer in answers if answer.engine == key))
    timelines = [_timeline(answer, engines[answer.engine]) for answer in answers]
    numbers: Counter[str] = Counter()
    for record in heapq.merge(*timelines, key=attrgetter("ts")):
        if isinstance(record, StepRecord):
            numbers[record.engine] += 1
            number = numbers[record.engine]
            record = msgspec.structs.replace(record, frame=number, step=number)
        yield record


def _engine_names(answers: Sequence[Answer]) -> dict[tuple[str, str, int], str]:
    keys = list(dict.fromkeys(answer.engine for answer in answers))
    models = Counter(model for model, _, _ in keys)
    return {
        (model, vllm, k): f"import:{model}" if models[model] == 1 else f"import:{model} K={k} vllm {vllm}"
        for model, vllm, k in keys
    }


def _engine_record(key: tuple[str, str, int], engine: str, ts: float) -> EngineRecord:
    model, vllm, k = key
    policy = PolicyMode(mode="static", k=k)
    return EngineRecord(
        engine=engine, ts=ts, vllm=vllm, target=model, drafter="unknown", method="unknown", max_k=k, batch_k="free",
        max_num_seqs=0, data_parallel_size=1, device="unknown", async_scheduling=False, configured=policy,
        resolved=policy,
    )  # fmt: skip


def _timeline(answer: Answer, engine: str) -> Iterator[Record]:
    """Arrival, steps and finish of one answer; the steps spread evenly over the time that it took."""
    rows = list(_rows(answer))
    yield SequenceRecord(
        engine, answer.name, answer.created, temperature=None, prompt_tokens=answer.prompt_tokens,
        request=answer.name,
    )  # fmt: skip
    prefill_ms = answer.prefill_ms or STEP_MS
    ts = answer.created + ((answer.queue_ms or 0.0) + prefill_ms) / 1000
    decode_rows = sum(row.cause != "prefill" for row in rows)
    step_ms = answer.decode_ms / max(1, decode_rows) if answer.decode_ms else STEP_MS
    end = ts
    for row in rows:
        is_prefill = row.cause == "prefill"
        end = ts if is_prefill else end + step_ms / 1000
        yield StepRecord(
            engine=engine, frame=0, step=0, ts=end, duration_ms=prefill_ms if is_prefill else step_ms,
            k_verify=0 if is_prefill else answer.max_k, k_draft=answer.max_k, running=1, waiting=0, rows=[row],
            prefill_tokens=answer.prompt_tokens if is_prefill else 0, limit_draft="max",
        )  # fmt: skip
    yield FinishRecord(engine, answer.name, end, answer.reason, sum(row.emitted for row in rows))


def _rows(answer: Answer) -> Iterator[Row]:
    """The prefill's row, then draft steps in their order with the steps without a draft spread among them.

    A draft step emits what it accepted and one more, until the answer's tokens are used up: the last step is cut by
    a stop token or the length limit. Drafts that a grammar struck altogether are told as drafted 0.
    """
    left = TOKEN_LIMIT if answer.output_tokens is None else answer.output_tokens
    if left > 0:
        yield _row(answer, 0, 0, 1, 0, "prefill")
        left -= 1
    context = answer.prompt_tokens
    steps = zip(answer.drafted, answer.accepted, strict=True)
    for is_draft in _spread(len(answer.drafted), answer.undrafted):
        drafted, accepted = next(steps) if is_draft else (0, 0)
        emitted = max(0, min(accepted + 1, left))
        left -= emitted
        cause: Cause = "unknown" if not is_draft else "full" if drafted else "grammar"
        yield _row(answer, drafted, accepted, emitted, context, cause)
        context += emitted


def _row(answer: Answer, drafted: int, accepted: int, emitted: int, context: int, cause: Cause) -> Row:
    """K asked is what was drafted; where nothing was it is the engine's maximum, and the policy's own K is unknown."""
    k = 0 if cause == "prefill" else drafted if cause == "full" else answer.max_k
    return Row(answer.name, k, "max", None, drafted, 0, accepted, emitted, context, cause)


def _spread(some: int, others: int) -> Iterator[bool]:
    """`some` times True among `others` times False, evenly."""
    total = some + others
    return ((place + 1) * some // total > place * some // total for place in range(total))
