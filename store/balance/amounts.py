"""What the sums of a ledger come to: the amounts of one workload or of all, in seconds, with their interval."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec.structs import replace

from engine.speedup import Speedup, SpeedupState
from engine.step_time.columns import Bools
from store.balance.ledger import MEASURED, SERVING, Ledger
from store.balance.records import WorkloadBalance

_TELLING: Final[tuple[SpeedupState, ...]] = ("ok", "few")


def tells(ledger: Ledger) -> bool:
    """Whether enough of the time of all steps counts for amounts to be told."""
    return ledger.speedup_of(None).state in _TELLING


def amounts(ledger: Ledger, workload: int | None, telling: bool) -> WorkloadBalance:
    """Of one workload (None: of all). Without amounts where the ledger does not tell, or none of its time counts."""
    speedup = ledger.speedup_of(workload)
    inside = np.ones(len(ledger.workloads), dtype=bool) if workload is None else _only(ledger, workload)
    time, measured = ledger.seconds[SERVING], ledger.seconds[MEASURED]
    if workload is not None:
        time, measured = float(ledger.time[workload]) / 1000, float(ledger.measured[workload]) / 1000
    used = float(ledger.sums.used[inside].sum()) / 1000
    facts = WorkloadBalance(
        workload=None if workload is None else ledger.workloads[workload],
        state=speedup.state if telling or speedup.state == "absent" else "calibrating",
        decode_rows=int(ledger.rows[inside].sum()),
        draft_tokens=int(ledger.drafted[inside].sum()),
        engine_seconds=time,
        covered=min(1.0, used / time) if time else None,
        measured=min(1.0, measured / time) if time else None,
    )
    return _with_amounts(facts, ledger, inside, used, speedup) if telling and used else facts


def _only(ledger: Ledger, workload: int) -> Bools:
    return np.asarray(np.arange(len(ledger.workloads)) == workload)


def _with_amounts(
    facts: WorkloadBalance, ledger: Ledger, inside: Bools, used: float, speedup: Speedup
) -> WorkloadBalance:
    vanilla, brought, unexplained = (
        float(column[inside].sum()) / 1000
        for column in (ledger.sums.vanilla, ledger.sums.brought, ledger.sums.unexplained)
    )
    own = float(np.diag(ledger.sums.paid)[inside].sum()) / 1000
    between = ledger.sums.paid.copy()
    np.fill_diagonal(between, 0.0)
    others_paid = float(between[:, inside].sum()) / 1000
    sure = facts.state in _TELLING
    return replace(
        facts,
        used=used,
        vanilla=vanilla,
        saved=vanilla - used,
        saved_low=used * (speedup.low - 1) if sure and speedup.low is not None else None,
        saved_high=used * (speedup.high - 1) if sure and speedup.high is not None else None,
        brought=brought,
        paid_own=own,
        paid_others=float(between[inside].sum()) / 1000,
        unexplained=unexplained,
        others_paid=others_paid,
        drafts_cost=own + others_paid,
    )
