"""Which bucket a row belongs to: workload × context length × temperature × model version (design §8)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from engine.records import EngineRecord

UNTAGGED: Final = "untagged"
OTHER: Final = "other"
CALIBRATION: Final = "specdeck-calibration"
"""The tag of specdeck's own requests, by which it measures step times: recorded, and left out of the live picture."""
UNATTRIBUTED: Final = "unattributed"
"""Rows whose sequence nobody introduced."""
UNKNOWN_TEMPERATURE: Final = "unknown"

TAG_LIMIT: Final = 64
TAG_IDLE_SECONDS: Final = 3600.0
TAG_LENGTH_LIMIT: Final = 256
_RESERVED: Final = frozenset((UNTAGGED, OTHER, UNATTRIBUTED))


class Edges(msgspec.Struct, frozen=True):
    """Bucket edges, ascending. Contexts are tokens, half open; temperatures close their range at the upper edge."""

    context: tuple[int, ...] = (512, 2048, 8192, 32768)
    temperature: tuple[float, ...] = (0.0, 0.5, 1.0)

    def context_labels(self) -> list[str]:
        """`0-512`, …, `32768+` for the default edges."""
        starts = (0, *self.context)
        return [
            f"{start}-{end}" for start, end in zip(starts, self.context, strict=False)
        ] + [f"{starts[-1]}+"]  # fmt: skip

    def context_label(self, context: int) -> str:
        return self.context_labels()[bisect_right(self.context, context)]

    def temperature_labels(self) -> list[str]:
        """`0`, `(0,0.5]`, `(0.5,1]`, `>1` for the default edges."""
        edges = [f"{edge:g}" for edge in self.temperature]
        return [edges[0], *(f"({low},{high}]" for low, high in pairwise(edges)), f">{edges[-1]}"]

    def temperature_label(self, temperature: float | None) -> str:
        if temperature is None or temperature != temperature:
            return UNKNOWN_TEMPERATURE
        place = next((i for i, edge in enumerate(self.temperature) if temperature <= edge), len(self.temperature))
        return self.temperature_labels()[place]


DEFAULT_EDGES: Final = Edges()


def model_version(record: EngineRecord) -> str:
    """The identity of what an engine runs: `target | drafter | method | vllm version`."""
    return " | ".join((record.target, record.drafter, record.method, f"vllm {record.vllm}"))


def short_version(version: str) -> str:
    """A model version for narrow places: target and drafter without what follows an `@`."""
    parts = [part.split("@", 1)[0].rsplit("/", 1)[-1] for part in version.split(" | ")]
    return " + ".join(parts[:2])


def bucket_order(
    workload: str | None, context: str | None, temperature: str | None, version: str | None
) -> tuple[bool, str, float, float, str, str]:
    """Sorts buckets: tags before untagged and the rest, then ascending contexts and temperatures. None: pooled."""
    return (
        workload in _RESERVED,
        workload or "",
        _first_number(context),
        _first_number(temperature),
        temperature or "",
        version or "",
    )


def _first_number(label: str | None) -> float:
    """The lower edge that a label names; what names none comes last."""
    found = re.search(r"[0-9.]+", label or "0")
    if found is None:
        return float("inf")
    return float(found.group()) if label != "0" else -1.0


class TagBook:
    """Hands out the places for workload tags: configured ones always have one, the others first come.

    A tag that was idle for an hour gives its place up when another needs it. Tags are data: kept literally, cut at
    256 characters. Times are record time, Unix seconds.
    """

    def __init__(self, configured: Iterable[str] = (), *, limit: int = TAG_LIMIT) -> None:
        self._configured = frozenset(configured)
        self._limit = limit
        self._last_used: dict[str, float] = {}

    def place(self, tag: str | None, ts: float) -> str:
        """The name under which a sequence with this tag counts from now on."""
        if not tag:
            return UNTAGGED
        tag = tag[:TAG_LENGTH_LIMIT]
        if tag in _RESERVED or tag in self._configured:
            return tag
        if tag not in self._last_used and len(self._last_used) >= self._free() and not self._evict(ts):
            return OTHER
        self.touch(tag, ts)
        return tag

    def touch(self, tag: str, ts: float) -> None:
        """A sequence or row of this tag was seen."""
        if tag not in _RESERVED and tag not in self._configured:
            self._last_used[tag] = max(ts, self._last_used.get(tag, ts))

    def _free(self) -> int:
        return max(0, self._limit - len(self._configured))

    def _evict(self, ts: float) -> bool:
        if not self._last_used:
            return False
        idlest = min(self._last_used, key=self._last_used.__getitem__)
        if ts - self._last_used[idlest] < TAG_IDLE_SECONDS:
            return False
        del self._last_used[idlest]
        return True


BucketName = tuple[str, str, str, str, str]
"""Engine, workload, context, temperature, model version."""


class BucketBook:
    """Numbers buckets as they first occur. A *class* is everything of a bucket that a sequence fixes for good:
    engine, workload, temperature and model version; with a row's context it gives the bucket."""

    def __init__(self, edges: Edges = DEFAULT_EDGES, known: Sequence[tuple[int, BucketName]] = ()) -> None:
        self.edges = edges
        self._labels = edges.context_labels()
        self._edges = np.asarray(edges.context, dtype=np.int64)
        self._ids: dict[BucketName, int] = {name: number for number, name in known}
        self.names: dict[int, BucketName] = dict(known)
        self._next = max(self.names, default=-1) + 1
        self._classes: dict[tuple[str, str, str, str], int] = {}
        self._class_keys: list[tuple[str, str, str, str]] = []
        self._table: npt.NDArray[np.int64] = np.full((0, len(self._labels)), -1, dtype=np.int64)

    def class_of(self, engine: str, workload: str, temperature: str, version: str) -> int:
        key = (engine, workload, temperature, version)
        found = self._classes.get(key)
        if found is None:
            found = self._classes[key] = len(self._class_keys)
            self._class_keys.append(key)
            self._table = np.vstack((self._table, np.full((1, len(self._labels)), -1, dtype=np.int64)))
        return found

    def workload_of(self, klass: int) -> str:
        return self._class_keys[klass][1]

    def buckets(
        self, classes: npt.NDArray[np.int64], contexts: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], list[int]]:
        """Bucket of each row, given its class and its context in tokens, and which buckets are new."""
        ranges = np.searchsorted(self._edges, contexts, side="right")
        found = self._table[classes, ranges]
        if not (found < 0).any():
            return found, []
        new: list[int] = []
        for klass, place in {(int(k), int(p)) for k, p in zip(classes[found < 0], ranges[found < 0], strict=True)}:
            self._table[klass, place] = self._bucket(klass, place, new)
        return self._table[classes, ranges], new

    def _bucket(self, klass: int, place: int, new: list[int]) -> int:
        engine, workload, temperature, version = self._class_keys[klass]
        name = (engine, workload, self._labels[place], temperature, version)
        number = self._ids.get(name)
        if number is None:
            number = self._ids[name] = self._next
            self._next += 1
            self.names[number] = name
            new.append(number)
        return number
