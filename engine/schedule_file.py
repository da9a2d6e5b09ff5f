"""Draft schedules as text: vLLM's JSON and a TOML that is easier to read and to change by hand.

vLLM's JSON, alone or as `num_speculative_tokens_per_batch_size` of its `--speculative-config`:

    [[1,16,3],[32,128,2]]

TOML, one line for each range of batch sizes (scheduled sequences), in rising order:

    [schedule]
    1-16 = 3
    32-128 = 2
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from engine.schedule import DraftSchedule, ScheduleError, parse_schedule
from engine.toml_text import parse_toml

Form = Literal["json", "toml"]

VLLM_KEY: Final = "num_speculative_tokens_per_batch_size"
TABLE: Final = "schedule"

_FORMS: Final[dict[str, Form]] = {".json": "json", ".toml": "toml"}

_LONGEST: Final = 1 << 20
"""Bytes of a file that are looked at: a larger one is no schedule."""

_SIZES: Final = re.compile(r"\s*([0-9]{1,10})\s*(?:-\s*([0-9]{1,10})\s*)?", re.ASCII)
_TABLE_LINE: Final = re.compile(rf"^\s*\[\s*[\"']?{TABLE}[\"']?\s*\]", re.MULTILINE)
_COMMENT: Final = "# Draft tokens (K) by number of scheduled sequences. Gaps and the tail carry the K before them.\n"


class Written(NamedTuple):
    """A schedule and the form that it was found in."""

    schedule: DraftSchedule
    form: Form


def read_schedule(source: str) -> Written:
    """A schedule as typed on a command line: JSON itself, or the path of a file of either form.

    Raises:
        ScheduleError: a file that can't be read, text of neither form, or no valid schedule; names file and entry.
    """
    if source.lstrip().startswith(("[", "{")):
        return parse_text(source, "json")
    path = Path(source)
    return parse_text(_text_of(path), _FORMS.get(path.suffix.lower()), source)


def parse_text(text: str, form: Form | None = None, name: str | None = None) -> Written:
    """Read a schedule written in `form` (None: whichever the text looks like). `name` is put before any complaint.

    Raises:
        ScheduleError: as `read_schedule`.
    """
    if form is None:
        form = "toml" if _TABLE_LINE.search(text) else "json"
    try:
        return Written(parse_schedule(_from_json(text) if form == "json" else _from_toml(text)), form)
    except ScheduleError as error:
        raise ScheduleError(f"{name}: {error}" if name else str(error)) from error


def to_json(schedule: DraftSchedule) -> str:
    """vLLM's form, on one line."""
    return msgspec.json.encode(schedule).decode()


def to_line(schedule: DraftSchedule) -> str:
    """As operators read it: `1-4: 4, 5-12: 1, 13-32: 0`."""
    return ", ".join(f"{_sizes(entry.first, entry.last)}: {entry.k}" for entry in schedule)


def to_toml(schedule: DraftSchedule) -> str:
    """The form that `_from_toml` reads, with a line that says what it is."""
    lines = [f"{_sizes(entry.first, entry.last)} = {entry.k}" for entry in schedule]
    return _COMMENT + "\n".join([f"[{TABLE}]", *lines]) + "\n"


def _sizes(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _from_json(text: str) -> Any:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ScheduleError(
            f"neither JSON such as [[1,16,3],[32,128,2]] nor TOML with a [{TABLE}] table: {error}"
        ) from error
    if isinstance(found, dict):
        if VLLM_KEY not in found:
            raise ScheduleError(f"a JSON object is read as vLLM's speculative config, and this one has no {VLLM_KEY}")
        return found[VLLM_KEY]
    return found


def _from_toml(text: str) -> list[list[Any]]:
    try:
        found = parse_toml(text)
    except ValueError as error:
        raise ScheduleError(f"no TOML: {error}") from error
    table = found.pop(TABLE, None)
    if found:
        raise ScheduleError(f"{next(iter(found))!r} is unknown: a schedule is one table, [{TABLE}]")
    if not isinstance(table, dict):
        raise ScheduleError(f"there must be a table [{TABLE}] with lines such as 1-16 = 3")
    return [_entry(number, sizes, k) for number, (sizes, k) in enumerate(table.items(), 1)]


def _entry(number: int, sizes: str, k: Any) -> list[Any]:
    match = _SIZES.fullmatch(sizes)
    if match is None:
        raise ScheduleError(f"entry {number} ({sizes[:80]!r}): batch sizes are written 1-16, or 16 for one alone")
    first, last = match.groups()
    return [int(first), int(last or first), k]


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(_LONGEST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ScheduleError(
            f"{path}: {reason}. Give JSON such as [[1,16,3],[32,128,2]], or a .json or .toml file"
        ) from error
    if len(raw) > _LONGEST:
        raise ScheduleError(f"{path}: over {_LONGEST >> 20} MiB, that is no schedule")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise ScheduleError(f"{path}: is no text: {error}") from error
