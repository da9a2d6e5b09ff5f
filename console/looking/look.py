"""What is in one file: its beginning, which takes milliseconds, or all of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from console.feed.traces import TraceLook
from engine.records import EngineRecord, SequenceRecord, StepRecord
from store.database import StoreBusy, StoreError
from store.source import is_database
from store.trace import TraceError, file_records, trace_info
from store.trace.forms import form_of
from store.trace.texts import is_mark

if TYPE_CHECKING:
    import duckdb

BEGINNING: Final = 500
"""Records that are read of a file at first: an engine and a step are among them."""
MOST_WORKLOADS: Final = 8


def look(file: TraceLook, whole: bool) -> TraceLook | None:
    """`file` with what is in it; None: it is no trace of specdeck's, and so none of our business."""
    path = Path(file.path)
    try:
        if is_database(path):
            return _store(file) if whole else replace(file, state="begun", form="store")
        file = replace(file, form=form_of(path))
        return _whole(file) if whole else _begun(file)
    except StoreBusy as error:
        who = f"process {error.pid}" if error.pid is not None else "another process"
        return replace(file, state="held", reason=f"{who} has it open", form="store")
    except StoreError as error:
        return _broken(file, reason_of(error, file.path))
    except Exception as error:  # a file can hold anything
        return _broken(file, next(iter(str(error).splitlines()), "") or type(error).__name__)


def reason_of(error: StoreError, path: str) -> str:
    """What is wrong, without the path that stands beside it: `line 17: no type`."""
    text = str(error).removeprefix(path)
    found = re.match(r":(\d+): ", text)
    return f"line {found[1]}: {text[found.end() :]}" if found else text.removeprefix(": ")


def _broken(file: TraceLook, reason: str) -> TraceLook:
    return replace(file, state="broken", reason=reason)


def _begun(file: TraceLook) -> TraceLook | None:
    engine: EngineRecord | None = None
    workloads: dict[str, None] = {}
    start, text = None, False
    try:
        for record in islice(file_records(file.path), BEGINNING):
            if isinstance(record, EngineRecord):
                engine = record
            elif isinstance(record, SequenceRecord):
                workloads[record.workload or "untagged"] = None
            elif isinstance(record, StepRecord):
                start = record.ts - record.duration_ms / 1000
                break
            text = text or is_mark(record)
    except TraceError as error:
        foreign = engine is None and (error.foreign or error.line is not None)
        if foreign and file.place == "here":
            return None
        return _broken(_named(file, [engine] if engine else []), reason_of(error, file.path))
    return replace(
        _named(file, [engine] if engine else []), state="begun", start=start, text=text, engines=None,
        workloads=list(workloads)[:MOST_WORKLOADS],
    )  # fmt: skip


def _whole(file: TraceLook) -> TraceLook:
    found = trace_info(file.path)
    workloads = sorted(found.workloads, key=lambda tag: -found.workloads[tag])
    return replace(
        _named(file, found.engines), state="known", start=found.start, end=found.end, rows=found.rows,
        sequences=found.sequences, text=file.text or found.texts > 0, notes=found.notes,
        workloads=workloads[:MOST_WORKLOADS],
    )  # fmt: skip


def _store(file: TraceLook) -> TraceLook:
    """A store that nobody holds: the same from its tables."""
    from store.database import Store
    from store.gather import rows_ever
    from store.moments import played_span

    with Store.open(file.path, create=False, read_only=True) as store:
        span = played_span(store.connection)
        engines = _engines(store.connection)
        (sequences,) = store.connection.execute("SELECT count(*) FROM sequences").fetchall()[0]
        rows = rows_ever(store.connection)
    return replace(
        _named(file, engines), state="known", form="store", rows=rows, sequences=int(sequences),
        start=None if span is None else span.start, end=None if span is None else span.end,
    )  # fmt: skip


def _engines(connection: duckdb.DuckDBPyConnection) -> list[EngineRecord]:
    import msgspec

    found: list[tuple[Any, ...]] = connection.execute("SELECT record FROM engines ORDER BY id").fetchall()
    return [msgspec.json.decode(text, type=EngineRecord) for (text,) in found]


def _named(file: TraceLook, engines: Sequence[EngineRecord]) -> TraceLook:
    """The last engine names the models."""
    if not engines:
        return file
    last = engines[-1]
    return replace(
        file, target=last.target, drafter=last.drafter, method=last.method, vllm=last.vllm, device=last.device,
        engines=len(engines),
    )  # fmt: skip
