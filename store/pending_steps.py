"""Steps that came in blocks and wait to be worked on, many at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from store.counts import Floats, Ints
from store.rowbatch import SEQ, RawRows, facts_of_steps
from store.runs import EngineRun
from store.step_block import NO_PROBE, StepBlock, rounded

StepValues = tuple[Any, ...]
"""Values of the columns of `steps`."""


class _Part(NamedTuple):
    """Steps that follow each other in a block. `number`: of the first one, in the store."""

    block: StepBlock
    start: int
    stop: int
    number: int


class PendingSteps:
    def __init__(self) -> None:
        self._parts: dict[int, tuple[EngineRun, list[_Part]]] = {}
        self.rows = 0
        """Rows of the steps that wait."""

    def put(self, run: EngineRun, block: StepBlock, start: int, stop: int, number: int) -> None:
        parts = self._parts.setdefault(run.number, (run, []))[1]
        self.rows += block.rows(start, stop)
        if parts:
            last = parts[-1]
            if last.block is block and last.stop == start and last.number + last.stop - last.start == number:
                parts[-1] = _Part(block, last.start, stop, last.number)
                return
        parts.append(_Part(block, start, stop, number))

    def take(self) -> Iterator[tuple[EngineRun, Iterable[StepValues], RawRows]]:
        """All that waits, of each run in the order it came: what the store keeps of the steps, and their rows."""
        waiting, self._parts, self.rows = self._parts, {}, 0
        for run, parts in waiting.values():
            for _, group in groupby(parts, key=lambda part: id(part.block)):
                yield run, *_worked_out(run, list(group))


def _worked_out(run: EngineRun, parts: Sequence[_Part]) -> tuple[Iterable[StepValues], RawRows]:
    block = parts[0].block
    steps = np.concatenate([np.arange(part.start, part.stop) for part in parts])
    number = np.concatenate([np.arange(part.number, part.number + part.stop - part.start) for part in parts])
    counts = block.starts[steps + 1] - block.starts[steps]
    starts = np.concatenate([[0], np.cumsum(counts)])
    matrix = _rows_of(block, parts)
    matrix[SEQ] = np.array([run.handle_of(name) for name in block.names] or [0], dtype=np.int64)[matrix[SEQ]]
    ts, duration_ms = block.clock[steps], rounded(block.duration_ms[steps], 3)
    facts, verified = facts_of_steps(matrix, starts, duration_ms, block.whole["prefill_tokens"][steps])
    raw = RawRows(matrix, np.repeat(number, counts), np.repeat(ts, counts), np.repeat(facts, counts, axis=1))
    return _values(run, block, steps, number, ts, duration_ms, facts, verified), raw


def _rows_of(block: StepBlock, parts: Sequence[_Part]) -> Ints:
    """A copy: it is going to be changed."""
    if len(parts) == 1:
        return block.matrix[:, block.starts[parts[0].start] : block.starts[parts[0].stop]].copy()
    places = [np.arange(block.starts[part.start], block.starts[part.stop]) for part in parts]
    return block.matrix[:, np.concatenate(places)]


def _values(
    run: EngineRun, block: StepBlock, steps: Ints, number: Ints, ts: Floats, duration_ms: Floats, facts: Ints,
    verified: Ints,
) -> Iterable[StepValues]:  # fmt: skip
    whole = {name: values[steps].tolist() for name, values in block.whole.items()}
    probes = [None if probe == NO_PROBE else probe for probe in block.probe[steps].tolist()]
    return zip(
        number.tolist(), [run.number] * len(steps), whole["frame"], whole["step"], ts.tolist(), duration_ms.tolist(),
        whole["k_verify"], whole["k_draft"], whole["running"], whole["waiting"], whole["prefill_tokens"], probes,
        whole["policy"], block.limit_draft[steps].tolist(), facts[1].tolist(), verified.tolist(), facts[2].tolist(),
        strict=True,
    )  # fmt: skip
