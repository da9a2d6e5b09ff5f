"""A recording of a running station against the station itself: the same report, alerts and transitions in a replay.

The bundled engine serves four workloads without a pause while its policy is changed and it is killed once; a floor of
the realised speedup that it can't reach makes a second kind of alert. `specdeck trace record` runs meanwhile, and
`specdeck replay --headless` is given what came of it.

    python -m tests.acceptance.replayed_run [--minutes 10]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec

from console.traffic.prompts import MAX_TOKENS, TEMPERATURE, WORKLOADS, Workload, prompts
from engine.records import PolicyMode, StateRecord, StepRecord
from store.trace import read_records, trace_info
from tests.acceptance.on_the_engine import measured
from tests.path.served import SPECDECK, Served

MINUTES: Final = 10.0
FLOOR: Final = "4"
"""Realised speedup below which the station alerts: out of reach."""
WINDOW: Final = 300.0
"""The judge's shortest: they end at multiples of it."""
QUIET: Final = 40.0
"""Traffic ends so long after the end of a window, so that the station has judged it."""
LATER: Final = 0.001
"""Seconds by which the station's report begins later than the replay's: the step before the first of the recording
ended where that began, to the rounding of a clock."""
STREAMS: Final = WORKLOADS
KINDS: Final = ("kind", "engine", "bucket", "state", "started", "ended")


def main(minutes: float = MINUTES) -> bool:
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name:
        served = Served(Path(name), "--speedup-floor", FLOOR, "--calibrate", "20", policy="static:4", calibrated=True)
        return measured("replayed_run", served, lambda: _measure(served, Path(name) / "run.jsonl.zst", minutes * 60))


def _measure(served: Served, out: Path, seconds: float) -> dict[str, Any]:
    with _traffic(served):
        time.sleep(45.0)  # the judge runs half a minute behind: it must know something when the recording begins
        # The last window ends while there is traffic, and long enough before the end to be judged by the station, too.
        quiet = (time.time() + seconds - QUIET) // WINDOW * WINDOW + WINDOW + QUIET
        span = quiet + 10.0 - time.time()
        recording = subprocess.Popen(
            [SPECDECK, "trace", "record", str(out), "--for", f"{span:.0f}s"], env=served.env, cwd=served.directory
        )
        _happen(served, quiet - time.time())
        time.sleep(max(0.0, quiet - time.time()))
    assert recording.wait(120.0) == 0
    return _compared(served, out, span)


def _happen(served: Served, seconds: float) -> None:
    """Changes of the mode all along, and the engine is killed once."""
    began = time.time()
    modes = [PolicyMode(mode="static", k=2), PolicyMode(mode="off"), PolicyMode(mode="static", k=4)]
    for number, mode in enumerate(modes, start=1):
        time.sleep(max(0.0, began + seconds * number / 8 - time.time()))
        served.policy(mode)
    time.sleep(max(0.0, began + seconds * 4 / 8 - time.time()))
    os.kill(served.pids()["engine_core"], signal.SIGKILL)
    time.sleep(5.0)
    served.wait_serving(120.0)
    time.sleep(max(0.0, began + seconds * 7 / 8 - time.time()))
    served.policy(PolicyMode(mode="static", k=3))


