"""Takes the records of others into a store: `specdeck import`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from pathlib import Path
from typing import Literal, get_args

import msgspec

from engine.records import SequenceRecord
from store.imports.prometheus import read_dumps
from store.imports.vllm_log import read_logs
from store.imports.vllm_response import read_responses
from store.ingest import Ingest

Kind = Literal["vllm-response", "prometheus", "vllm-log"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class ImportResult(msgspec.Struct, frozen=True):
    """What was taken in."""

    sequences: int
    observations: int
    notes: list[str]


def import_files(
    ingest: Ingest,
    kind: Kind,
    files: Sequence[Path],
    *,
    at: Sequence[float] = (),
    year: int | None = None,
    zone: tzinfo | None = None,
) -> ImportResult:
    """Read all of `files` first, then take them in and close `ingest`: a file that can't be read changes nothing.

    Args:
        at: for Prometheus dumps, when each was read, Unix seconds; else by the file's name.
        year: for logs, of each file's first line; else by the time the file was last written.
        zone: of times without one; None is local time.

    Raises:
        ImportFailed: a file can't be read; names it, the line and what to do.
        StoreError: the store can't be written.
    """
    if kind == "vllm-response":
        imported, sequences = read_responses(files), 0
        times: list[float] = []
        for record in imported.records:
            ingest.record(record)
            times.append(record.ts)
            sequences += isinstance(record, SequenceRecord)
        result = ImportResult(sequences, 0, imported.notes)
    else:
        found = read_dumps(files, at, zone) if kind == "prometheus" else read_logs(files, year, zone)
        for observation in found.observations:
            ingest.observation(observation)
        times = [moment for one in found.observations for moment in (one.since, one.ts)]
        result = ImportResult(0, len(found.observations), found.notes)
    for note in result.notes:
        ingest.note(note, min(times, default=None), max(times, default=None))
    ingest.close()
    return result
