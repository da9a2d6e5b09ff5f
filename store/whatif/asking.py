"""Asks policies of a record: chunk by chunk of whole sequences, all policies over each chunk."""

from __future__ import annotations

import math
from collections.abc import Sequence

import duckdb

from engine.records import PolicyMode
from store import progress
from store.report import recorded_time
from store.step_models import step_models
from store.whatif.answer import answer
from store.whatif.chunk import Chunk
from store.whatif.figures import WhatIf, WhatIfError
from store.whatif.hazards import Hazards
from store.whatif.lengths import checked
from store.whatif.reading import Record
from store.whatif.sums import Asked, Known


def asked(
    connection: duckdb.DuckDBPyConnection, policies: Sequence[PolicyMode], start: float | None, end: float | None
) -> list[WhatIf]:
    """See `store.whatif.what_if`."""
    modes = [checked(mode) for mode in policies]
    since = max(-math.inf if start is None else start, progress.up_to(connection, progress.RAW_FROM))
    record = Record(connection, since, math.inf if end is None else end)
    models = step_models(connection)
    hazards = Hazards([bucket for _, bucket in record.buckets], record.joint())
    known = Known(record)
    questions = [Asked(mode, record, models) for mode in modes]
    for rows in record.chunks():
        chunk = Chunk(rows, record.steps, hazards)
        known.add(chunk)
        for question in questions:
            question.add(chunk)
    if not known.rows.any():
        raise WhatIfError("no decode rows in this stretch: there are no steps to ask about")
    _, seconds = recorded_time(connection, record.start, record.end)
    known.close(models, seconds or 0.0)
    return [answer(question, known, record, hazards) for question in questions]


__all__ = ["asked"]