def _compared(served: Served, out: Path, span: float) -> dict[str, Any]:
    (state,) = [record for record in read_records(out) if isinstance(record, StateRecord)]
    times = [record.ts for record in read_records(out) if isinstance(record, StepRecord)]
    live = _json(served, "alerts", "--json")["alerts"]
    began = time.monotonic()
    replayed = _json(served, "replay", str(out), "--headless", "--speed", "max", "--json")
    took = time.monotonic() - began
    over = replayed["report"]["window"]
    window = f"{over['end'] - over['start'] - LATER:.6f}"
    seen = _json(served, "report", "--json", "--window", window, "--at", f"{over['end']:.6f}")
    alerts = [_alert(one) for one in live if one["ended"] is None or one["ended"] >= state.ts]
    again = [_alert(one) for one in replayed["alerts"]]
    differ = _differences(_figures(seen), _figures(replayed["report"]))
    changes = [[one for one in report["transitions"] if one["ts"] > times[0]] for report in (seen, replayed["report"])]
    info = trace_info(out)
    return {
        "seconds": round(span), "steps": info.steps, "rows": info.rows, "trace_bytes": info.bytes,
        "state_bytes": len(json.dumps(state.state)), "replay_seconds": round(took, 2), "transitions": len(changes[0]),
        "alerts": alerts, "figures_that_differ": differ,
        "alerts_that_differ": [one for one in (*alerts, *again) if (one in alerts) != (one in again)],
        "evidence_that_differs": _evidence(live, replayed["alerts"]),
        "verdicts": {
            "alerts of the speedup and of the killed engine": {"speedup_floor", "engine_down"}
            <= {one["kind"] for one in alerts},
            "the same report": not differ,
            "the same alerts at the same times": sorted(map(str, alerts)) == sorted(map(str, again)),
            "the same transitions": changes[0] == changes[1] != [],
        },
    }  # fmt: skip


def _json(served: Served, *arguments: str) -> Any:
    done = served.specdeck(*arguments)
    assert done.stdout, f"specdeck {' '.join(arguments)}: {done.stderr}"
    return json.loads(done.stdout)


def _alert(alert: dict[str, Any]) -> dict[str, Any]:
    return {name: alert[name] for name in KINDS}


def _evidence(live: list[dict[str, Any]], replayed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of alerts that both have: what the numbers differ in."""
    found = []
    for one in live:
        for other in replayed:
            if _alert(one) == _alert(other) and (differ := _differences(one["evidence"], other["evidence"])):
                found.append({"kind": one["kind"], "differ": differ})
    return found


def _figures(report: dict[str, Any]) -> dict[str, Any]:
    buckets = {json.dumps([one[key] for key in _BUCKET]): one for one in report["buckets"]}
    return {"total": report["total"], "mismatches": report["mismatches"], **buckets}


_BUCKET: Final = ("workload", "context", "temperature", "model_version")


def _differences(one: Any, other: Any, place: str = "") -> list[str]:
    """Places at which plain values differ, figures by more than the last places of a sum."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted(one.keys() | other.keys())
        return [found for key in keys for found in _differences(one.get(key), other.get(key), f"{place}/{key}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [found for number, (a, b) in pairs for found in _differences(a, b, f"{place}/{number}")]
    if isinstance(one, float) and isinstance(other, float | int):
        most = 1e-5 if place.endswith("tokens_per_second") else 1e-9  # the window is shorter by `LATER`
        if abs(one - other) <= most * max(1.0, abs(one)):
            return []
    return [] if one == other else [f"{place}: {one} live, {other} replayed"]


@contextmanager
def _traffic(served: Served) -> Iterator[None]:
    """Requests without a pause, from as many streams as there are in `STREAMS`. A killed engine's are tried again."""
    over = threading.Event()
    model = served.model()
    threads = [
        threading.Thread(target=_send, args=(served, model, workload, number, over), daemon=True)
        for number, workload in enumerate(STREAMS)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(30.0)


def _send(served: Served, model: str, workload: Workload, number: int, over: threading.Event) -> None:
    source = random.Random(number)
    while not over.is_set():
        body = {
            "model": model, "messages": [msgspec.to_builtins(one) for one in source.choice(prompts(workload))],
            "temperature": TEMPERATURE[workload], "max_tokens": source.choice(MAX_TOKENS[workload]),
        }  # fmt: skip
        try:
            headers = {"x-workload": workload}
            httpx.post(f"{served.url}/v1/chat/completions", json=body, headers=headers, timeout=60.0).raise_for_status()
        except httpx.HTTPError:
            over.wait(1.0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    sys.exit(0 if main(parser.parse_args().minutes) else 1)
