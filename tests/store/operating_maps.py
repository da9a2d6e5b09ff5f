"""Small operating maps to test with."""

from __future__ import annotations

from typing import Any

from engine.records import EngineRecord
from store.operating_map.fingerprinting import fingerprint
from store.operating_map.records import CellArm, MapCell, OperatingMap, WorkloadCost
from tests.store.builders import T0, engine

HARDWARE = "Test CPU, 2 threads"


def arm(name: str, k: int, rate: float, **changed: Any) -> CellArm:
    return CellArm(arm=name, k=k, tokens_per_second=rate, steps=40, repeats=2, **changed)


def operating_map(of: EngineRecord | None = None, **changed: Any) -> OperatingMap:
    """Two loads of a mix and one workload, measured on an engine."""
    arms = [arm("k0", 0, 100.0), arm("k3", 3, 120.0, gain=1.2, low=1.1, high=1.3)]
    cells = [
        MapCell(workload=None, first=1, last=1, state="measured", best="k3", k=3, gain=1.2, low=1.1, high=1.3,
                arms=arms),
        MapCell(workload="code", first=1, last=1, state="no_difference", best="k0", k=0, arms=arms),
        MapCell(workload=None, first=2, last=8, state="not_measured"),
    ]  # fmt: skip
    fields: dict[str, Any] = {
        "id": "20260921T120000Z-quick", "ts": T0, "plan": "quick", "fingerprint": fingerprint(of or engine(), HARDWARE),
        "baseline": "k0", "repeats": 2, "workloads": ["code"], "loads": [(1, 1), (2, 8)], "cells": cells,
        "schedule": [(1, 1, 3), (2, 32, 0)],
        "costs": [WorkloadCost(workload="code", gain=0.98, own_best_gain=1.0)], "notes": ["one pass: nothing promised"],
    }  # fmt: skip
    return OperatingMap(**(fields | changed))
