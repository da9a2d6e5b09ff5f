"""What is known of one bucket beside its series, from the newest rows of a store: for a station and a replay alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import duckdb

from console.feed.bucket_detail import (
    BucketDetail,
    BucketDetailParams,
    Level,
    MarginalGain,
    MeasuredK,
    WorstRow,
    WorstSequence,
)
from engine.speedup import formula_speedup
from engine.step_time.model import StepModel
from store.figures import BucketKey
from store.judge.alerts import BucketView
from store.load import Runner
from store.recent_rows import ByK, Recent, Worst, recent_rows
from store.series_detail import members_of

LONGEST_CURVE: Final = 16
NO_ROWS: Final = "no row of it in the last quarter of an hour"
NOT_MEASURED: Final = "step times not measured yet"
NO_DRAFTS: Final = "nothing was drafted lately"
NO_LEVEL: Final = "no baseline yet: one is usable after a day"


def bucket_detail(
    connection: duckdb.DuckDBPyConnection,
    params: BucketDetailParams,
    models: Mapping[Runner, StepModel],
    now: float,
    *,
    max_k: int,
    level: Level | None,
    marginal: MarginalGain | None,
    absent: Mapping[str, str],
) -> BucketDetail:
    """
    Args:
        max_k: how far the curve goes at least.
        absent: why `level` and `marginal` are missing, where they are.
        now: nothing later counts, Unix seconds.
    """
    key = BucketKey(*params.key)
    members = members_of(connection, key)
    recent = recent_rows(connection, members, models, now)
    why = {name: reason for name, reason in absent.items() if {"level": level, "marginal": marginal}[name] is None}
    if recent is None or recent.batch is None:
        why |= dict.fromkeys(("measured", "cost", "worst"), NO_ROWS)
        return BucketDetail(key=key, level=level, marginal=marginal, absent=why)
    cost = _cost(recent, members, models)
    theory, acceptance = _theory(recent, cost, max_k)
    if cost is None:
        why["cost"] = NOT_MEASURED
    elif not theory:
        why["cost"] = NO_DRAFTS
    if not recent.worst:
        why["worst"] = "no recent sequence with 8 draft steps"
    return BucketDetail(
        key=key, since=recent.since, until=recent.until, batch=recent.batch, cost=cost, theory=theory,
        acceptance=acceptance, measured=[_measured(one) for one in recent.by_k],
        worst=[_sequence(one) for one in recent.worst], level=level, marginal=marginal, absent=why,
    )  # fmt: skip


def level_of(known: BucketView | None) -> Level | None:
    """What the judge holds a bucket against; None where it has nothing yet."""
    if known is None or known.depth is None or (known.baseline is None and known.pinned is None):
        return None
    return Level(
        depth=known.depth, baseline=known.baseline, baseline_sequences=known.baseline_sequences, pinned=known.pinned,
        pinned_sequences=known.pinned_sequences,
    )  # fmt: skip


def _cost(recent: Recent, members: Mapping[int, Runner], models: Mapping[Runner, StepModel]) -> float | None:
    """c at the present batch, by the engine that is known best; None where a draft or a vanilla step was never seen."""
    assert recent.batch is not None
    for runner in dict.fromkeys(members.values()):
        model = models.get(runner)
        if model is None or not model.drafting_steps:
            continue
        vanilla = model.vanilla_ms(recent.batch, recent.context)
        if vanilla is not None and float(vanilla) > 0:
            return model.coefficients.passes / float(vanilla)
    return None


def _theory(recent: Recent, cost: float | None, max_k: int) -> tuple[list[float], float | None]:
    acceptance = recent.conditional
    if cost is None or acceptance is None:
        return [], acceptance
    longest = min(LONGEST_CURVE, max([max_k, *(one.k for one in recent.by_k)]))
    return [formula_speedup(acceptance, k, cost) for k in range(longest + 1)], acceptance


def _measured(one: ByK) -> MeasuredK:
    found = one.speedup
    return MeasuredK(one.k, found.value, found.low, found.high, found.state, one.rows, one.batch)


def _sequence(one: Worst) -> WorstSequence:
    rows = [WorstRow(*row) for row in one.rows]
    return WorstSequence(
        name=one.name, steps=one.steps, drafted=one.drafted, accepted=one.accepted, alpha=one.alpha, rows=rows
    )
