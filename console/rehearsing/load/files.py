"""The files of a pass that the load process reads and writes."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from store.rehearsal.records import DrawnRequest, Outcome


class Unwritable(Exception):
    """Outcomes could not be written: says where and why."""


def read_requests(path: Path) -> list[DrawnRequest]:
    """Those of a `requests.jsonl`, in the order of their moments.

    Raises:
        ValueError: it cannot be read, or a line is not a request; names it.
    """
    requests, decode = [], msgspec.json.Decoder(DrawnRequest).decode
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        try:
            requests.append(decode(line))
        except msgspec.DecodeError as error:
            raise ValueError(f"{path}: line {number}: {error}") from None
    return sorted(requests, key=lambda request: request.at)


class OutcomeFile:
    """`outcomes.jsonl`, begun anew. Each line is in the file before the next one is begun: a process that is killed
    leaves whole lines."""

    def __init__(self, path: Path) -> None:
        """Raises Unwritable."""
        self._path = path
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Unwritable(f"{path}: {error.strerror}") from error

    def write(self, outcome: Outcome) -> None:
        """Raises Unwritable."""
        line = msgspec.json.encode(outcome) + b"\n"
        try:
            while line:
                line = line[os.write(self._file, line) :]
        except OSError as error:
            raise Unwritable(f"{self._path}: {error.strerror}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)
