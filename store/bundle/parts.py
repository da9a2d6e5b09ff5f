"""Makes the parts of a bundle from what they are of, redacted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import msgspec

from store.redact.redactor import Redactor
from store.trace import TraceWriter, read_records

LOG_BYTES: Final = 2 << 20
"""Of a log, as many bytes from its end."""


def redact_trace(raw: Path, out: Path, redactor: Redactor) -> Path:
    """Write the records of the trace `raw` to `out`, redacted. The redactor has learnt from them before: `learn_trace`.

    Raises:
        TraceError: `raw` can't be read.
    """
    with TraceWriter(out) as writer:
        for record in read_records(raw):
            redacted = redactor.record(record)
            if redacted is not None:
                writer.write(redacted)
    return out


def learn_trace(raw: Path, redactor: Redactor) -> None:
    """Let the redactor meet what the trace names. Raises TraceError."""
    for record in read_records(raw):
        redactor.learn(record)


def json_part(value: Any, redactor: Redactor) -> bytes:
    """A value that msgspec knows, redacted, as JSON for reading."""
    return msgspec.json.format(msgspec.json.encode(redactor.value(msgspec.to_builtins(value)))) + b"\n"


def log_part(log: Path, redactor: Redactor, limit: int = LOG_BYTES) -> bytes:
    """The last `limit` bytes of a log in whole lines, redacted: a rule can't know what half a line was about.

    Raises:
        OSError: it can't be read.
    """
    with log.open("rb") as file:
        start = max(0, file.seek(0, os.SEEK_END) - limit)
        file.seek(start)
        data = file.read(limit)
    if start:
        data = data.partition(b"\n")[2]
    return redactor.text(data.decode("utf-8", "replace")).encode()
