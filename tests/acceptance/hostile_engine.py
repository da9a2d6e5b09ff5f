"""On the real engine, with the product's own windows and pauses: a workload whose drafts are worthless beside one whose
drafts are good, two sequences each. The first goes to K = 0 by itself and stays there, turned off by tier 2 once the
window is over where the step times are known well enough for it; the second keeps its K. Then the drafts of the first
become good, and it has them again within the longest pause.

The drafter is a `custom_class` that knows the greedy continuations and plants errors (`tests.path.planted_proposer`):
it is never told K, so trimming does it all. Takes ten to twenty-five minutes.

    python -m tests.acceptance.hostile_engine
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from console.feed.messages import WorkloadView
from console.feed.protocol import History, HistoryParams
from engine.deciding.settings import DecidingSettings
from engine.models import resolve
from tests.acceptance.on_the_engine import measured
from tests.path.planted_traffic import (
    FRIENDLY,
    HOSTILE,
    PROPOSER,
    Traffic,
    environment,
    figures_of,
    turned_off,
    view_of,
)
from tests.path.served import Served, until

SETTINGS: Final = DecidingSettings()
SETTLING: Final = 120.0
"""Seconds that a change of K and its confirmation may take beside windows and pauses."""
LOOKED_AT: Final = 60.0
"""Seconds of rows that say what was executed."""
TRIED_K: Final = 0.1
"""Mean K of its rows while its drafts are worthless: now and then a single token is tried."""


class Log:
    """What was seen, with the seconds since the traffic began."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self.entries: list[dict[str, Any]] = []

    def seconds(self) -> float:
        return round(time.monotonic() - self._begun, 1)

    def note(self, what: str, **more: Any) -> None:
        self.entries.append({"at": self.seconds(), "what": what} | more)
        print(f"{self.seconds():7.1f} s  {what} {more or ''}", file=sys.stderr)

    def wait(self, what: str, served: Served, found: Callable[[WorkloadView | None], bool], seconds: float) -> float:
        """Until it is so of the hostile workload; when."""
        until(what, lambda: found(view_of(served, HOSTILE.workload)), seconds)
        view = view_of(served, HOSTILE.workload)
        self.note(
            what, k=view.k if view else None, fallback=view.fallback if view else None, why=view.why if view else ""
        )
        return self.seconds()


def main() -> bool:
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name:
        plan = Path(name) / "plan.json"
        os.environ |= environment(plan)
        served = Served(Path(name), "--drafter", PROPOSER, policy="adaptive", calibrated=True)
        return measured(
            "hostile_engine", served, lambda: _measure(served, Traffic(served, plan, Path(resolve("bundled").path)))
        )


def _measure(served: Served, traffic: Traffic) -> dict[str, Any]:
    log, began = Log(), time.time()
    with traffic.running():
        lost = log.wait("no drafts for the hostile workload", served, turned_off, SETTINGS.window_s + SETTLING)
        fell = _turned_off_by_tier_2(served, log)
        log.note("tier 2 in the first window" if fell is None else "tier 2 has turned it off", seconds=fell)
        off = _window(served, began + lost, time.time())
        log.note("since it went to K = 0", **off)
        traffic.plant(0.0)
        log.note("its drafts are good from now on")
        turned = log.seconds()
        back = log.wait(
            "it has drafts again, and more than one to see", served,
            lambda view: view is not None and not view.fallback and (view.k is None or view.k > 1),
            SETTINGS.longest_pause_s + SETTLING,
        )  # fmt: skip
        time.sleep(LOOKED_AT)
        after = _window(served, time.time() - LOOKED_AT, time.time())
        log.note("afterwards", **after)
    history = served.ask("policy_history", HistoryParams(limit=100), History).entries
    verdicts = {
        "the hostile workload goes to K = 0 by itself": lost <= SETTINGS.window_s + SETTLING,
        "and stays there but for tries": (off[HOSTILE.workload]["mean_k"] or 0.0) <= TRIED_K,
        "its friendly neighbour keeps its K": (off[FRIENDLY.workload]["mean_k"] or 0) >= 3,
        "it recovers within the longest pause": back - turned <= SETTINGS.longest_pause_s,
        "its drafts are executed again": (after[HOSTILE.workload]["mean_k"] or 0) >= 1,
        "every request was answered": set(traffic.statuses) == {200},
    }
    return {
        "batch": 4, "seconds_to_k0": lost, "seconds_to_fallback": fell, "seconds_to_recover": round(back - turned, 1),
        "longest_pause_s": SETTINGS.longest_pause_s, "window_s": SETTINGS.window_s, "off": off, "after": after,
        "requests": len(traffic.statuses), "log": log.entries, "verdicts": verdicts,
        "history": [f"{entry.ts:.0f} {entry.text}" for entry in reversed(history)],
    }  # fmt: skip


def _turned_off_by_tier_2(served: Served, log: Log) -> float | None:
    """Seconds from now until it did, and its window's worth of rows; None if it didn't: it must be sure, which on a
    machine whose step times vary by more than the drafts cost it can't be. Tier 1 keeps K at 0 then."""
    begun, fell = log.seconds(), None
    while log.seconds() - begun < SETTINGS.window_s + SETTLING:
        view = view_of(served, HOSTILE.workload)
        if view is not None and view.fallback:
            fell = round(log.seconds() - begun, 1)
            time.sleep(LOOKED_AT)
            break
        time.sleep(1.0)
    return fell


def _window(served: Served, since: float, until_: float) -> dict[str, dict[str, float | None]]:
    return figures_of(served.records(), since, until_)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
