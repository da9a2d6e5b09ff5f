"""Judges realised speedup: `speedup_floor` of each engine, `failing_workload` of each bucket, every five minutes.

A 10-s cell is one observation, since the rows of a step share its duration. Where nothing is drafted there is no
speculation to judge.
"""

from __future__ import annotations

import msgspec
import numpy as np

from store.judge.alerts import Severity
from store.judge.arrays import columns_at_least
from store.judge.inputs import Floats, Ints, LoadCells
from store.judge.loads import Loads
from store.judge.moments import MOMENTS, OVER, UNDER, N
from store.judge.places import Places, key_of
from store.judge.settings import JudgeSettings
from store.judge.spans import Span, share_span, speedup_span
from store.judge.twice import Reading, Subject, Twice

SPEEDUP, WASTE = 0, 1


class EngineSums(msgspec.Struct):
    """One engine in the present window."""

    speedup: Floats
    """MOMENTS of gained over taken, of the time whose vanilla-equivalent is known."""
    taken_ms: float = 0.0
    """Of all of its time."""
    drafted: int = 0
    error: float = 0.0
    """Largest calibration error told, relative."""


class SpeedMemory(msgspec.Struct):
    buckets: Floats
    """Buckets × (speedup, waste) × MOMENTS of the present window."""
    engines: dict[str, EngineSums]
    subjects: dict[str, Subject]
    """Of engines, by name after `engine `, and of buckets, by number after `bucket `."""


def empty_speed() -> SpeedMemory:
    return SpeedMemory(np.zeros((0, 2, MOMENTS)), {}, {})


class SpeedJudge:
    """Args:
    memory: changed in place.
    """

    def __init__(
        self, memory: SpeedMemory, places: Places, twice: Twice, loads: Loads, settings: JudgeSettings
    ) -> None:
        self.memory = memory
        self._places = places
        self._twice = twice
        self._loads = loads
        self._settings = settings

    def __bool__(self) -> bool:
        return bool(self.memory.engines)

    def add(self, cell: LoadCells) -> None:
        self._loads.add(cell.engines)
        if not len(cell.bucket):
            return
        buckets = self._places.of(cell.bucket)
        self.memory.buckets = columns_at_least(self.memory.buckets, len(self._places), 0)
        known = np.isfinite(cell.gained_ms) & (cell.taken_ms > 0)
        gained, taken = np.where(known, cell.gained_ms, 0.0), np.where(known, cell.taken_ms, 0.0)
        wasted, drafted = (cell.drafted - cell.accepted).astype(float), cell.drafted.astype(float)
        self.memory.buckets[buckets, SPEEDUP] += _observed(taken, gained)
        self.memory.buckets[buckets, WASTE] += _observed(drafted, wasted)
        errors = {one.engine: one.calibration_error for one in cell.engines}
        self._add_engines(cell, buckets, gained, taken, errors)

    def _add_engines(
        self, cell: LoadCells, buckets: Ints, gained: Floats, taken: Floats, errors: dict[str, float]
    ) -> None:
        names = [self._places.names[number][0] for number in buckets.tolist()]
        for engine in dict.fromkeys(names):
            here = np.array([name == engine for name in names])
            sums = self.memory.engines.setdefault(engine, EngineSums(np.zeros(MOMENTS)))
            sums.speedup += _observed(taken[here].sum(keepdims=True), gained[here].sum(keepdims=True))[0]
            sums.taken_ms += float(cell.taken_ms[here].sum())
            sums.drafted += int(cell.drafted[here].sum())
            sums.error = max(sums.error, errors.get(engine, 0.0))

    def tick(self, ts: float) -> None:
        """The window that ends at `ts` is over."""
        for engine, sums in self.memory.engines.items():
            subject = self.memory.subjects.setdefault(f"engine {engine}", Subject("speedup_floor", engine))
            self._twice.window(subject, ts, self._engine_reading(sums))
        for number in self._drafting():
            name = self._places.names[number]
            key = f"bucket {number}"
            if key not in self.memory.subjects:
                self.memory.subjects[key] = Subject("failing_workload", name[0], key_of(name))
            self._twice.window(self.memory.subjects[key], ts, self._bucket_reading(number, name[0]))
        self.memory.engines = {}
        self.memory.buckets[:] = 0

    def expire(self, ts: float) -> None:
        """End the alerts of what was not seen for long."""
        for subject in self.memory.subjects.values():
            self._twice.expire(subject, ts, self._settings.stale_seconds)

    def forget(self, number: int) -> None:
        self.memory.subjects.pop(f"bucket {number}", None)

    def _engine_reading(self, sums: EngineSums) -> Reading | None:
        settings = self._settings
        if not sums.drafted:
            return Reading(idle=True)
        if sums.speedup[N] < settings.fewest_cells or sums.speedup[UNDER] < settings.measured_share * sums.taken_ms:
            return None
        span = speedup_span(sums.speedup, settings.speed_confidence, sums.error)
        if span is None:
            return None
        bad: Severity | None = "critical" if span.high < 1 else "warn" if span.high < settings.speedup_floor else None
        clear = span.value >= settings.speedup_floor + settings.clear_speedup
        return Reading(bad, clear, evidence={**_speedup(span), "floor": settings.speedup_floor})

    def _bucket_reading(self, number: int, engine: str) -> Reading | None:
        settings, sums = self._settings, self.memory.buckets[number]
        if not sums[WASTE][UNDER]:
            return Reading(idle=True)
        if min(sums[SPEEDUP][N], sums[WASTE][N]) < settings.fewest_cells:
            return None
        error = self.memory.engines[engine].error
        speedup = speedup_span(sums[SPEEDUP], settings.speed_confidence, error)
        waste = share_span(sums[WASTE], settings.speed_confidence)
        if speedup is None or waste is None:
            return None
        failing = speedup.high < settings.failing_speedup and waste.low > settings.failing_waste
        clear = (
            speedup.value >= settings.failing_speedup + settings.clear_speedup
            or waste.value <= settings.failing_waste - settings.clear_speedup
        )
        evidence = {
            **_speedup(speedup),
            "floor": settings.failing_speedup,
            "waste": round(waste.value, 4),
            "waste_low": round(waste.low, 4),
            "waste_limit": settings.failing_waste,
        }
        return Reading("warn" if failing else None, clear, evidence=evidence)

    def _drafting(self) -> list[int]:
        """Buckets that may fail, and those that are watched."""
        sums, settings = self.memory.buckets, self._settings
        if not len(sums):
            return []
        slow = sums[:, SPEEDUP, OVER] < settings.failing_speedup * sums[:, SPEEDUP, UNDER]
        wasteful = sums[:, WASTE, OVER] > settings.failing_waste * sums[:, WASTE, UNDER]
        seen = set(np.flatnonzero(sums[:, SPEEDUP, N] > 0).tolist())
        watched = {
            int(key.removeprefix("bucket "))
            for key, subject in self.memory.subjects.items()
            if key.startswith("bucket ") and subject.alert is not None
        }
        return sorted({*np.flatnonzero(slow & wasteful).tolist(), *(watched & seen)})


def _observed(under: Floats, over: Floats) -> Floats:
    """One observation of each ratio as moments, n × MOMENTS."""
    return np.stack([(under > 0).astype(float), under, over, under * under, under * over, over * over], axis=-1)


def _speedup(span: Span) -> dict[str, float | int | str | None]:
    return {
        "speedup": round(span.value, 4),
        "speedup_low": round(span.low, 4),
        "speedup_high": round(span.high, 4),
        "cells": span.n,
    }
