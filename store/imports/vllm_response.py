"""vLLM's answers to completion and chat requests, with `metrics.speculative_decoding` in them, as trace records.

The server writes it under `--per-request-spec-decode-metrics detailed`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from engine.records import Record
from store.imports.errors import ImportFailed
from store.imports.response_files import Metrics, Place, Response, Speculation, Usage, responses
from store.imports.response_trace import TOKEN_LIMIT, Answer, records_of
from store.imports.times import LATEST

OPTION: Final = "--per-request-spec-decode-metrics detailed"
K_LIMIT: Final = 1024
_NAMED: Final = 5
_LONGEST_MS: Final = 1e9
_VERSION: Final = re.compile(r"vllm-([^-]{1,40})-")


class Imported(NamedTuple):
    """Records in the order of their time, to be taken once, and what an operator should know of them."""

    records: Iterator[Record]
    notes: list[str]


def read_responses(files: Sequence[Path]) -> Imported:
    """All answers of `files` as one trace. Those without the metrics are left out, with a note.

    Raises:
        ImportFailed: a file can't be read, a count in it can't be one, or no answer has the metrics.
    """
    answers: dict[str, Answer] = {}
    notes: list[str] = []
    mute: list[str] = []
    seen = 0
    for file in files:
        for place, response in responses(file, notes):
            if response.is_bare and (response.object or "").endswith(".chunk"):
                continue
            seen += 1
            answer = _answer(response, place)
            if answer is None:
                mute.append(response.id or str(place.line or place.nth))
            else:
                notes += _keep(answers, answer)
    if not answers:
        found = f"none of {seen} answers has speculation per step" if seen else "no answer in it"
        raise ImportFailed(files[0], None, f"{found}: give answers of a vLLM that runs with {OPTION}")
    if mute:
        named = ", ".join(mute[:_NAMED]) + (", …" if len(mute) > _NAMED else "")
        notes.append(f"{len(mute)} of {seen} answers have no speculation per step and were left out: {named}")
    return Imported(records_of(list(answers.values())), notes + _about(answers.values()))


def _answer(response: Response, place: Place) -> Answer | None:
    """The answer, where it carries what each of its steps did."""
    speculation = response.speculation
    if speculation is None or not _is_detailed(speculation):
        return None
    drafted, accepted = speculation.per_step_drafted or [], speculation.per_step_accepted or []
    if len(drafted) != len(accepted):
        raise place.failed(f"per_step_drafted has {len(drafted)} entries, per_step_accepted {len(accepted)}")
    usage, metrics = response.usage or Usage(), response.metrics or Metrics()
    if response.created is None or not 0 < response.created < LATEST:
        raise place.failed("`created` is no time in Unix seconds: give answers as vLLM sends them")
    reasons = [choice.finish_reason for choice in response.choices or [] if choice.finish_reason]
    version = _VERSION.match(response.system_fingerprint or "")
    k = speculation.num_spec_tokens
    return Answer(
        name=response.id or f"{place.file.name}:{place.nth}",
        model=response.model or "unknown",
        vllm=version.group(1) if version else "unknown",
        max_k=_checked(k, "num_spec_tokens", place, K_LIMIT) if k is not None else min(max([0, *drafted]), K_LIMIT),
        created=response.created,
        queue_ms=_milliseconds(metrics.queue_time_ms),
        prefill_ms=_milliseconds(metrics.time_to_first_token_ms),
        decode_ms=_milliseconds(metrics.generation_time_ms),
        prompt_tokens=_checked(usage.prompt_tokens or 0, "prompt_tokens", place),
        output_tokens=None
        if usage.completion_tokens is None
        else _checked(usage.completion_tokens, "completion_tokens", place),
        drafted=drafted,
        accepted=accepted,
        reason=reasons[0] if reasons else "unknown",
    )


def _is_detailed(speculation: Speculation) -> bool:
    """Whether steps are told one by one, or there were none."""
    told = speculation.per_step_drafted is not None or speculation.per_step_accepted is not None
    return told or speculation.num_spec_steps == 0


def _checked(tokens: int, name: str, place: Place, most: int = TOKEN_LIMIT) -> int:
    if not 0 <= tokens <= most:
        raise place.failed(f"{name} is {tokens}, which is no number of tokens")
    return tokens


def _milliseconds(value: float | None) -> float | None:
    return value if value is not None and 0 < value < _LONGEST_MS else None


def _keep(answers: dict[str, Answer], answer: Answer) -> list[str]:
    """Add an answer. The same one twice counts once; another one of the same id gets a name of its own."""
    name, nth = answer.name, 1
    while name in answers:
        if answers[name] == msgspec.structs.replace(answer, name=name):
            return [f"{answer.name} was given twice: counted once"]
        nth += 1
        name = f"{answer.name}#{nth}"
    answers[name] = msgspec.structs.replace(answer, name=name)
    return []


def _about(answers: Iterable[Answer]) -> list[str]:
    """What is not known of these answers and had to be set."""
    answers = list(answers)
    timeless = sum(answer.decode_ms is None for answer in answers)
    quiet = sum(answer.undrafted for answer in answers)
    unsure = sum(answer.output_tokens is None for answer in answers)
    notes = []
    if timeless:
        notes.append(
            f"{timeless} answers do not say how long they took: their steps are set 1 ms apart, so tokens/s means"
            " nothing (vLLM's --enable-per-request-metrics gives the duration)"
        )
    if quiet:
        notes.append(f"{quiet} tokens came from steps without a draft; where those stood is not told: spread evenly")
    if unsure:
        notes.append(f"{unsure} answers have no usage: their last step is taken to have kept all it accepted")
    return notes
