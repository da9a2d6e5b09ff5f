"""The steps and rows of one pass as arrays, read from its trace once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import duckdb
import numpy as np

from store.counts import PREFILL, Bools, Floats, Ints, Joint, SequenceTotals, pack, step_ratio, sum_by_sequence, unpack
from store.rehearsal.records import Pass

_STEPS: Final = """SELECT s.id, s.ts, s.duration_ms / 1000 AS seconds, s.running, s.prefill_tokens
FROM steps s JOIN engines e ON s.engine_run = e.id
WHERE e.engine = $engine AND s.ts > $start AND s.ts <= $end ORDER BY s.id"""

_ROWS: Final = """SELECT r.step, r.sequence, r.bucket, r.k_asked, r.limit_term, r.drafted, r.accepted, r.cause,
  r.post_resume, r.emitted, coalesce(r.proposed, 0) AS proposed,
  CASE WHEN r.proposed IS NULL THEN 0 ELSE r.drafted END AS proposed_drafted
FROM rows r JOIN steps s ON r.step = s.id JOIN engines e ON s.engine_run = e.id
WHERE e.engine = $engine AND s.ts > $start AND s.ts <= $end"""


@dataclass(frozen=True)
class PassRows:
    """Columns of one length over steps (`step_…`), and over rows. `step_at`: its end, seconds after the start of the
    pass; `step`: place of the row's step; `workload`: place in the plan's mix, −1 for somebody else's."""

    step_at: Floats
    step_seconds: Floats
    step_running: Ints
    step_prefill: Ints
    step: Ints
    sequence: Ints
    workload: Ints
    codes: Ints
    """Keys of the joint histogram, packed (`store.counts`)."""
    emitted: Ints
    proposed: Ints
    proposed_drafted: Ints

    @property
    def decode(self) -> Bools:
        found: Bools = unpack(self.codes)[4] != PREFILL
        return found

    def joint(self, where: Bools) -> Joint:
        """The joint histogram of these rows."""
        codes, place = np.unique(self.codes[where], return_inverse=True)
        sums = [
            np.bincount(place, weights=column[where], minlength=len(codes)).astype(np.int64)
            for column in (self.emitted, self.proposed, self.proposed_drafted)
        ]
        return Joint(*unpack(codes), np.bincount(place, minlength=len(codes)), *sums)

    def sequences(self, where: Bools) -> SequenceTotals:
        """Totals of each sequence over these rows."""
        _, _, drafted, accepted, cause, _ = unpack(self.codes[where])
        draft = (cause != PREFILL) & (drafted > 0)
        ratio = np.where(draft, step_ratio(drafted, accepted), 0)
        return sum_by_sequence(self.sequence[where], np.ones(len(draft), dtype=np.int64), draft.astype(np.int64), ratio)


def read_rows(connection: duckdb.DuckDBPyConnection, made: Pass, tags: Sequence[str]) -> PassRows:
    """Steps of the pass's own engine that ended between its start and its end. `tags`: of the mix, in its order."""
    bounds = {"engine": made.engine, "start": made.start, "end": made.end}
    steps = connection.execute(_STEPS, bounds).fetchnumpy()
    rows = {name: column.astype(np.int64) for name, column in connection.execute(_ROWS, bounds).fetchnumpy().items()}
    places = {tag: place for place, tag in enumerate(tags)}
    buckets = connection.execute("SELECT id, workload FROM buckets").fetchall()
    of_bucket = np.full(max((number for number, _ in buckets), default=0) + 1, -1, dtype=np.int64)
    for number, workload in buckets:
        of_bucket[number] = places.get(workload, -1)
    names = ("k_asked", "limit_term", "drafted", "accepted", "cause", "post_resume")
    return PassRows(
        step_at=steps["ts"] - made.start,
        step_seconds=steps["seconds"].astype(np.float64),
        step_running=steps["running"].astype(np.int64),
        step_prefill=steps["prefill_tokens"].astype(np.int64),
        step=np.searchsorted(steps["id"].astype(np.int64), rows["step"]),
        sequence=rows["sequence"],
        workload=of_bucket[rows["bucket"]],
        codes=pack(*(rows[name] for name in names)),
        emitted=rows["emitted"],
        proposed=rows["proposed"],
        proposed_drafted=rows["proposed_drafted"],
    )
