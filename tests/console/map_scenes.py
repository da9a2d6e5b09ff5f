"""An operating map, and snapshots of stations that hold one or rehearse, for the console's tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from console.feed.messages import MapSummary, RehearsalView, Snapshot
from store.operating_map.fingerprint import Fingerprint
from store.operating_map.records import CellArm, CellState, MapCell, OperatingMap, WorkloadCost
from store.rehearsal.plan import Mix, Phase, Plan, fixed_k
from tests.console import scenes

FOLDER = "~/.local/share/specdeck/rehearsals/20260921-1200-full"
LOADS = [(1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32)]
ARMS = ("without", "k0", "k1", "k2", "k4")
HELPS = {"code": 0.55, "repeat": 0.8, "chat": 0.38, "creative": 0.12}
"""Acceptance of each draft token."""

SCHEDULE = [(1, 2, 4), (3, 4, 2), (5, 8, 1), (9, 32, 0)]
HARDWARE = "Xeon 8488C, 2 threads"
STALE = ["hardware: Xeon 8488C, 2 threads then, EPYC 9R14, 4 threads now", "largest K: 4 then, 6 now"]


def fingerprint(**changes: Any) -> Fingerprint:
    values: dict[str, Any] = {
        "model_version": scenes.VERSION, "vllm": "0.32.0+cpu", "hardware": HARDWARE, "topology": "1/1/1", "max_k": 4,
        "max_num_seqs": 32, "max_model_len": 2048,
    }  # fmt: skip
    return Fingerprint(**{**values, **changes})


def gain(workload: str | None, arm: str, column: int) -> float:
    """Drafts help a lone sequence by what is accepted and cost more the more sequences run."""
    k = fixed_k(arm)
    if k is None:
        return 1.0
    helps = HELPS.get(workload, 0.5) if workload is not None else sum(HELPS.values()) / len(HELPS)
    tokens = sum(helps**depth for depth in range(k + 1))
    return tokens / (1.03 + k * (0.03 + 0.035 * column))


def cell(workload: str | None, column: int, repeats: int) -> MapCell:
    first, last = LOADS[column]
    if workload == "creative" and column == 5:
        return MapCell(workload=workload, first=first, last=last, state="not_measured")
    error = 0.03 + 0.004 * column
    arms: list[CellArm] = []
    for number, arm in enumerate(ARMS):
        value = gain(workload, arm, column)
        base = arm == "without"
        bounds = (None, None) if base or repeats < 2 else (value - error, value + error)
        rate = (38.0 - 4 * column) * value * ((first + last) / 2 if workload is None else 1)
        one = CellArm(
            arm=arm, k=fixed_k(arm) or 0, tokens_per_second=rate, gain=None if base else value, low=bounds[0],
            high=bounds[1], steps=1800 - 220 * column - 31 * number, repeats=repeats,
        )  # fmt: skip
        arms.append(one)
    best = max(arms, key=lambda arm: arm.tokens_per_second)
    state: CellState = "measured"
    if best.arm != "without" and best.low is not None and best.low <= 1.0:
        best, state = arms[0], "no_difference"
    return MapCell(
        workload=workload, first=first, last=last, state=state, best=best.arm, k=best.k, gain=best.gain, low=best.low,
        high=best.high, arms=arms,
    )  # fmt: skip


def operating_map(repeats: int = 3, workloads: Sequence[str] = tuple(HELPS), **changes: Any) -> OperatingMap:
    values: dict[str, Any] = {
        "id": "20260921-1200-full", "ts": scenes.NOW - 8100, "plan": "full", "fingerprint": fingerprint(),
        "baseline": "without", "repeats": repeats, "workloads": list(workloads), "loads": LOADS,
        "cells": [cell(name, column, repeats) for name in (None, *workloads) for column in range(len(LOADS))],
        "schedule": SCHEDULE,
        "costs": [
            WorkloadCost(workload="code", gain=1.29, low=1.25, high=1.33, own_best_gain=1.34),
            WorkloadCost(workload="repeat", gain=1.47, low=1.41, high=1.53, own_best_gain=1.62),
            WorkloadCost(workload="chat", gain=1.09, low=1.04, high=1.14, own_best_gain=1.12),
            WorkloadCost(workload="creative", gain=0.93, low=0.90, high=0.96, own_best_gain=1.00),
        ],
        "notes": ["9 to 16 running: k4 was measured for 27 steps only and takes no part."],
    }  # fmt: skip
    return OperatingMap(**{**values, **changes})


def summary(map_: OperatingMap, stale: Sequence[str] = ()) -> MapSummary:
    return MapSummary(id=map_.id, ts=map_.ts, plan=map_.plan, stale=list(stale), schedule=map_.schedule)


def mapped(stale: Sequence[str] = (), map_: OperatingMap | None = None, **changes: Any) -> Snapshot:
    """A calm station that holds a map."""
    return replace(scenes.calm(), map=summary(map_ or operating_map(), stale), **changes)


def rehearsal(**changes: Any) -> RehearsalView:
    values: dict[str, Any] = {
        "id": "20260921-1412-quick", "plan": "quick", "state": "running", "pass_number": 3, "passes": 10, "arm": "k2",
        "phase": "busy", "seconds_left": 452.0, "sent": 1204, "done": 1189, "errors": 0,
        "note": "the generator keeps up: lag 4 ms at the 99th percentile",
        "folder": "~/.local/share/specdeck/rehearsals/20260921-1412-quick", "pid": 5150,
    }  # fmt: skip
    return RehearsalView(**{**values, **changes})


def rehearsing(**changes: Any) -> Snapshot:
    """The same station while it rehearses. `changes`: of the rehearsal."""
    return mapped(rehearsal=rehearsal(**changes))


def plan(name: str, arms: tuple[str, ...], seconds: float, repeats: int = 1, survey: int = 1) -> Plan:
    phases = tuple(Phase(name=name, seconds=seconds / 2, rate=2.0) for name in ("quiet", "busy"))
    mix = (Mix(name="code", share=1.0, prompts="code", max_tokens=(64,)),)
    return Plan(name=name, arms=arms, mix=mix, phases=phases, repeats=repeats, survey=survey)


PLANS = {
    "smoke": plan("smoke", ("k0", "k2"), 60.0),
    "quick": plan("quick", ("k0", "k1", "k2", "k4"), 150.0),
    "full": plan("full", ("without", "k0", "k1", "k2", "k4", "proposed", "adaptive"), 600.0, 4, 2),
}
"""Stand for those that are built in, so that a picture does not change with them."""
