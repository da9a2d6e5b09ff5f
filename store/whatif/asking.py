"""Asks policies of a record: chunk by chunk of whole sequences, all policies over each chunk."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import duckdb

from engine.records import PolicyMode
from engine.step_time.model import StepModel
from store import progress
from store.load import Runner
from store.report import recorded_time
from store.step_models import step_models
from store.whatif.answer import answer
from store.whatif.chunk import Chunk
from store.whatif.figures import WhatIf, WhatIfError
from store.whatif.hazards import Hazards
from store.whatif.lengths import Lengths, acting, checked
from store.whatif.reading import Record
from store.whatif.sums import Asked, Known
from store.whatif.trajectory import Trajectory


def asked(
    connection: duckdb.DuckDBPyConnection, policies: Sequence[PolicyMode], start: float | None, end: float | None
) -> list[WhatIf]:
    """See `store.whatif.what_if`."""
    modes = [checked(mode) for mode in policies]
    since, kept_from = -math.inf if start is None else start, progress.up_to(connection, progress.RAW_FROM)
    record = Record(connection, max(since, kept_from), math.inf if end is None else end)
    models = step_models(connection)
    hazards = Hazards([bucket for _, bucket in record.buckets], record.joint())
    known = Known(record, kept_from if max(since, 0.0) < kept_from else None)
    questions = [Asked(mode, _lengths(mode, record, models, hazards), record, models) for mode in modes]
    before = 0
    for rows in record.chunks():
        chunk = Chunk(rows, record.steps, hazards, before)
        before += len(chunk.row)
        known.add(chunk)
        for question in questions:
            question.add(chunk)
    if not known.rows.any():
        raise WhatIfError("no decode rows in this stretch: there are no steps to ask about")
    _, seconds = recorded_time(connection, record.start, record.end)
    known.close(models, seconds or 0.0)
    return [answer(question, known, record, hazards) for question in questions]


def _lengths(
    mode: PolicyMode, record: Record, models: Mapping[Runner, StepModel], hazards: Hazards
) -> Lengths | Trajectory:
    if acting(mode):
        return Trajectory(mode, record, models, hazards)
    return Lengths(mode, record.runs, record.steps)


__all__ = ["asked"]
