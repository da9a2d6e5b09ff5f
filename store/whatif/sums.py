"""What chunks add up to: what was recorded, and what each policy makes of it. Arrays have one entry a bucket."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from engine.records import PolicyMode
from engine.step_time.model import StepModel
from store.buckets import model_version
from store.counts import Ints
from store.load import Runner
from store.whatif.chunk import Chunk
from store.whatif.costs import Costs, drafts_verified
from store.whatif.lengths import Lengths
from store.whatif.reading import Floats, Record
from store.whatif.trajectory import Trajectory
from store.whatif.walk import FILLED, WALKS, walk


class Known:
    """What was recorded.

    Args:
        gone_until: up to when steps of the stretch are no longer kept one by one, Unix seconds; None: all are.
    """

    def __init__(self, record: Record, gone_until: float | None) -> None:
        self._record = record
        self.gone_until = gone_until
        many = len(record.buckets)
        self.rows: Floats = np.zeros(many)
        """Decode rows."""
        self.tokens: Floats = np.zeros(many)
        """Σ emitted of decode rows."""
        self.all_tokens: Floats = np.zeros(many)
        """Those of rows that end a prefill too."""
        self.positions: Floats = np.zeros(many)
        self.never: Floats = np.zeros(many)
        """Positions for which nobody ever asked for a draft."""
        self.barred_rows = 0
        self.decode_seconds: dict[Runner, float] = {}
        """Step time without what prompts took, of steps with rows that are looked at."""
        self.wall: dict[str, float] = {}
        """Recorded wall seconds of each engine, without steps that only calibrated it."""
        self._used = np.zeros(len(record.steps.id), dtype=bool)

    def add(self, chunk: Chunk) -> None:
        rows, many = chunk.rows, len(self.rows)
        decode = rows.decode
        self.rows += np.bincount(rows.bucket[decode], minlength=many)
        self.tokens += np.bincount(rows.bucket[decode], weights=rows.emitted[decode], minlength=many)
        self.all_tokens += np.bincount(rows.bucket, weights=rows.emitted, minlength=many)
        self.positions += np.bincount(chunk.bucket, minlength=many)
        self.never += np.bincount(chunk.bucket[chunk.never], minlength=many)
        self.barred_rows += int((rows.bars & decode).sum())
        self._used[rows.step] = True

    def close(self, models: Mapping[Runner, StepModel], seconds: float) -> None:
        """All chunks were added. `seconds`: recorded wall seconds of the stretch."""
        steps = self._record.steps
        for place, run in enumerate(sorted(self._record.runs)):
            record = self._record.runs[run]
            runner = Runner(record.engine, model_version(record))
            mine = steps.run == place
            decoding = mine & self._used & (steps.batch > 0)
            model = models.get(runner)
            prefill = 0.0 if model is None else model.prefill_ms(steps.prefill[decoding])
            spent = float(np.maximum(steps.duration_ms[decoding] - prefill, 0.0).sum()) / 1000
            self.decode_seconds[runner] = self.decode_seconds.get(runner, 0.0) + spent
            aside = float(steps.duration_ms[mine & ~self._used].sum()) / 1000
            self.wall[record.engine] = self.wall.get(record.engine, seconds) - aside


class Asked:
    """What a policy makes of it."""

    def __init__(
        self, mode: PolicyMode, lengths: Lengths | Trajectory, record: Record, models: Mapping[Runner, StepModel]
    ) -> None:
        self.mode = mode
        self._lengths = lengths
        self._buckets = [bucket for _, bucket in record.buckets]
        many = len(self._buckets)
        self.steps: Floats = np.zeros((WALKS, many))
        """Expected steps, in the three walks of `walk`."""
        self.inexact: Floats = np.zeros(many)
        self.recorded_starts: Floats = np.zeros(many)
        self.k: Floats = np.zeros(many)
        """Σ K over the steps of the first walk."""
        self.naive: Floats = np.zeros(many)
        fixed = {
            Runner(run.engine, model_version(run)): run.max_k
            for run in record.runs.values()
            if run.batch_k == "fixed" or run.data_parallel_size > 1
        }
        self.costs = {runner: Costs(model, fixed.get(runner)) for runner, model in models.items()}

    def add(self, chunk: Chunk) -> None:
        rows, many = chunk.rows, len(self.naive)
        asked = self._lengths.of_rows(chunk)
        decode = rows.decode
        shorter = np.minimum(np.minimum(rows.accepted, asked) + 1, rows.emitted)
        self.naive += np.bincount(rows.bucket[decode], weights=shorter[decode], minlength=many)
        k, batch_k = self._lengths.of_positions(chunk)
        possible = drafts_verified(k, chunk.offered[chunk.row], chunk.at_start)
        walked = walk(chunk.laid, chunk.chances, possible)
        for place, starts in enumerate(walked.starts):
            self.steps[place] += np.bincount(chunk.bucket, weights=starts, minlength=many)
        filled = walked.starts[FILLED]
        self.inexact += np.bincount(chunk.bucket, weights=walked.inexact, minlength=many)
        self.recorded_starts += np.bincount(chunk.bucket, weights=filled * chunk.at_start, minlength=many)
        self.k += np.bincount(chunk.bucket, weights=filled * k, minlength=many)
        self._spend(chunk, possible, batch_k, walked.starts)

    def _spend(self, chunk: Chunk, drafts: Ints, batch_k: Ints, starts: Floats) -> None:
        rows, steps = chunk.rows, chunk.steps
        runner_of = np.array([list(self.costs).index(bucket.runner) if bucket.runner in self.costs else -1
                              for bucket in self._buckets])  # fmt: skip
        row_runner = np.where(rows.decode, runner_of[rows.bucket], -1)
        met = starts.any(axis=0)
        for place, costs in enumerate(self.costs.values()):
            mine = row_runner == place
            at = rows.step[mine]
            costs.record(steps.batch[at], steps.k_draft[at], rows.drafted[mine], rows.context[mine])
            here = np.flatnonzero(met & (runner_of[chunk.bucket] == place))
            row = chunk.row[here]
            costs.predict(
                steps.batch[rows.step[row]], batch_k[here], drafts[here], chunk.context[here], starts[:, here]
            )
