"""Adds up what steps settle: which of them count, and the sums of those by workload, block of time and load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import sqrt
from typing import Final

import numpy as np

from engine.speedup import Speedup, pooled_speedup
from engine.step_time.bands import batch_band, context_band
from engine.step_time.columns import Bools, Floats, Ints
from engine.step_time.load import Account
from engine.step_time.model import LARGEST_ERROR, StepModel
from store.balance.reading import Read
from store.balance.settling import Settlement, Steps, settle
from store.buckets import CALIBRATION
from store.load import Runner

SERVING: Final = "serving"
"""Key of the time that shares are told of, …"""
MEASURED: Final = "measured"
"""… and of its part that counts and lies at loads whose vanilla time the table of step times knows."""

_RUN, _BAND = 44, 20
"""Bits below the number of a run and below the band of a batch, in one number for a load of an engine."""


@dataclass
class Ledger:
    """
    Args:
        workloads: names, by number.
        runners: whose step times the steps of a run are held against.
        block: seconds of a block of time, see `store.blocks`.
    """

    workloads: Sequence[str]
    runners: Mapping[int, Runner]
    models: Mapping[Runner, StepModel]
    block: int
    sums: Settlement = field(init=False)
    seconds: dict[str, float] = field(init=False)
    """Of engine time: the fields of `LeftOut`, SERVING and MEASURED."""
    rows: Ints = field(init=False)
    """Decode rows in steps that serve, by workload, as are …"""
    time: Floats = field(init=False)
    """… the shares of their time, ms, …"""
    measured: Floats = field(init=False)
    """… and of MEASURED."""
    drafted: Floats = field(init=False)
    """Tokens drafted in steps that count."""

    def __post_init__(self) -> None:
        many = len(self.workloads)
        self.sums = Settlement.nothing(many)
        kinds = ("no_decode_rows", "calibration", "incomplete", "not_calibrated", SERVING, MEASURED)
        self.seconds = dict.fromkeys(kinds, 0.0)
        self.rows = np.zeros(many, dtype=np.int64)
        self.time, self.measured, self.drafted = (np.zeros(many) for _ in range(3))
        self._blocks: dict[int, tuple[Floats, Floats]] = {}
        self._tokens: dict[tuple[Runner, int, int], Floats] = {}
        """Vanilla time of tokens by load, ms: what the error of calibration hangs on."""

    def add(self, read: Read) -> None:
        serving = self._serving(read)
        self.seconds[SERVING] += float(read.duration[serving].sum()) / 1000
        whole = serving & (read.rows.sum(axis=1) == read.batch)
        self._leave_out("incomplete", read.duration[serving & ~whole])
        self.rows += read.rows[whole].sum(axis=0).astype(np.int64)
        self.time += (read.duration[whole] / read.batch[whole]) @ read.rows[whole]
        vanilla, prefill, measured = self._vanilla(read)
        counts = whole & np.isfinite(vanilla)
        self._leave_out("not_calibrated", read.duration[whole & ~counts])
        if counts.any():
            self._settle(read, np.flatnonzero(counts), vanilla, prefill)
        known = counts & measured
        self.seconds[MEASURED] += float(read.duration[known].sum()) / 1000
        self.measured += (read.duration[known] / read.batch[known]) @ read.rows[known]

    def speedup_of(self, workload: int | None) -> Speedup:
        """Vanilla time over time used of a workload (None: of all), its state as a realised speedup has it."""
        inside = slice(None) if workload is None else slice(workload, workload + 1)
        gained, taken = (np.array([sums[kind][inside].sum() for sums in self._blocks.values()]) for kind in (1, 0))
        rows, total, measured = int(self.rows[inside].sum()), float(self.time[inside].sum()), self.measured[inside]
        if workload is None:
            total = self.seconds[SERVING] * 1000
        error = sqrt(sum(self._error(runner, inside) ** 2 for runner in {runner for runner, *_ in self._tokens}))
        cell = np.array(list(self._blocks), dtype=np.int64)
        return pooled_speedup([Account(cell, gained, taken, rows, total, float(measured.sum()), error)])

    def _serving(self, read: Read) -> Bools:
        decoding = read.batch > 0
        self._leave_out("no_decode_rows", read.duration[~decoding])
        if CALIBRATION not in self.workloads:
            return decoding
        ours = decoding & (read.rows[:, self.workloads.index(CALIBRATION)] > 0)
        self._leave_out("calibration", read.duration[ours])
        return decoding & ~ours

    def _leave_out(self, why: str, duration: Floats) -> None:
        self.seconds[why] += float(duration.sum()) / 1000

    def _vanilla(self, read: Read) -> tuple[Floats, Floats, Bools]:
        """Vanilla-equivalent decode time (NaN where its engine's is not known) and prefill part of each step, ms, by
        the table or the fit as a realised speedup has them; and whether the table knows its load."""
        vanilla, prefill = np.full(len(read.ts), np.nan), np.zeros(len(read.ts))
        measured = np.zeros(len(read.ts), dtype=bool)
        for run in np.unique(read.run).tolist():
            model = self.models.get(self.runners[run]) if run in self.runners else None
            if model is None or model.error is None or model.error > LARGEST_ERROR:
                continue
            mine = np.flatnonzero(read.run == run)
            batch, context = read.batch[mine], read.context[mine]
            found = model.vanilla_ms(batch, context)
            if found is not None:
                vanilla[mine], prefill[mine] = found, model.prefill_ms(read.prefill[mine])
                measured[mine] = model.measured(batch_band(batch), context_band(context, batch))
        return vanilla, prefill, measured

    def _settle(self, read: Read, places: Ints, vanilla: Floats, prefill: Floats) -> None:
        many, block = len(self.workloads), (read.ts[places] // self.block).astype(np.int64)
        order = np.argsort(block, kind="stable")
        places, block = places[order], block[order]
        steps = Steps(
            read.duration[places], vanilla[places], prefill[places], read.rows[places], read.emitted[places],
            read.drafted[places],
        )  # fmt: skip
        edges = [0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), len(block)]
        for first, last in pairwise(edges):
            found = settle(steps.take(slice(first, last)))
            self.sums = self.sums + found
            taken, gained = self._blocks.setdefault(int(block[first]), (np.zeros(many), np.zeros(many)))
            taken += found.used
            gained += found.vanilla
        self.drafted += steps.drafted.sum(axis=0)
        self._add_tokens(read, places, steps)

    def _add_tokens(self, read: Read, places: Ints, steps: Steps) -> None:
        batch = read.batch[places]
        band, context = batch_band(batch), context_band(read.context[places], batch)
        code = read.run[places] << _RUN | band << _BAND | context
        _, firsts, group = np.unique(code, return_index=True, return_inverse=True)
        token = steps.vanilla / batch
        for number, first in enumerate(firsts.tolist()):
            here = np.flatnonzero(group == number)
            key = self.runners[int(read.run[places[first]])], int(band[first]), int(context[first])
            so_far = self._tokens.setdefault(key, np.zeros(len(self.workloads)))
            so_far += token[here] @ steps.emitted[here]

    def _error(self, runner: Runner, inside: slice) -> float:
        """Standard error of the vanilla time that the calibration of an engine leaves, ms."""
        loads = [
            (band, context, sums[inside].sum()) for (of, band, context), sums in self._tokens.items() if of == runner
        ]
        band, context, amounts = (np.array(column) for column in zip(*loads, strict=True))
        return self.models[runner].vanilla_error(band, context, amounts)
