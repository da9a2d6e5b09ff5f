"""Steps of JSONL decoded without an object a row, and put together into blocks, many steps at once."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, count
from typing import Final

import msgspec
import numpy as np

from engine.frames import CAUSE_CODE, COLUMNS, LIMIT_CODE, UNKNOWN
from engine.records import Cause, Limit, Probe, Record, Row, StepRecord
from store.counts import Ints
from store.record_tables import PROBES
from store.rowbatch import CAUSE, LIMIT, SEQ
from store.step_block import NO_PROBE, WHOLE_FACTS, StepBlock, named_places, sound
from store.trace.entries import Entry

_Row = tuple[str, int, Limit, int | None, int, int, int, int, int, Cause]


class LooseStep(msgspec.Struct, frozen=True, tag="step", tag_field="type", forbid_unknown_fields=True, gc=False):
    """A `StepRecord` with its rows as tuples. `gc`: of it nothing can lead back to it."""

    engine: str
    frame: int
    step: int
    ts: float
    duration_ms: float
    k_verify: int
    k_draft: int
    running: int
    waiting: int
    rows: list[_Row]
    prefill_tokens: int = 0
    probe: Probe | None = None
    policy: int = 0
    limit_draft: Limit = "static"

    def record(self) -> StepRecord:
        return StepRecord(
            self.engine, self.frame, self.step, self.ts, self.duration_ms, self.k_verify, self.k_draft, self.running,
            self.waiting, [Row(*row) for row in self.rows], self.prefill_tokens, self.probe, self.policy,
            self.limit_draft,
        )  # fmt: skip


_PROBE_CODE: Final[dict[Probe | None, int]] = {None: NO_PROBE, **{name: code for code, name in enumerate(PROBES)}}
_STARTS: Final = (b'{"type":"step"', b'{"type": "step"')
_steps: Final = msgspec.json.Decoder(LooseStep)


def quick_step(line: bytes) -> LooseStep | None:
    """The step that a line holds; None where it is anything else, or needs a closer look."""
    if not line.startswith(_STARTS):
        return None
    try:
        return _steps.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def in_blocks(chunk: Sequence[tuple[float, int, Record | LooseStep]]) -> Iterator[Entry]:
    """The same entries in the same order, the steps of each engine in one block as far as their numbers allow."""
    mine: dict[str, list[LooseStep]] = {}
    for _, _, what in chunk:
        if isinstance(what, LooseStep):
            mine.setdefault(what.engine, []).append(what)
    blocks = {engine: (_block(engine, steps), count()) for engine, steps in mine.items()}
    for ts, number, what in chunk:
        if not isinstance(what, LooseStep):
            yield ts, number, what, 0
            continue
        block, places = blocks[what.engine]
        if block is not None:
            yield ts, number, block, next(places)
        else:
            yield ts, number, what.record(), 0


def _block(engine: str, steps: Sequence[LooseStep]) -> StepBlock | None:
    """None: there is a step among them that no array can hold, or that is impossible."""
    facts = dict(zip(LooseStep.__struct_fields__, zip(*map(msgspec.structs.astuple, steps), strict=True), strict=True))
    try:
        whole = {name: np.array(facts[name], dtype=np.int64) for name in WHOLE_FACTS}
    except OverflowError:
        return None
    ts, duration_ms = np.array(facts["ts"]), np.array(facts["duration_ms"])
    if not sound(ts, duration_ms, whole).all():
        return None
    names, matrix = _matrix(list(chain.from_iterable(facts["rows"])))
    return StepBlock(
        engine, names, ts, duration_ms, whole, np.array([_PROBE_CODE[probe] for probe in facts["probe"]]),
        np.array([LIMIT_CODE[limit] for limit in facts["limit_draft"]]),
        np.array([0, *accumulate(map(len, facts["rows"]))]), matrix,
    )  # fmt: skip


def _matrix(rows: Sequence[_Row]) -> tuple[list[str], Ints]:
    """Names of the sequences, and the rows with places in them."""
    matrix = np.empty((len(COLUMNS), len(rows)), dtype=np.int64)
    names: list[str] = []
    for place, column in enumerate(zip(*rows, strict=True)):
        if place == SEQ:
            names, matrix[place] = named_places(column)
        elif place == LIMIT:
            matrix[place] = list(map(LIMIT_CODE.__getitem__, column))
        elif place == CAUSE:
            matrix[place] = list(map(CAUSE_CODE.__getitem__, column))
        else:
            matrix[place] = _numbers(column)
    return names, matrix


def _numbers(column: Sequence[int | None]) -> Ints:
    """What is beyond 2⁶² is cut there: it is impossible either way."""
    try:
        # `struct` takes a third of the time that numpy takes for a sequence of Python's integers.
        return np.frombuffer(struct.pack(f"<{len(column)}q", *column), dtype="<i8").astype(np.int64, copy=False)
    except struct.error:
        known: Iterable[int] = (UNKNOWN if value is None else value for value in column)
        return np.array([max(-_CLAMP, min(_CLAMP, value)) for value in known], dtype=np.int64)


_CLAMP: Final = 2**62
