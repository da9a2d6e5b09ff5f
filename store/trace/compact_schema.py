"""The compact form of a trace: one Parquet file, one row a record, in the order of the file.

A step's facts are columns and its rows are columns of lists, all of one length, as in the JSONL form. Every other
record, and a step with a number that no column holds, is JSON in `record`. SQL reads it as it is:

    SELECT ts, unnest(seq) AS seq, unnest(drafted) AS drafted, unnest(accepted) AS accepted FROM 'run.parquet'
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from store.step_block import WHOLE_FACTS

FORMAT_KEY: Final = b"specdeck.trace"
"""Key of the file's metadata whose value is the version of the form."""
ABOUT_KEY: Final = b"specdeck.about"
NOTES_KEY: Final = b"specdeck.notes"
FORMAT: Final = 1
ABOUT: Final = (
    "A trace of specdeck: one row a record. Of a step, `ts` is its end in Unix seconds, `seq` to `cause` are its rows: "
    "one element a sequence, tokens. Other records are JSON in `record`."
)

NAME: Final = pa.dictionary(pa.int32(), pa.string())
SEQUENCE: Final = "seq"
ROW_NAMES: Final = ("limit", "cause")
"""Columns of a row whose values are named."""
ROW_NUMBERS: Final = ("k_asked", "proposed", "drafted", "invalid", "accepted", "emitted", "context")

SCHEMA: Final = pa.schema(
    [
        ("type", NAME),
        ("ts", pa.float64()),
        ("engine", NAME),
        ("duration_ms", pa.float64()),
        *((name, pa.int64()) for name in WHOLE_FACTS),
        ("probe", NAME),
        ("limit_draft", NAME),
        (SEQUENCE, pa.list_(NAME)),
        *((name, pa.list_(NAME)) for name in ROW_NAMES),
        *((name, pa.list_(pa.int32())) for name in ROW_NUMBERS),
        ("record", pa.string()),
    ]
)
