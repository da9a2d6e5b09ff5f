"""vLLM's answers to completion and chat requests, with `metrics.speculative_decoding` in them, as trace records.

The server writes it under `--per-request-spec-decode-metrics detailed` (`SpeculativeDecodingMetrics` in
vllm/entrypoints/generate/base/protocol.py of vLLM 0.32). A file holds one answer, a JSON list of them, or one a line
(also as `data:` lines of a stream, or as a batch run writes them).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from engine.records import Record
from store.imports.errors import ImportFailed
from store.imports.response_trace import TOKEN_LIMIT, Answer, records_of
from store.imports.texts import decoded, read
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


class _Speculation(msgspec.Struct):
    num_spec_tokens: int | None = None
    num_spec_steps: int | None = None
    per_step_drafted: list[int] | None = None
    per_step_accepted: list[int] | None = None


class _Metrics(msgspec.Struct):
    speculative_decoding: _Speculation | None = None
    queue_time_ms: float | None = None
    time_to_first_token_ms: float | None = None
    generation_time_ms: float | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Choice(msgspec.Struct):
    finish_reason: str | None = None


class _Response(msgspec.Struct):
    id: str | None = None
    object: str | None = None
    created: float | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    metrics: _Metrics | None = None
    response: _BatchPart | None = None

    @property
    def speculation(self) -> _Speculation | None:
        return self.metrics.speculative_decoding if self.metrics else None

    @property
    def is_bare(self) -> bool:
        """As all pieces of a streamed answer are but the last, which tells of the whole."""
        return self.usage is None and self.metrics is None


class _BatchPart(msgspec.Struct):
    body: _Response | None = None


class _Place(NamedTuple):
    """Where an answer stands: in a line of a file, or as the n-th of its list."""

    file: Path
    line: int | None
    nth: int

    def failed(self, what: str) -> ImportFailed:
        return ImportFailed(self.file, self.line, what if self.line else f"answer {self.nth}: {what}")


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
        for place, response in _responses(file, notes):
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


def _responses(file: Path, notes: list[str]) -> Iterator[tuple[_Place, _Response]]:
    data = decoded(read(file), file).encode()
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        yield from _lines(file, data, notes)
        return
    if not data.lstrip().startswith(b"["):
        yield _Place(file, 1, 1), _parsed(data, _Place(file, 1, 1))
        return
    for nth, raw in enumerate(msgspec.json.decode(data, type=list[msgspec.Raw]), 1):
        place = _Place(file, None, nth)
        yield place, _parsed(bytes(raw), place)


def _lines(file: Path, data: bytes, notes: list[str]) -> Iterator[tuple[_Place, _Response]]:
    """One answer a line. What was being written when the file was taken is dropped, with a note."""
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        line = line.strip()
        text = line.removeprefix(b"data:").strip()
        if not text or text == b"[DONE]":
            continue
        place = _Place(file, number, number)
        try:
            response = _parsed(text, place)
        except ImportFailed as error:
            if number == 1 or number < len(lines) or isinstance(error.__cause__, msgspec.ValidationError):
                raise
            notes.append(f"{file}: line {number} is cut off: dropped")
            continue
        if text == line or not response.is_bare:
            yield place, response


def _parsed(text: bytes, place: _Place) -> _Response:
    try:
        response = msgspec.json.decode(text, type=_Response)
    except msgspec.ValidationError as error:
        raise place.failed(f"no answer of vLLM: {error}") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise place.failed(f"not JSON ({error}): give answers as vLLM sends them") from error
    return response.response.body if response.response and response.response.body else response


def _answer(response: _Response, place: _Place) -> Answer | None:
    """The answer, where it carries what each of its steps did."""
    speculation = response.speculation
    if speculation is None or not _is_detailed(speculation):
        return None
    drafted, accepted = speculation.per_step_drafted or [], speculation.per_step_accepted or []
    if len(drafted) != len(accepted):
        raise place.failed(f"per_step_drafted has {len(drafted)} entries, per_step_accepted {len(accepted)}")
    usage, metrics = response.usage or _Usage(), response.metrics or _Metrics()
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


def _is_detailed(speculation: _Speculation) -> bool:
    """Whether steps are told one by one, or there were none."""
    told = speculation.per_step_drafted is not None or speculation.per_step_accepted is not None
    return told or speculation.num_spec_steps == 0


def _checked(tokens: int, name: str, place: _Place, most: int = TOKEN_LIMIT) -> int:
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
