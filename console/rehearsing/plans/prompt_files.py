"""Prompts of the operator's own: a .jsonl (`prompt` or `messages`) or a .csv (a column `prompt`).

Either may give `max_tokens` and `temperature` for one prompt; they then stand before the workload's. Other fields and
columns are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from console.rehearsing.plans.errors import PlanError, named, shown
from console.rehearsing.plans.lines import at_line, csv_rows, json_lines
from store.rehearsal.records import Message

SUFFIXES: Final = (".jsonl", ".csv")

MOST_TOKENS: Final = 1_000_000
"""No answer is longer."""

HOTTEST: Final = 2.0
"""No temperature is higher: vLLM's own limit for chats."""

MOST_BYTES: Final = 256 << 20
MOST_PROMPTS: Final = 200_000

_Answer = Annotated[int, msgspec.Meta(ge=1, le=MOST_TOKENS)]
_Temperature = Annotated[float, msgspec.Meta(ge=0, le=HOTTEST)]
_Role = Annotated[str, msgspec.Meta(min_length=1)]


class Prompt(msgspec.Struct, frozen=True):
    """`max_tokens`, `temperature`: of this prompt alone, None where the workload's hold."""

    messages: tuple[Message, ...]
    max_tokens: int | None = None
    temperature: float | None = None


class _Said(msgspec.Struct):
    role: _Role
    content: str


class _Line(msgspec.Struct):
    prompt: str | None = None
    messages: list[_Said] | None = None
    max_tokens: _Answer | None = None
    temperature: _Temperature | None = None


class _Numbers(msgspec.Struct):
    """Of a row of CSV."""

    max_tokens: _Answer | None = None
    temperature: _Temperature | None = None


def read_prompts(path: Path) -> tuple[Prompt, ...]:
    """Every prompt of a file, in its order.

    Raises:
        PlanError: names the file and, where one is wrong, the line.
    """
    try:
        size = path.stat().st_size
    except (OSError, ValueError) as error:
        raise PlanError(f"{named(path)}: can't be read ({getattr(error, 'strerror', None) or error})") from error
    if size > MOST_BYTES:
        raise PlanError(f"{named(path)}: {size >> 20} MiB are more than {MOST_BYTES >> 20}; take a sample of it")
    found = tuple(_of_json(path) if path.suffix.lower() == ".jsonl" else _of_csv(path))
    if not found:
        raise PlanError(f"{named(path)}: there is no prompt in it")
    if len(found) > MOST_PROMPTS:
        raise PlanError(f"{named(path)}: more than {MOST_PROMPTS:,} prompts; take a sample of it")
    return found


def _of_json(path: Path) -> Iterator[Prompt]:
    for number, line in json_lines(path, _Line):
        if (line.prompt is None) == (line.messages is None):
            raise at_line(path, number, "a line has either prompt or messages")
        said = [_Said("user", line.prompt)] if line.prompt is not None else line.messages or []
        messages = tuple(Message(one.role, one.content) for one in said)
        yield _checked(path, number, Prompt(messages, line.max_tokens, line.temperature))


def _of_csv(path: Path) -> Iterator[Prompt]:
    for number, row in csv_rows(path, ("prompt",), "prompt, and max_tokens or temperature where wanted"):
        given = {key: row[key].strip() for key in _Numbers.__struct_fields__ if row.get(key, "").strip()}
        found = _numbers(path, number, given)
        prompt = Prompt((Message("user", row["prompt"]),), found.max_tokens, found.temperature)
        yield _checked(path, number, prompt)


def _numbers(path: Path, number: int, given: dict[str, Any]) -> _Numbers:
    try:
        return msgspec.convert(given, _Numbers, strict=False)  # of text too
    except msgspec.ValidationError as error:
        raise at_line(path, number, f"{error} (it is {', '.join(map(shown, given.values()))})") from error


def _checked(path: Path, number: int, prompt: Prompt) -> Prompt:
    if not any(message.content.strip() for message in prompt.messages):
        raise at_line(path, number, "the prompt is empty")
    return prompt
