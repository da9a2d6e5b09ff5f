"""Traces: the records of a run as a file, in the order of their time.

JSONL, one object a line, is the readable form: plain, zstd-compressed or inside a bundle (`store.bundle`). The compact
form is one Parquet file. They are told apart by content, and hold the same records.

Unknown fields of JSONL are ignored and counted. An unknown type or a broken line is an error with its line number; a
half-written last line is dropped with a note. Records that are out of order by up to a second are sorted.

Prompts and answers are in a trace only where a recording was asked for them (`store.trace.texts`).
"""

from __future__ import annotations

from store.trace.errors import TraceError
from store.trace.forms import BUNDLED_TRACE
from store.trace.info import TraceInfo, trace_info
from store.trace.notes import TraceNotes
from store.trace.order import SORTED_SECONDS
from store.trace.reading import Steps, file_records, read_pieces, read_records
from store.trace.writing import TraceWriter

__all__ = [
    "BUNDLED_TRACE",
    "SORTED_SECONDS",
    "Steps",
    "TraceError",
    "TraceInfo",
    "TraceNotes",
    "TraceWriter",
    "file_records",
    "read_pieces",
    "read_records",
    "trace_info",
]
