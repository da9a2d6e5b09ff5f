"""The station is killed with -9 for two minutes while two workloads are served: what the engine does meanwhile, as
vLLM's own detail in each answer tells it, and what is there once a station is back.

Before: adaptive has taken the drafts of a hostile workload by a K of its own, and a raise of the cap waits to be
confirmed. Expected: policy kept for a minute, then without adaptive's own K, so that the hostile workload drafts again;
the raise taken back at its deadline by the engine itself; no client notices; frames of the outage stored or counted as
lost in a gap; K and all figures there again afterwards.

    python -m tests.acceptance.station_gone
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from console.feed.protocol import PolicySet
from engine.models import resolve
from engine.policy.lapse import SILENCE_SECONDS
from engine.records import GapRecord, Record, StepRecord
from tests.acceptance.on_the_engine import measured
from tests.path.planted_traffic import FRIENDLY, HOSTILE, PROPOSER, Traffic, environment, turned_off, view_of
from tests.path.policies import set_policy
from tests.path.served import Served, until

GONE: Final = 120.0
CAP: Final = 3
CONFIRM: Final = 30.0
MARGIN: Final = 5.0
"""Seconds around a moment within which an answer says nothing: its steps lie on both sides."""
HOLE: Final = 1.5
"""Seconds without a step that are no ordinary pause under this load."""


def main() -> bool:
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name:
        plan = Path(name) / "plan.json"
        os.environ |= environment(plan)
        served = Served(
            Path(name), "--drafter", PROPOSER, "--calibrate", "30",
            "--engine-arg=--per-request-spec-decode-metrics=detailed", policy="adaptive", calibrated=True,
        )  # fmt: skip
        return measured(
            "station_gone", served, lambda: _measure(served, Traffic(served, plan, Path(resolve("bundled").path)))
        )


def _measure(served: Served, traffic: Traffic) -> dict[str, Any]:
    with traffic.running():
        until("no drafts for the hostile workload", lambda: turned_off(view_of(served, HOSTILE.workload)), 240.0)
        before = view_of(served, HOSTILE.workload)
        assert before is not None
        assert not before.fallback, "tier 2 was faster than tier 1: nothing of adaptive's own K would be seen"
        set_policy(served, PolicySet(cap=CAP))
        time.sleep(10.0)
        set_policy(served, PolicySet(cap=None, confirm=CONFIRM))
        killed = _kill(served)
        time.sleep(GONE / 2 + 20)
        served.specdeck("status")  # says that there is no station, and starts none
        time.sleep(max(0.0, killed + GONE - time.time()))
        served.serve_again()
        served.wait_serving(60.0)
        returned = time.time()
        until("the hostile workload's K is back", lambda: turned_off(view_of(served, HOSTILE.workload)), 30.0)
        time.sleep(20.0)
        picture = served.snapshot()
    records = served.records()
    drafted = {
        "hostile, station there": _most(traffic, HOSTILE.workload, killed - 10, killed),
        "hostile, first minute": _most(traffic, HOSTILE.workload, killed, killed + SILENCE_SECONDS - MARGIN),
        "hostile, second minute": _most(traffic, HOSTILE.workload, killed + SILENCE_SECONDS + MARGIN, killed + GONE),
        "friendly, raise unconfirmed": _most(traffic, FRIENDLY.workload, killed, killed + CONFIRM - 2 * MARGIN),
        "friendly, after its deadline": _most(traffic, FRIENDLY.workload, killed + CONFIRM + MARGIN, killed + GONE),
    }
    again = _each(traffic, HOSTILE.workload, returned + 2 * MARGIN, time.time())
    back = again.count(0) / max(len(again), 1)  # now and then one draft is tried, and probes are made
    gaps = [record for record in records if isinstance(record, GapRecord) and record.ts >= killed - 2]
    holes = _holes(records, killed - 2, returned + 2)
    stored = [record.ts for record in records if isinstance(record, StepRecord) and killed <= record.ts <= returned]
    verdicts = {
        "no client noticed": set(traffic.statuses) == {200},
        "the policy was kept for the first minute": drafted["hostile, first minute"] == 0,
        "then without adaptive's own K": (drafted["hostile, second minute"] or 0) >= 1,
        "which was there again with a station": back > 0.5,
        "the raise was executed until its deadline": drafted["friendly, raise unconfirmed"] == CAP + 1,
        "and taken back by the engine itself": drafted["friendly, after its deadline"] == CAP,
        "and the new station knows it": picture.cap == CAP and picture.unconfirmed is None,
        "frames of the outage are stored": bool(stored),
        "what is missing is a gap with its count": not holes or any((gap.frames_lost or 0) > 0 for gap in gaps),
    }
    return {
        "gone_seconds": round(returned - killed, 1), "most_drafted_a_step": drafted, "verdicts": verdicts,
        "stored_steps_of_the_outage": len(stored), "stored_until": max(stored) - killed if stored else None,
        "holes": [[round(start - killed, 1), round(end - killed, 1)] for start, end in holes],
        "gaps": [{"at": round(gap.ts - killed, 1), "frames_lost": gap.frames_lost} for gap in gaps],
        "requests": len(traffic.statuses), "hostile_answers_without_drafts_once_back": round(back, 3),
    }  # fmt: skip


def _kill(served: Served) -> float:
    os.kill(served.pids()["station"], signal.SIGKILL)
    served.process.wait(10)
    return time.time()


def _most(traffic: Traffic, workload: str, since: float, until_: float) -> int | None:
    """Longest draft of any step of the answers that lie wholly between two moments; None without any."""
    return max(_each(traffic, workload, since, until_), default=None)


def _each(traffic: Traffic, workload: str, since: float, until_: float) -> list[int]:
    """The longest draft of each of these answers."""
    mine = [one for one in traffic.answers if one.workload == workload]
    return [max(one.drafted, default=0) for one in mine if since <= one.sent and one.received <= until_]


def _holes(records: list[Record], since: float, until_: float) -> list[tuple[float, float]]:
    steps = sorted(record.ts for record in records if isinstance(record, StepRecord) and since < record.ts < until_)
    return [(one, other) for one, other in itertools.pairwise(steps) if other - one > HOLE]


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
