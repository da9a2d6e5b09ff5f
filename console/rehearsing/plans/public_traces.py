"""Recorded traffic in three public forms: when each request came, and how long its prompt and its answer were.

- `azure`, AzurePublicDataset's LLM inference traces (CSV): `TIMESTAMP,ContextTokens,GeneratedTokens`, a time such as
  `2023-11-16 18:17:03.9799600`, with an offset from UTC or not.
- `burstgpt`, HPMLL/BurstGPT (CSV): `Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type`, seconds from
  the first day on; newer ones have more columns. A failed request has 0 response tokens.
- `mooncake`, kvcache-ai/Mooncake (JSONL): `{"timestamp": ms, "input_length": …, "output_length": …, "hash_ids": […]}`.
  That prompts begin alike (`hash_ids`) is not imitated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec

from console.rehearsing.plans.errors import shown
from console.rehearsing.plans.lines import at_line, csv_rows, json_lines
from store.rehearsal.plan import PublicTrace

_Length = Annotated[int, msgspec.Meta(ge=0, le=100_000_000)]


class TracedRequest(NamedTuple):
    """`ts`: seconds on the trace's own clock; tokens are 0 where the trace has none, e.g. of a failed request."""

    line: int
    ts: float
    prompt_tokens: int
    output_tokens: int


class _MooncakeLine(msgspec.Struct):
    timestamp: float
    """Milliseconds."""
    input_length: _Length
    output_length: _Length


def traced_requests(trace: PublicTrace) -> Iterator[TracedRequest]:
    """The requests of a trace in its order, read as they are asked for.

    Raises:
        PlanError: a line that is broken or that goes back in time; names file and line.
    """
    path, before = Path(trace.file), -math.inf
    for request in _READERS[trace.format](path):
        if not math.isfinite(request.ts):
            raise at_line(path, request.line, "its time is no finite number")
        if request.ts < before:
            raise at_line(
                path, request.line, f"it is {before - request.ts:.3f} s before the line above; sort the file by time"
            )
        before = request.ts
        yield request


def _azure(path: Path) -> Iterator[TracedRequest]:
    for line, row in csv_rows(path, ("TIMESTAMP", *_AZURE), f"TIMESTAMP,{','.join(_AZURE)}"):
        lengths = (_tokens(path, line, row, name) for name in _AZURE)
        yield TracedRequest(line, _moment(path, line, row["TIMESTAMP"]), *lengths)


def _burstgpt(path: Path) -> Iterator[TracedRequest]:
    example = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"
    for line, row in csv_rows(path, ("Timestamp", *_BURSTGPT), example):
        try:
            ts = float(row["Timestamp"])
        except ValueError:
            raise at_line(path, line, f"Timestamp {shown(row['Timestamp'])} is no number of seconds") from None
        yield TracedRequest(line, ts, *(_tokens(path, line, row, name) for name in _BURSTGPT))


def _mooncake(path: Path) -> Iterator[TracedRequest]:
    for line, found in json_lines(path, _MooncakeLine):
        yield TracedRequest(line, found.timestamp / 1000.0, found.input_length, found.output_length)


def _moment(path: Path, line: int, text: str) -> float:
    """Unix seconds; a time without an offset is taken for UTC, so that none is left out or told twice."""
    try:
        found = datetime.fromisoformat(text.strip())
        return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise at_line(path, line, f"{shown(text)} is no time such as 2023-11-16 18:17:03.9799600") from None


def _tokens(path: Path, line: int, row: dict[str, str], name: str) -> int:
    try:
        return msgspec.convert(row[name].strip(), _Length, strict=False)
    except msgspec.ValidationError:
        raise at_line(path, line, f"{name} {shown(row[name])} is no number of tokens") from None


_AZURE: Final = ("ContextTokens", "GeneratedTokens")
_BURSTGPT: Final = ("Request tokens", "Response tokens")
_READERS: Final[dict[str, Callable[[Path], Iterator[TracedRequest]]]] = {
    "azure": _azure, "burstgpt": _burstgpt, "mooncake": _mooncake,
}  # fmt: skip

FORMATS: Final = tuple(_READERS)
