"""What the controller is told once a second: acceptance by position, load, step times, policy. All of one engine.

`observer.Observer` makes these of the engine's steps; whoever has the same numbers from elsewhere may fill them in.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from engine.policy import PolicyState
from engine.records import Probe
from engine.step_time.columns import Bools, Floats, Ints
from engine.step_time.model import StepModel


@dataclass(frozen=True)
class Evidence:
    """What verification said of a workload's draft positions in some stretch of time.

    Position j stands in column j−1 of `max_k` columns. Counts as of the at-risk hazard g_j (definitions.md): decode
    rows only; a position that the drafter left empty counts as not accepted; a `token_budget` row at j ≤ d only.
    """

    at_risk: Floats
    """(sequences, max_k): rows with k ≥ j and a ≥ j−1."""
    passed: Floats
    """(sequences, max_k): of these, rows with a ≥ j."""
    asked: Floats
    """(max_k,): rows with k ≥ j, whatever became of the positions before."""
    drafted: Floats
    """(max_k,): of these, rows with d ≥ j: what had to be verified."""

    @property
    def sequences(self) -> int:
        return len(self.at_risk)

    @cached_property
    def rows(self) -> Floats:
        """(max_k,): rows at risk."""
        return np.asarray(self.at_risk.sum(axis=0))

    @cached_property
    def hazards(self) -> Floats:
        """(max_k,): g_j; NaN where nobody was at risk. For arithmetic that asks `rows` first: it is never shown."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.passed.sum(axis=0) / self.rows)

    @classmethod
    def none(cls, max_k: int) -> Evidence:
        empty, zeros = np.empty((0, max_k)), np.zeros(max_k)
        return cls(empty, empty, zeros, zeros)


@dataclass(frozen=True)
class ProbeBlock:
    """What one block of `deep` or `recover` steps said of its workload, its first step left out."""

    kind: Probe
    ts: float
    """End of its last step so far, Unix seconds."""
    sequence: Ints
    """Who the entries of `evidence` belong to; a sequence may have several."""
    evidence: Evidence

    def joined(self, later: ProbeBlock) -> ProbeBlock:
        """With more rows of the same block."""
        return ProbeBlock(
            self.kind,
            later.ts,
            np.concatenate((self.sequence, later.sequence)),
            Evidence(*(
                np.concatenate(pair) if pair[0].ndim == 2 else pair[0] + pair[1]
                for pair in (
                    (self.evidence.at_risk, later.evidence.at_risk), (self.evidence.passed, later.evidence.passed),
                    (self.evidence.asked, later.evidence.asked), (self.evidence.drafted, later.evidence.drafted),
                )
            )),
        )  # fmt: skip


@dataclass(frozen=True)
class WorkloadEstimate:
    """One workload tag. Rows that a hint, a lane or the operator keeps at K = 0 are not its own here: see `Loads`."""

    name: str
    steps: int
    """Steps so far with a row of it: grows as long as the engine runs."""
    last_seen: float
    """End of the last of them, Unix seconds."""
    recent: Evidence
    """The last `recent_s`, without probe rows."""
    window: Evidence
    """The last `window_s`, without probe rows."""
    blocks: tuple[ProbeBlock, ...] = ()
    """Probe blocks of the last `longest_pause_s` seconds, oldest first."""


@dataclass(frozen=True)
class Loads:
    """The batches of the last `load_s`: one entry for each composition that occurred, L of them. What prefills add to
    a step is left out: for the same tokens it is the same whatever K is."""

    steps: Floats
    """(L,)"""
    rows: Floats
    """(L, W): decode rows of each workload, in the order of `Estimates.workloads`."""
    others: Floats
    """(L,): decode rows for which K is 0 whatever is decided: hint, lane."""
    context: Floats
    """(L,): tokens already computed, summed over the decode rows of a step."""

    @cached_property
    def batch(self) -> Ints:
        """(L,): decode rows of a step."""
        return np.asarray(np.rint(self.rows.sum(axis=1) + self.others), dtype=np.int64)

    def take_columns(self, workloads: list[int]) -> Loads:
        """Of these workloads, in this order."""
        return Loads(self.steps, self.rows[:, workloads], self.others, self.context)

    def among(self, where: Bools) -> Loads:
        """Of these compositions only."""
        return Loads(self.steps[where], self.rows[where], self.others[where], self.context[where])

    @cached_property
    def mean_rows(self) -> Floats:
        """(W,): n_w, the mean number of rows of each workload in a step."""
        total = self.steps.sum()
        return np.asarray(self.steps @ self.rows / total if total else np.zeros(self.rows.shape[1]))


@dataclass(frozen=True)
class Totals:
    """Sums since the engine process started; they never fall."""

    steps: int = 0
    emitted: int = 0
    """Tokens committed by decode rows."""
    busy_ms: float = 0.0
    """Durations of all steps."""
    probe_steps: int = 0
    probe_ms: float = 0.0


NOTHING_YET: Final = Totals()


@dataclass(frozen=True)
class Estimates:
    ts: float
    """Now, Unix seconds of record time."""
    boot: str
    """Unique for each engine process: sums start again with it."""
    version: str
    """Model version: what was learned of another one is worth nothing."""
    max_k: int
    fixed_batch_k: bool
    """The batch K stays at the maximum (method, or data parallelism): only verification is saved by a lower K."""
    policy: PolicyState
    """The policy in force, the operator's part and ours."""
    model: StepModel | None
    workloads: tuple[WorkloadEstimate, ...]
    """Those seen in the last hour, in any order that stays the same."""
    loads: Loads
    totals: Totals
