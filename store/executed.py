"""Executed K: when it changed, and where it was not what was configured without anything that explains it.

Executed K of a step is `k_draft`; where the batch K can't move (a fixed method, data parallelism) it is the largest
K that was asked for any of its rows, which was decided one step earlier.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import msgspec
import numpy as np

from engine.policy import base_k
from engine.records import LIMITS, EngineRecord, PolicyMode
from engine.schedule import ScheduleError
from store.counts import PREFILL, Bools, Ints
from store.figures import Mismatch, Transition
from store.mode_controls import ModeControls, mode_controls
from store.resolved import departs, resolved_by

UNEXPLAINED_STEPS: Final = 20
"""A difference is a mismatch when it lasts for more steps than this."""

_EXPLAINS: Final = [LIMITS.index(term) for term in ("hint", "lane", "operator", "fallback", "probe", "cap", "adaptive")]


@dataclass(frozen=True)
class ExecutedSteps:
    """Steps of one run in order; arrays of one length. `k` executed, `limit` the term that set it, `batch` the number
    of running sequences for which it was decided, `policy` the version in force."""

    engine: str
    record: EngineRecord
    number: Ints
    ts: np.ndarray[Any, np.dtype[np.float64]]
    running: Ints
    batch: Ints
    k: Ints
    limit: Ints
    policy: Ints
    over: bool
    """Another run of the engine has followed."""


def judge(
    connection: duckdb.DuckDBPyConnection, start: float, end: float, since: float = 0.0
) -> tuple[list[Transition], list[Mismatch]]:
    """Transitions and mismatches of steps that ended in (start, end], Unix seconds, in the order of time.

    Args:
        since: steps before it are not read: a mismatch that began earlier seems to begin there.
    """
    changes: list[Transition] = []
    mismatches: list[Mismatch] = []
    controls = mode_controls(connection)
    for steps in _runs(connection, since, end):
        changes += [change for change in transitions(steps) if change.ts > start]
        mismatches += [
            mismatch
            for mismatch in find_mismatches(steps, controls)
            if (mismatch.ended is None or mismatch.ended > start) and mismatch.started <= end
        ]
    return sorted(changes, key=lambda change: change.ts), sorted(mismatches, key=lambda mismatch: mismatch.started)


def transitions(steps: ExecutedSteps) -> Iterator[Transition]:
    """Changes of the executed K inside one run."""
    for place in np.flatnonzero(np.diff(steps.k)) + 1:
        yield Transition(
            engine=steps.engine,
            step=int(steps.number[place]),
            ts=float(steps.ts[place]),
            from_k=int(steps.k[place - 1]),
            to_k=int(steps.k[place]),
            running=int(steps.running[place]),
            limit=LIMITS[steps.limit[place]],
        )


def find_mismatches(steps: ExecutedSteps, controls: ModeControls) -> Iterator[Mismatch]:
    """Stretches in which the executed K was not the configured one.

    A policy that the engine dropped or clamped is a mismatch at once; any other difference when it lasts for more than
    `UNEXPLAINED_STEPS` and no policy term explains it.
    """
    if steps.record.max_k == 0:
        return  # it has no drafter: there is nothing to configure
    for started, configured, first, last in _in_force(steps, controls):
        resolved = resolved_by(steps.record, configured)
        dropped = departs(configured, resolved)
        differs = steps.k[first:last] != expected_k(configured, steps.batch[first:last], steps.record.max_k)
        differs &= ~np.isin(steps.limit[first:last], _EXPLAINS)
        stretches = [s for s in _stretches(differs) if dropped or s[1] - s[0] > UNEXPLAINED_STEPS]
        for begin, stop in stretches:
            executed = steps.k[first + begin : first + stop]
            yield Mismatch(
                engine=steps.engine,
                started=float(steps.ts[first + begin]),
                ended=_ended(steps, first + stop),
                configured=msgspec.to_builtins(configured),
                resolved=msgspec.to_builtins(resolved),
                executed=int(np.bincount(executed).argmax()),
                reason=resolved.reason,
            )
        if dropped and not stretches and last > first:
            yield Mismatch(
                engine=steps.engine,
                started=max(started, steps.record.ts),
                ended=_ended(steps, last),
                configured=msgspec.to_builtins(configured),
                resolved=msgspec.to_builtins(resolved),
                executed=int(steps.k[last - 1]),
                reason=resolved.reason,
            )


def _in_force(steps: ExecutedSteps, controls: ModeControls) -> Iterator[tuple[float, PolicyMode, int, int]]:
    """Configured modes of a run, each with the moment since which it holds and from where to where its steps go: what
    the engine was launched with, the mode that it found when it heard of a station, then what was set since."""
    found = [(float("-inf"), steps.record.configured, 0)]
    before = [one for one in controls.modes if one.ts < steps.record.ts]
    if before and before[-1].policy is not None:
        heard = np.flatnonzero(steps.policy >= before[-1].policy)
        if len(heard) and controls.still_holds(before[-1], int(steps.policy[heard[0]])):
            found.append((float(steps.ts[heard[0]]), before[-1].mode, int(heard[0])))
    for one in controls.modes:
        if one.ts >= steps.record.ts:
            found.append((one.ts, one.mode, int(np.searchsorted(steps.ts, one.ts, side="right"))))
    last = len(steps.ts)
    stretches = []
    for started, mode, first in reversed(found):
        stretches.append((started, mode, min(first, last), last))
        last = min(first, last)
    yield from reversed(stretches)


def _ended(steps: ExecutedSteps, stop: int) -> float | None:
    """End of a stretch that stops before the step at `stop`; None where it may still go on."""
    return None if stop == len(steps.ts) and not steps.over else float(steps.ts[stop - 1])


def expected_k(mode: PolicyMode, batch: Ints, max_k: int) -> Ints:
    """K that a base policy gives at each batch size, before any other term; −1 for a schedule that is none."""
    sizes, place = np.unique(batch, return_inverse=True)
    try:
        return np.array([base_k(mode, int(size), max_k) for size in sizes], dtype=np.int64)[place]
    except ScheduleError:
        return np.full(len(batch), -1, dtype=np.int64)


def _stretches(differs: Bools) -> list[tuple[int, int]]:
    """Start and stop of each run of True."""
    edges = np.flatnonzero(np.diff(np.r_[False, differs, False].astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _runs(connection: duckdb.DuckDBPyConnection, since: float, end: float) -> Iterator[ExecutedSteps]:
    runs = "SELECT id, record, id < max(id) OVER (PARTITION BY engine) FROM engines ORDER BY id"
    for number, text, over in connection.execute(runs).fetchall():
        record = msgspec.json.decode(text, type=EngineRecord)
        fixed = record.batch_k == "fixed" or record.data_parallel_size > 1
        columns = connection.execute(_ASKED if fixed else _DRAFTED, [number, since, end]).fetchnumpy()
        running = columns["running"].astype(np.int64)
        if len(running):
            yield ExecutedSteps(
                engine=record.engine,
                record=record,
                number=columns["number"].astype(np.int64),
                ts=columns["ts"],
                running=running,
                batch=np.r_[running[:1], running[:-1]] if fixed else running,
                k=columns["k"].astype(np.int64),
                limit=columns["term"].astype(np.int64),
                policy=columns["policy"].astype(np.int64),
                over=over,
            )


_DRAFTED: Final = """SELECT number, ts, running, k_draft AS k, limit_draft AS term, policy FROM steps
WHERE engine_run = ? AND ts >= ? AND ts <= ? ORDER BY id"""

_ASKED: Final = f"""SELECT any_value(number) AS number, any_value(ts) AS ts, any_value(running) AS running,
  any_value(policy) AS policy, max(k_asked) AS k, arg_max(limit_term, k_asked) AS term
FROM steps JOIN rows ON rows.step = steps.id
WHERE engine_run = ? AND ts >= ? AND ts <= ? AND cause <> {PREFILL} GROUP BY steps.id ORDER BY steps.id"""

__all__ = ["ExecutedSteps", "expected_k", "find_mismatches", "judge", "transitions"]
