"""Files of vLLM's answers: one answer, a JSON list of them, or one a line, also as `data:` lines of a stream, or as a
batch run writes them. Each answer comes with the place where it stands.

`SpeculativeDecodingMetrics` in vllm/entrypoints/generate/base/protocol.py of vLLM 0.32 is what is meant to be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from store.imports.errors import ImportFailed
from store.imports.texts import decoded, read


class Speculation(msgspec.Struct):
    num_spec_tokens: int | None = None
    num_spec_steps: int | None = None
    per_step_drafted: list[int] | None = None
    per_step_accepted: list[int] | None = None


class Metrics(msgspec.Struct):
    speculative_decoding: Speculation | None = None
    queue_time_ms: float | None = None
    time_to_first_token_ms: float | None = None
    generation_time_ms: float | None = None


class Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Choice(msgspec.Struct):
    finish_reason: str | None = None


class Response(msgspec.Struct):
    id: str | None = None
    object: str | None = None
    created: float | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    choices: list[Choice] | None = None
    usage: Usage | None = None
    metrics: Metrics | None = None
    response: BatchPart | None = None

    @property
    def speculation(self) -> Speculation | None:
        return self.metrics.speculative_decoding if self.metrics else None

    @property
    def is_bare(self) -> bool:
        """As all pieces of a streamed answer are but the last, which tells of the whole."""
        return self.usage is None and self.metrics is None


class BatchPart(msgspec.Struct):
    body: Response | None = None


class Place(NamedTuple):
    """Where an answer stands: in a line of a file, or as the n-th of its list."""

    file: Path
    line: int | None
    nth: int

    def failed(self, what: str) -> ImportFailed:
        return ImportFailed(self.file, self.line, what if self.line else f"answer {self.nth}: {what}")


def responses(file: Path, notes: list[str]) -> Iterator[tuple[Place, Response]]:
    """The answers of a file, in its order; what had to be dropped is added to `notes`.

    Raises:
        ImportFailed: it can't be read, or holds something else.
    """
    data = decoded(read(file), file).encode()
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        yield from _lines(file, data, notes)
        return
    if not data.lstrip().startswith(b"["):
        yield Place(file, 1, 1), _parsed(data, Place(file, 1, 1))
        return
    for nth, raw in enumerate(msgspec.json.decode(data, type=list[msgspec.Raw]), 1):
        place = Place(file, None, nth)
        yield place, _parsed(bytes(raw), place)


def _lines(file: Path, data: bytes, notes: list[str]) -> Iterator[tuple[Place, Response]]:
    """One answer a line. What was being written when the file was taken is dropped, with a note."""
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        line = line.strip()
        text = line.removeprefix(b"data:").strip()
        if not text or text == b"[DONE]":
            continue
        place = Place(file, number, number)
        try:
            response = _parsed(text, place)
        except ImportFailed as error:
            if number == 1 or number < len(lines) or isinstance(error.__cause__, msgspec.ValidationError):
                raise
            notes.append(f"{file}: line {number} is cut off: dropped")
            continue
        if text == line or not response.is_bare:
            yield place, response


def _parsed(text: bytes, place: Place) -> Response:
    try:
        response = msgspec.json.decode(text, type=Response)
    except msgspec.ValidationError as error:
        raise place.failed(f"no answer of vLLM: {error}") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise place.failed(f"not JSON ({error}): give answers as vLLM sends them") from error
    return response.response.body if response.response and response.response.body else response
