"""Traces and recordings for the tests of the Traces screen. All times count from `scenes.NOW`."""

from __future__ import annotations

from typing import Any

from console.feed.messages import RecordingView
from console.feed.traces import TraceLook, TracePlace, Traces

NOW = 1_790_000_100.0
FOLDER = "/home/ada/.local/share/specdeck/traces"
HERE = "/home/ada/work"
SAMPLES = "/opt/specdeck/sample_traces"


def trace(name: str, **changes: Any) -> TraceLook:
    """One that is known whole."""
    values: dict[str, Any] = {
        "path": f"{FOLDER}/{name}", "place": "data", "bytes": 3_400_000, "modified": NOW - 3600, "state": "known",
        "form": "zst", "start": NOW - 7200, "end": NOW - 3600, "rows": 412_345, "sequences": 1204, "engines": 1,
        "target": "SmolLM2-135M-Instruct", "drafter": "ngram", "method": "ngram", "vllm": "0.32.0+cpu", "device": "cpu",
        "workloads": ["code", "chat", "creative"],
    }  # fmt: skip
    return TraceLook(**{**values, **changes})


def found() -> Traces:
    """Of each kind one: with text, plain, a bundle, broken, held, just seen, a sample."""
    nothing: dict[str, Any] = {"start": None, "end": None, "rows": None, "sequences": None, "workloads": []}
    unnamed: dict[str, Any] = {"target": "", "drafter": "", "method": "", "vllm": "", "device": "", "engines": None}
    return Traces(
        traces=[
            trace("new.jsonl", state="unread", form=None, bytes=120_000, modified=NOW - 5, **nothing, **unnamed),
            trace("night-with-prompts.jsonl.zst", text=True, notes=["text left out: 3 requests too long"]),
            trace("2026-09-21_1210.parquet", form="compact", drafter="eagle3-head@2", method="eagle3", engines=2),
            trace(
                "cut-off.parquet", state="broken", form="compact",
                reason="a Parquet file that can't be read: footer missing: it is cut off or damaged",
                **nothing, **unnamed,
            ),
            trace("run.duckdb", path=f"{HERE}/run.duckdb", place="here", state="held", form="store",
                  reason="process 4301 has it open", **nothing, **unnamed),
            trace("huge.jsonl.zst", path=f"{HERE}/huge.jsonl.zst", place="here", state="begun", bytes=900_000_000,
                  modified=NOW - 400 * 86_400, end=None, rows=None, start=NOW - 400 * 86_400),
            trace("demo.jsonl.zst", path=f"{SAMPLES}/demo.jsonl.zst", place="samples", bytes=73_000, rows=8281),
        ],
        places=places(here=2),
        folder=FOLDER,
    )  # fmt: skip


def none_yet() -> Traces:
    return Traces(traces=[], places=places(), folder=FOLDER)


def places(here: int = 0) -> list[TracePlace]:
    return [
        TracePlace(path=FOLDER, place="data"), TracePlace(path=SAMPLES, place="samples"),
        TracePlace(path=HERE, place="here", left_out=here),
    ]  # fmt: skip


def recording(**changes: Any) -> RecordingView:
    values: dict[str, Any] = {
        "id": "r1", "path": f"{FOLDER}/2026-09-21_1402.jsonl.zst", "state": "on", "actor": "operator",
        "began": NOW - 780, "since": NOW - 800, "seconds": None, "until": NOW + 85_620, "rows": 412_345,
        "bytes": 3_700_000,
    }  # fmt: skip
    return RecordingView(**{**values, **changes})


def unwritten() -> RecordingView:
    return recording(note=f"{FOLDER}/2026-09-21_1402.jsonl.zst: can't be written: No space left on device")
