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
from pathlib import Path
from typing import Final

from console.feed.messages import WorkloadView
from console.station.deciding_settings import VARIABLE
from engine.models import resolve
from tests.path.planted_traffic import HOSTILE, PROPOSER, Traffic, environment, view_of
from tests.path.served import Served, until
from tests.samples.recording import Recording, recording

LONGEST_PAUSE: Final = 40.0
BRISK: Final = {
    "window_s": 30.0, "recent_s": 10.0, "load_s": 10.0, "shortest_pause_s": 6.0, "longest_pause_s": LONGEST_PAUSE,
    "dwell_steps": 60, "probe_share": 0.03, "probe_wait_steps": 8, "score_steps": 100, "enough_rows": 20,
}  # fmt: skip
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
        os.environ |= environment(plan) | {VARIABLE: json.dumps(BRISK)}
        with recorded.serving("--drafter", PROPOSER, policy="adaptive", calibrated=True) as served:
            _traffic(recorded, served, Traffic(served, plan, Path(resolve("bundled").path)))
    return out


def _traffic(recorded: Recording, served: Served, traffic: Traffic) -> None:
    with traffic.running():
        recorded.say("a hostile and a friendly workload, two requests of each at once")
        until("tier 2 has turned it off", lambda: _fallen(_view(served)), BRISK["window_s"] + SETTLING)
        recorded.say("tier 2 has turned the hostile one off")
        time.sleep(HOSTILE_SECONDS)
        traffic.plant(0.0)
        recorded.say("its drafts are good from now on")
        until("it has its drafts again", lambda: _drafts(_view(served)), LONGEST_PAUSE + SETTLING)
        recorded.say("it has its drafts again")
        time.sleep(FRIENDLY_SECONDS)
    assert set(traffic.statuses) == {200}, f"answers: {set(traffic.statuses)}"


def _view(served: Served) -> WorkloadView | None:
    return view_of(served, HOSTILE.workload)


def _fallen(view: WorkloadView | None) -> bool:
    return view is not None and view.fallback


def _drafts(view: WorkloadView | None) -> bool:
    """More than the one token that is asked for to see whether it is worth it."""
    return view is not None and not view.fallback and (view.k is None or view.k > 1)
