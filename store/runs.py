"""Who a row belongs to: runs of engines, and the sequences that each run has introduced by a handle.

Handles are unique within one boot of one engine. They are learnt from arrivals and announcements, and forgotten a
while after the sequence has finished: its last rows may still be on the way.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

import numpy as np

from engine.records import EngineRecord, PolicyMode
from store.buckets import BucketBook, model_version
from store.counts import Ints

LINGER_SECONDS: Final = 15.0
"""Record time that a row of an unknown sequence waits, and that a finished sequence is remembered."""


@dataclass
class Known:
    """A sequence that a handle stands for."""

    sequence: int
    """Global id."""
    workload: str
    """Tag as counted."""
    temperature: str
    """Temperature label."""
    frame: int
    """Number of the frame that introduced it: an older announcement says nothing about it."""
    klass: int = -1
    """Class in the bucket book; −1 until the engine record is known."""
    attributed: bool = True
    finished: bool = False


class EngineRun:
    """One process of one engine, and its handles."""

    def __init__(self, number: int, engine: str, boot: str) -> None:
        self.number = number
        self.engine = engine
        self.boot = boot
        self.record: EngineRecord | None = None
        self.stored = False
        """Its record is in the store, or on the way there."""
        self.adopted = False
        """An earlier station recorded part of it."""
        self.last_frame: int | None = None
        self.last_ts: float | None = None
        self.announced: tuple[int, float] | None = None
        """Frame number of the last announcement and when it came."""
        self.handles: dict[int, Known] = {}
        self.placeholder = False
        """`record` stands in for one that never came."""
        self._names: dict[str, int] = {}
        self._named: list[str] = []
        self.live = 0
        """Sequences that have not finished."""
        self._leaving: deque[tuple[float, int]] = deque()
        self._sorted: tuple[Ints, Ints, Ints] | None = None

    def introduce(self, handle: int, known: Known, book: BucketBook) -> None:
        """From now on `handle` stands for `known`."""
        if self.record is not None:
            known.klass = self._class_of(known, self.record, book)
        before = self.handles.get(handle)
        self.live += before is None or before.finished
        self.handles[handle] = known
        self._sorted = None

    def handle_of(self, name: str) -> int:
        """The handle of a name in a trace; a new one for a new name."""
        handle = self._names.get(name)
        if handle is None:
            self._named.append(name)
            handle = self._names[name] = len(self._named)
        return handle

    def name_of(self, handle: int) -> str:
        """The name under which a handle is stored: its name in the trace, or the handle itself."""
        return self._named[handle - 1] if self._named else str(handle)

    def leave(self, handle: int, ts: float) -> None:
        """Forget `handle` once `LINGER_SECONDS` of record time have passed."""
        known = self.handles.get(handle)
        if known is not None and not known.finished:
            known.finished = True
            self.live -= 1
            self._leaving.append((ts + LINGER_SECONDS, handle))

    def forget(self, clock: float) -> list[int]:
        """Drop the handles whose time has come; their sequences."""
        gone = []
        while self._leaving and self._leaving[0][0] < clock:
            _, handle = self._leaving.popleft()
            known = self.handles.get(handle)
            if known is not None and known.finished:
                gone.append(known.sequence)
                del self.handles[handle]
                self._sorted = None
        return gone

    def classify(self, book: BucketBook) -> None:
        """Find the class of every sequence anew: the engine record has become known."""
        if self.record is not None:
            for known in self.handles.values():
                known.klass = self._class_of(known, self.record, book)
            self._sorted = None

    def _class_of(self, known: Known, record: EngineRecord, book: BucketBook) -> int:
        return book.class_of(self.engine, known.workload, known.temperature, model_version(record))

    def lookup(self, handles: Ints) -> tuple[Ints, Ints]:
        """Global sequence and class of each handle; −1 where one of them is not known yet."""
        if self._sorted is None:
            order = sorted(self.handles)
            self._sorted = (
                np.array(order, dtype=np.int64),
                np.array([self.handles[handle].sequence for handle in order], dtype=np.int64),
                np.array([self.handles[handle].klass for handle in order], dtype=np.int64),
            )
        known, sequences, classes = self._sorted
        if not len(known):
            nothing = np.full(len(handles), -1, dtype=np.int64)
            return nothing, nothing
        place = np.minimum(np.searchsorted(known, handles), len(known) - 1)
        found = known[place] == handles
        return np.where(found, sequences[place], -1), np.where(found, classes[place], -1)


def unknown_engine(engine: str, boot: str, ts: float) -> EngineRecord:
    """Stands in for an engine that sent rows and never said what it is."""
    return _stand_in(engine, boot, ts, "unknown", "the engine never announced itself")


def observed_engine(engine: str, boot: str, ts: float, model: str | None) -> EngineRecord:
    """Stands in for an engine of which only somebody else's counters are known."""
    return _stand_in(engine, boot, ts, model or "unknown", "only its counters are known")


def _stand_in(engine: str, boot: str, ts: float, target: str, why: str) -> EngineRecord:
    nothing = PolicyMode(mode="off", reason=why)
    return EngineRecord(
        engine=engine, ts=ts, vllm="unknown", target=target, drafter="unknown", method="none", max_k=0,
        batch_k="free", max_num_seqs=0, data_parallel_size=1, device="unknown", async_scheduling=False,
        configured=nothing, resolved=nothing, boot=boot,
    )  # fmt: skip
