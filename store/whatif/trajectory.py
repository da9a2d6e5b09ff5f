"""K of every token of a record under mode adaptive, as its controller would have come to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Final

import numpy as np

from engine.records import PolicyMode
from engine.step_time.model import StepModel
from store.buckets import model_version
from store.counts import Ints
from store.load import Runner
from store.whatif.adaptive import SEED, Simulation
from store.whatif.chunk import Chunk
from store.whatif.figures import WhatIfError
from store.whatif.hazards import Hazards
from store.whatif.reading import Record, Rows
from store.whatif.texts import drawn_texts

MOST_ROWS: Final = 2_000_000
"""All texts are held at once, and each second of them takes the controller some milliseconds."""


class Trajectory:
    """K by position, the positions of all chunks one after the other.

    Raises:
        WhatIfError: too many rows to be simulated.
    """

    def __init__(self, mode: PolicyMode, record: Record, models: Mapping[Runner, StepModel], hazards: Hazards) -> None:
        rows = _all_rows(record)
        emitted = np.where(rows.decode, rows.emitted, 0)
        run_of = np.repeat(record.steps.run[rows.step], emitted)
        self._k = np.zeros(len(run_of), dtype=np.int64)
        self._batch_k = np.zeros(len(run_of), dtype=np.int64)
        tags = [bucket.workload for _, bucket in record.buckets]
        for place, run in enumerate(sorted(record.runs)):
            engine = record.runs[run]
            model = models.get(Runner(engine.engine, model_version(engine)))
            inside = np.flatnonzero(run_of == place)
            if not len(inside) or model is None or not engine.max_k:
                continue
            texts, at = drawn_texts(
                _take(rows, record.steps.run[rows.step] == place), record.steps, hazards, tags, SEED
            )
            k, batch_k = np.zeros(len(at), dtype=np.int64), np.zeros(len(at), dtype=np.int64)
            Simulation(mode, engine, model_version(engine), model, texts, k, batch_k).run()
            self._k[inside], self._batch_k[inside] = k[at], batch_k[at]

    def of_rows(self, chunk: Chunk) -> Ints:
        """K where each row starts; 0 for rows without a position."""
        emitted = np.where(chunk.rows.decode, chunk.rows.emitted, 0)
        first = chunk.before + np.cumsum(emitted) - emitted
        return np.where(emitted > 0, self._k[np.minimum(first, len(self._k) - 1)], 0)

    def of_positions(self, chunk: Chunk) -> tuple[Ints, Ints]:
        """K of each position's sequence, and the batch K, in the order of the chunk's layout."""
        at = chunk.before + chunk.laid.order
        return self._k[at], self._batch_k[at]


def _all_rows(record: Record) -> Rows:
    parts: list[Rows] = []
    for rows in record.chunks():
        parts.append(rows)
        if sum(map(len, parts)) > MOST_ROWS:
            raise WhatIfError(
                f"adaptive: more than {MOST_ROWS:,} rows would have to be simulated step by step; ask for a part with "
                "--from and --to"
            )
    if not parts:
        raise WhatIfError("no decode rows in this stretch: there are no steps to ask about")
    return Rows(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Rows)))


def _take(rows: Rows, where: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Rows:
    return Rows(*(getattr(rows, one.name)[where] for one in fields(Rows)))
