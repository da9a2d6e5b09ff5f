"""A workload whose drafts are worthless beside one whose drafts are good, in mode adaptive: it is turned off by tier 2,
tried again by probes, and has its drafts back once they have become good.

The drafter is a `custom_class` that knows the greedy continuations and plants errors (`tests.path.planted_proposer`).
The controller's windows and pauses are of seconds, so that all of it shows within minutes; the product's own are of
minutes (`engine.deciding.settings`).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final
from unittest.mock import patch

from console.feed.messages import WorkloadView
from console.station.deciding_settings import VARIABLE
from engine.models import resolve
from tests.path.planted_traffic import HOSTILE, PROPOSER, Traffic, environment, turned_off, view_of
from tests.path.served import Served, until
from tests.samples.recording import Recording, recording

LONGEST_PAUSE: Final = 40.0
BRISK: Final = {
    "window_s": 30.0, "recent_s": 10.0, "load_s": 10.0, "shortest_pause_s": 6.0, "longest_pause_s": LONGEST_PAUSE,
    "dwell_steps": 60, "probe_share": 0.03, "probe_wait_steps": 8, "score_steps": 100, "enough_rows": 20,
    "confidence": 0.8,
}  # fmt: skip
SEQUENCES: Final = {"each": 2, "hostile": 10}
"""At once. Of the hostile workload so many that its useless drafts cost more than step times vary on two cores: tier 2
must be sure."""
SETTLING: Final = 60.0
"""Most seconds that a change may take beside windows and pauses."""
HOSTILE_SECONDS: Final = 45.0
"""In which it is off and probed in vain."""
FRIENDLY_SECONDS: Final = 40.0
"""In which it has its drafts again."""


def record(folder: Path) -> Path:
    out = folder / "hostile.jsonl.zst"
    with recording(out) as recorded:
        plan = recorded.directory / "plan.json"
        settings = environment(plan) | {VARIABLE: json.dumps(BRISK)}
        with (
            patch.dict(os.environ, settings),
            recorded.serving("--drafter", PROPOSER, policy="adaptive") as served,
        ):
            _traffic(recorded, served, Traffic(served, plan, Path(resolve("bundled").path), **SEQUENCES))
    return out


def _traffic(recorded: Recording, served: Served, traffic: Traffic) -> None:
    with traffic.running():
        recorded.say("a hostile and a friendly workload")
        _wait(recorded, served, "no drafts for the hostile one", turned_off, SETTLING)
        _wait(recorded, served, "tier 2 has turned it off", _fallen, BRISK["window_s"] + SETTLING)
        time.sleep(HOSTILE_SECONDS)
        traffic.plant(0.0)
        recorded.say("its drafts are good from now on")
        _wait(recorded, served, "it has its drafts again", _drafts, LONGEST_PAUSE + SETTLING)
        time.sleep(FRIENDLY_SECONDS)
    assert set(traffic.statuses) == {200}, f"answers: {set(traffic.statuses)}"


def _wait(
    recorded: Recording, served: Served, what: str, found: Callable[[WorkloadView | None], bool], seconds: float
) -> None:
    """Until it is so of the hostile workload."""
    until(what, lambda: found(view_of(served, HOSTILE.workload)), seconds)
    view = view_of(served, HOSTILE.workload)
    recorded.say(f"{what}: {view.why if view else ''}")


def _fallen(view: WorkloadView | None) -> bool:
    return view is not None and view.fallback


def _drafts(view: WorkloadView | None) -> bool:
    """More than the one token that is asked for to see whether it is worth it."""
    return view is not None and not view.fallback and (view.k is None or view.k > 1)
