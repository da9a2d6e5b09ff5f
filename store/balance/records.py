"""The balance of a window, as the feed, `report --costs --json` and the screens carry it. Imports no DuckDB, no numpy.

All amounts are seconds of engine time, made by `store.balance.settling`. Absent is None, never 0 and never NaN.
"""

from __future__ import annotations

import msgspec

from store.figures import SpeedupState, Window


class WorkloadBalance(msgspec.Struct, frozen=True, kw_only=True):
    """What a workload saved, and of what that is made: saved = brought − paid_own − paid_others − unexplained.

    The amounts are exact sums over the steps that count. States are those of a realised speedup, by engine time: a
    workload is `calibrating` where less than 80 % of its time is measured, so that its amounts hang on the fit; they
    come without an interval then. They are None where no step of it counts, and for all workloads where the whole
    balance is `calibrating` or `absent`.
    """

    workload: str | None
    """None: all of them."""
    state: SpeedupState
    decode_rows: int
    """All of the window, whether or not their step counts."""
    draft_tokens: int
    """Tokens drafted at its wish, in the steps that count."""
    engine_seconds: float
    """Its share of the steps that it was in, whether or not they count."""
    covered: float | None
    """The share of these seconds whose steps count."""
    measured: float | None
    """The share that counts and lies at loads whose vanilla time is measured; the rest is by the fit."""
    used: float | None = None
    """The same share of the steps that count."""
    vanilla: float | None = None
    """What its tokens would have taken without speculation, at the batch at which each was made."""
    saved: float | None = None
    """vanilla − used; negative: what speculation cost it."""
    saved_low: float | None = None
    saved_high: float | None = None
    """At 95 %, clustered by blocks of steps, with the calibration error: what the same engine time might save. None
    where blocks are too few to tell, and while `calibrating`."""
    brought: float | None = None
    """What the tokens are worth that its rows committed beyond one a step: what its own drafts brought it."""
    paid_own: float | None = None
    paid_others: float | None = None
    """What its rows paid for its own drafts, and for those of other workloads."""
    unexplained: float | None = None
    """Its share of the extra time of steps in which nobody had drafted: measurement, and what K = 0 costs beside
    vanilla."""
    others_paid: float | None = None
    """What other workloads paid for its drafts."""
    drafts_cost: float | None = None
    """paid_own + others_paid: what its drafts cost, whoever paid."""


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of engine time in steps that are in no amount. No step is in two of them."""

    no_decode_rows: float = 0.0
    """Nothing was decoded: prompts alone."""
    calibration: float = 0.0
    """specdeck's own calibration ran in them."""
    incomplete: float = 0.0
    """One of their rows is quarantined, or not attributed yet."""
    not_calibrated: float = 0.0
    """Nothing is known yet of the vanilla times of their engine, or not well enough."""


class Balance(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of the feed's `balance`, and what `report --costs --json` prints."""

    source: str
    window: Window | None
    """Start of the first step to the end of the last; None where there is none."""
    steps: int
    engine_seconds: float
    """Durations of all its steps, of all engines."""
    covered: float | None
    """Of these without `no_decode_rows` and `calibration`, the share that counts; None where nothing is left."""
    left_out: LeftOut
    gaps: int
    frames_lost: int
    total: WorkloadBalance
    workloads: list[WorkloadBalance]
    """The most engine time first."""
    paid: list[list[float]] | None
    """`paid[w][u]`: what workload number w paid for the drafts of workload number u, in the order of `workloads`. None
    as the amounts of `total`."""
    notes: list[str] = []
