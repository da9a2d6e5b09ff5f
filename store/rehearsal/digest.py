"""What the trace of a pass says, reduced to counts: by phase and workload, and by how many sequences ran."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import duckdb
import numpy as np

from store.counts import Bools, Ints, Joint, SequenceTotals
from store.operating_map.strata import Stratum
from store.rehearsal.pass_rows import PassRows, read_rows
from store.rehearsal.plan import Plan
from store.rehearsal.records import Outcome, Pass
from store.rehearsal.waiting import waiting
from store.sql import only_row


class StepPart(NamedTuple):
    """Steps of a phase (or of all the pass) that held a workload (or anything), and its rows in them.

    `emitted`: tokens of its rows, or of all rows, other clients' among them, where no workload is named; `seconds` of
    the steps; `running_seconds`: Σ running sequences x seconds.
    """

    joint: Joint
    sequences: SequenceTotals
    emitted: int
    seconds: float
    running_seconds: float


class Pace(NamedTuple):
    """Steps that computed no prompt while so many sequences ran; seconds are their median."""

    steps: int
    seconds: float


class PassDigest(NamedTuple):
    parts: dict[tuple[int | None, str | None], StepPart]
    """By phase and workload, where there were steps."""
    strata: tuple[Stratum, ...]
    loads: dict[int | None, dict[int, tuple[float, float]]]
    """By phase (None: the whole pass) and running sequences: tokens committed, seconds of the steps."""
    paces: dict[int, Pace]
    """By running sequences."""
    waiting: dict[str, float]
    """By `Outcome.id`: seconds from the intended moment to the start of the first step that holds it, at least 0. Those
    of which no step is known are not in it."""
    others: float
    """Share of the sequence-steps that served somebody else."""
    frames_lost: int


def digest(
    connection: duckdb.DuckDBPyConnection, made: Pass, outcomes: Sequence[Outcome], plan: Plan, prefix: str
) -> PassDigest:
    """`connection`: the pass's trace in a store. Steps of other engines and from before the pass are left out."""
    names = [mix.name for mix in plan.mix]
    rows = read_rows(connection, made, [prefix + name for name in names])
    lengths = [phase.seconds for phase in plan.phases]
    (lost,) = only_row(
        connection,
        "SELECT coalesce(sum(frames_lost), 0) FROM gaps WHERE ts > ? AND ts <= ?",
        [made.start, made.end],
    )
    return PassDigest(
        parts=dict(_parts(rows, names, lengths)),
        strata=tuple(_strata(rows, names)),
        loads=_loads(rows, lengths),
        paces=_paces(rows),
        waiting=waiting(connection, outcomes, made.start),
        others=float((rows.workload < 0).mean()) if len(rows.workload) else 0.0,
        frames_lost=int(lost),
    )


def _parts(
    rows: PassRows, names: list[str], lengths: list[float]
) -> Iterator[tuple[tuple[int | None, str | None], StepPart]]:
    of_step = _phases(rows, lengths)
    of_row = of_step[rows.step]
    for phase in (None, *range(len(lengths))):
        steps = np.ones(len(of_step), dtype=bool) if phase is None else of_step == phase
        inside = np.ones(len(of_row), dtype=bool) if phase is None else of_row == phase
        for place, name in ((None, None), *enumerate(names)):
            ours = inside & (rows.workload >= 0 if place is None else rows.workload == place)
            part = _part(
                rows, ours, steps if place is None else _holding(rows, ours), inside if place is None else ours
            )
            if part is not None:
                yield (phase, name), part


def _phases(rows: PassRows, lengths: list[float]) -> Ints:
    """The phase in which each step ended; after the last one, their number."""
    return np.searchsorted(np.array(list(accumulate(lengths))), rows.step_at, side="left").astype(np.int64)


def _loads(rows: PassRows, lengths: list[float]) -> dict[int | None, dict[int, tuple[float, float]]]:
    of_step = _phases(rows, lengths)
    tokens = np.bincount(rows.step, weights=rows.emitted, minlength=len(of_step))
    found: dict[int | None, dict[int, tuple[float, float]]] = {}
    for phase in (None, *range(len(lengths))):
        inside = np.ones(len(of_step), dtype=bool) if phase is None else of_step == phase
        found[phase] = {
            int(load): (float(tokens[here].sum()), float(rows.step_seconds[here].sum()))
            for load in np.unique(rows.step_running[inside]).tolist()
            if (here := inside & (rows.step_running == load)).any()
        }
    return found


def _holding(rows: PassRows, where: Bools) -> Bools:
    """Steps that have any of these rows."""
    found: Bools = np.bincount(rows.step[where], minlength=len(rows.step_at)) > 0
    return found


def _part(rows: PassRows, ours: Bools, steps: Bools, emitting: Bools) -> StepPart | None:
    if not steps.any():
        return None
    seconds = rows.step_seconds[steps]
    return StepPart(
        joint=rows.joint(ours),
        sequences=rows.sequences(ours),
        emitted=int(rows.emitted[emitting].sum()),
        seconds=float(seconds.sum()),
        running_seconds=float((rows.step_running[steps] * seconds).sum()),
    )


def _strata(rows: PassRows, names: list[str]) -> Iterator[Stratum]:
    """By workload and running sequences, over decode rows; and of each number of running sequences the steps in all."""
    seconds, running = rows.step_seconds[rows.step], rows.step_running[rows.step]
    for place, name in enumerate(names):
        ours = rows.decode & (rows.workload == place)
        for load in np.unique(running[ours]).tolist():
            here = ours & (running == load)
            yield Stratum(
                workload=name,
                running=int(load),
                steps=len(np.unique(rows.step[here])),
                emitted=int(rows.emitted[here].sum()),
                seconds=float(seconds[here].sum()),
            )
    for load in np.unique(rows.step_running).tolist():
        steps = rows.step_running == load
        yield Stratum(
            workload=None,
            running=int(load),
            steps=int(steps.sum()),
            emitted=int(rows.emitted[running == load].sum()),
            seconds=float(rows.step_seconds[steps].sum()),
        )


def _paces(rows: PassRows) -> dict[int, Pace]:
    pure = rows.step_prefill == 0
    found = {}
    for load in np.unique(rows.step_running[pure]).tolist():
        seconds = rows.step_seconds[pure & (rows.step_running == load)]
        found[int(load)] = Pace(len(seconds), float(np.median(seconds)))
    return found
