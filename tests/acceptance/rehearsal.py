"""A whole rehearsal on the bundled engine: does load change which draft length helps, does the map see it, and does the
schedule that it proposes hold against the best fixed arm in every phase?

    python -m tests.acceptance.rehearsal [PLAN]      `full` by default: about an hour and a half, on a quiet machine

The report that `specdeck rehearse --out` writes is kept beside the figures, as `rehearsal.md`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import msgspec

from store.operating_map.records import OperatingMap
from store.rehearsal.plan import ADAPTIVE, PROPOSED, fixed_k
from store.rehearsal.result_records import Holding, RehearsalResult
from tests.acceptance.result import write
from tests.path.served import SPECDECK

REPORT: Final = Path(__file__).with_suffix(".md")


class Printed(msgspec.Struct):
    """What `specdeck rehearse --json` prints."""

    result: RehearsalResult
    map: OperatingMap


def main(plan: str = "full") -> bool:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name:
        places = {"SPECDECK_RUNTIME_DIR": f"{name}/run", "SPECDECK_DATA_DIR": f"{name}/data"}
        command = [SPECDECK, "rehearse", plan, "--json", "--out", str(REPORT)]
        done = subprocess.run(command, env=os.environ | places, stdout=subprocess.PIPE, check=False)
    if done.returncode not in (0, 1):
        return False
    printed = msgspec.json.decode(done.stdout, type=Printed)
    figures = {"seconds": round(time.monotonic() - began), **_figures(printed)}
    for claim, held in figures["verdicts"].items():
        print(f"{'holds' if held else 'DOES NOT HOLD'}: {claim}")
    print(write("rehearsal", figures))
    return all(figures["verdicts"].values())


def _figures(printed: Printed) -> dict[str, Any]:
    result, map = printed.result, printed.map
    return {
        "plan": result.plan.name,
        "passes": len(result.passes),
        "scale": result.scale,
        "generator_lag_max": max((made.lag.max for made in result.passes if made.lag is not None), default=None),
        "fallback": result.fallback,
        "spec_tax": result.spec_tax,
        "schedule": map.schedule,
        "mix": [cell for cell in map.cells if cell.workload is None],
        "holding": result.holding,
        "warnings": result.warnings,
        "verdicts": _verdicts(result, map),
    }  # fmt: skip


def _verdicts(result: RehearsalResult, map: OperatingMap) -> dict[str, bool]:
    longest = max(k for arm in result.arms if (k := fixed_k(arm)) is not None)
    gains = [
        (cell.first, arm.gain)
        for cell in map.cells
        for arm in cell.arms
        if cell.workload is None and arm.arm == f"k{longest}" and arm.gain is not None
    ]
    mix = [cell for cell in map.cells if cell.workload is None and cell.state != "not_measured"]
    return {
        f"the gain of K {longest} falls from the lightest load to the heaviest": gains[0][1] > gains[-1][1],
        "the map has another best arm under light load than under heavy": mix[0].best != mix[-1].best,
        "the proposed schedule holds against the best fixed arm in every phase": _holds(result, PROPOSED),
        "adaptive holds against the best fixed arm in every phase": _holds(result, ADAPTIVE),
        "the proposed schedule surely beats the worst fixed arm over the whole pass": _beats_worst(result),
        "K followed the schedule down to 0 and back": result.fallback is not None and result.fallback.passed,
    }


def _of(result: RehearsalResult, arm: str) -> list[Holding]:
    return [one for one in result.holding if one.arm == arm]


def _holds(result: RehearsalResult, arm: str) -> bool:
    found = _of(result, arm)
    return bool(found) and all(one.holds for one in found)


def _beats_worst(result: RehearsalResult) -> bool:
    whole = next((one for one in _of(result, PROPOSED) if one.phase is None), None)
    worst = None if whole is None else whole.against_worst
    return worst is not None and worst.low is not None and worst.low > 1.0


if __name__ == "__main__":
    sys.exit(not main(*sys.argv[1:]))
