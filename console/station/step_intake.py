"""Steps of one engine process as they come in frames, made ready for the controller's observer once a second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from engine.deciding.observer import ObservedRows, ObservedSteps
from engine.frames import COLUMNS, ArrivedSequence, Frame, PackedStep
from store.buckets import TagBook
from store.counts import Ints
from store.rowbatch import impossible, unpack_columns

_COLUMN = {name: COLUMNS.index(name) for name in COLUMNS}


class Observed(NamedTuple):
    """What `Observer.add` takes."""

    steps: ObservedSteps
    rows: ObservedRows
    names: list[str]


class StepIntake:
    """Rows count under the same tags as in the store. Left out: rows that can't be, rows of sequences that nobody has
    introduced yet, and those of the `ignored` workloads."""

    def __init__(self, ignored: Iterable[str] = ()) -> None:
        self._tags = TagBook()
        self._ignored = frozenset(ignored)
        self._workloads: dict[int, str] = {}
        self._steps: list[PackedStep] = []
        self._rows: list[tuple[Ints, Ints]] = []
        """Of each step with rows: its matrix, and the place of each row's workload in `_names`."""
        self._places: dict[str, int] = {}
        self._running: Counter[str] = Counter()

    @property
    def running(self) -> Mapping[str, int]:
        """Sequences of each workload in the last step, without those that have finished in it or since."""
        return self._running

    def introduce(self, sequences: Iterable[ArrivedSequence]) -> None:
        for sequence in sequences:
            if sequence.seq not in self._workloads:
                self._workloads[sequence.seq] = self._tags.place(sequence.workload, sequence.ts)

    def serving_only(self, sequences: Iterable[ArrivedSequence]) -> None:
        """The engine has said which sequences it serves: the finish of any other one was lost."""
        serving = {sequence.seq for sequence in sequences}
        self._workloads = {seq: name for seq, name in self._workloads.items() if seq in serving}

    def take(self, frame: Frame) -> None:
        self.introduce(frame.sequences)
        if frame.step is not None:
            self._take_step(frame.step)
        for finish in frame.finishes:
            name = self._workloads.pop(finish.seq, None)
            if name is not None and self._running[name] > 0:
                self._running[name] -= 1

    def drain(self) -> Observed | None:
        """All that came since the last time; None for nothing."""
        if not self._steps:
            return None
        steps = ObservedSteps(
            number=np.array([step.step for step in self._steps], dtype=np.int64),
            ts=np.array([step.ts for step in self._steps]),
            duration_ms=np.array([step.duration_ms for step in self._steps]),
            probe=[step.probe for step in self._steps],
        )
        names = list(self._places)
        matrix = np.concatenate([matrix for matrix, _ in self._rows], axis=1)
        rows = ObservedRows(
            step=np.repeat(np.arange(len(self._rows)), [matrix.shape[1] for matrix, _ in self._rows]),
            workload=np.concatenate([places for _, places in self._rows]),
            sequence=matrix[_COLUMN["seq"]],
            **{name: matrix[_COLUMN[name]] for name in _TAKEN},
        )
        self._steps, self._rows, self._places = [], [], {}
        return Observed(steps, rows, names)

    def _take_step(self, step: PackedStep) -> None:
        matrix = unpack_columns(step.columns, step.count)
        names = [self._workloads.get(seq) for seq in matrix[_COLUMN["seq"]].tolist()]
        self._running = Counter(name for name in names if name is not None)
        kept = np.array([name is not None and name not in self._ignored for name in names], dtype=bool)
        kept &= impossible(matrix) == 0
        places = [
            self._places.setdefault(name, len(self._places))
            for name, keep in zip(names, kept.tolist(), strict=True)
            if keep and name is not None
        ]
        self._steps.append(step)
        self._rows.append((matrix[:, kept], np.array(places, dtype=np.int64)))


_TAKEN = ("k_asked", "limit", "drafted", "accepted", "emitted", "context", "cause")
