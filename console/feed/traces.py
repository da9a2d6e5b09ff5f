"""What consoles ask about trace files and recordings, what they are answered, and which name a recording may have."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

RecordingForm = Literal["zst", "jsonl", "compact"]
TraceForm = Literal["zst", "jsonl", "compact", "bundle", "store"]
LookState = Literal["unread", "begun", "known", "broken", "held"]

RECORDING_ENDINGS: Final[Mapping[RecordingForm, str]] = {
    "zst": ".jsonl.zst",
    "jsonl": ".jsonl",
    "compact": ".parquet",
}
LONGEST_SECONDS: Final = 86_400.0
"""Of a recording: the station keeps steps for two days, less where the disk is short."""
LONGEST_NAME: Final = 200
"""Bytes. File systems take 255, and a file that is being written has a longer name."""


class TracesParams(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `traces`. `here`: one more directory to look into, absolute. `whole`: path of a trace that is to be
    read whole however large it is; of others only small ones are."""

    here: str | None = None
    whole: str | None = None


class TraceLook(msgspec.Struct, frozen=True, kw_only=True):
    """A trace file and what is known of it by now. Times are Unix seconds.

    `state`: `unread`; `begun`: its beginning was read; `known`: all of it; `broken` or `held` (a store that a process
    has open), with the `reason`. What is not known is None, of names empty.
    """

    path: str
    place: Literal["data", "here", "samples"]
    bytes: int
    modified: float
    state: LookState = "unread"
    reason: str = ""
    form: TraceForm | None = None
    start: float | None = None
    end: float | None = None
    rows: int | None = None
    sequences: int | None = None
    target: str = ""
    drafter: str = ""
    method: str = ""
    vllm: str = ""
    device: str = ""
    engines: int | None = None
    """Starts of engines."""
    workloads: list[str] = []
    text: bool = False
    """It holds prompts and answers."""
    notes: list[str] = []


class TracePlace(msgspec.Struct, frozen=True, kw_only=True):
    """A directory that was looked into. `left_out`: files that are no traces of specdeck's, or too many. `error`: why
    it can't be looked into."""

    path: str
    place: Literal["data", "here", "samples"]
    left_out: int = 0
    error: str = ""


class Traces(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `traces`. The samples come last; before them the newest file first."""

    traces: list[TraceLook]
    places: list[TracePlace]
    folder: str
    """Where a recording goes that is given a bare name. It need not be there yet."""
    looking: bool = False
    """More will be known soon: ask again."""


class RecordingBegin(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `recording_begin`, answered by a RecordingView. `path`: absolute, its ending says the form. `seconds`:
    it ends by itself after so long; None: when it is told to, at the latest after `LONGEST_SECONDS`. `replace`: a file
    of that name is replaced when the recording ends."""

    path: str
    seconds: float | None = None
    replace: bool = False


class RecordingEnd(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `recording_end`: write the recording that goes on. Answered at once, by a RecordingView that tells
    `writing`; snapshots tell the rest. `id`: only that one. `path`: write it there instead."""

    id: str | None = None
    path: str | None = None
    replace: bool = False


def form_of_name(path: str) -> RecordingForm | None:
    """The form that a recording of this name is written in; None: no name for one."""
    for form, ending in RECORDING_ENDINGS.items():
        if path.endswith(ending):
            return form
    return None


def name_fault(path: str) -> str | None:
    """Why no recording can have this path, with the remedy, whatever is there; None: one can."""
    name = path.rpartition("/")[2]
    if not path.isprintable():
        return "the name holds characters that can't be printed: use others"
    if form_of_name(name) is None or name in RECORDING_ENDINGS.values():
        return f"{name or 'that'} is no name of a trace: end it in .jsonl.zst, .jsonl or .parquet"
    if len(os.fsencode(name)) > LONGEST_NAME:
        return f"the name has {len(os.fsencode(name))} bytes: at most {LONGEST_NAME}"
    return None
