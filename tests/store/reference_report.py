"""A slow reference of a whole report: plain Python over the records of a trace, written from the definitions alone."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import msgspec

from engine.records import EngineRecord, GapRecord, Record, Row, SequenceRecord, StepRecord
from tests.store.reference import possible, reference, share

KEYS = ("workload", "context", "temperature", "model_version", "engine")
Name = tuple[str, ...]


def reference_report(records: Sequence[Record], by: Sequence[str]) -> dict[str, Any]:
    """Buckets by the values of the keys `by`, the total, and what was lost."""
    engines = {one.engine: one for one in records if isinstance(one, EngineRecord)}
    arrivals = {(one.engine, one.seq): one for one in records if isinstance(one, SequenceRecord)}
    steps = [one for one in records if isinstance(one, StepRecord)]
    gaps = [one for one in records if isinstance(one, GapRecord)]
    groups: dict[Name, list[tuple[Row, bool]]] = {}
    everything: list[tuple[Row, bool]] = []
    resumes: dict[tuple[str, str], Resume] = {}
    bad = 0
    for step in steps:
        for row in step.rows:
            if not possible(row):
                bad += 1
                continue
            of = step.engine, row.seq
            resumed = resumes.setdefault(of, Resume()).takes(row)
            names = bucket(arrivals[of], engines[step.engine], row)
            renamed = msgspec.structs.replace(row, seq="/".join(of)), resumed
            groups.setdefault(tuple(names[key] for key in by), []).append(renamed)
            everything.append(renamed)
    first = min(steps, key=lambda one: one.ts)
    start, end = first.ts - first.duration_ms / 1000, max(one.ts for one in steps)
    seconds = recorded(start, end, gaps, {one.engine for one in steps})
    return {
        "buckets": {name: figures(rows, seconds) for name, rows in groups.items()},
        "total": figures(everything, seconds),
        "window": (start, end),
        "quarantined": bad,
        "gaps": len(gaps),
        "frames_lost": sum(gap.frames_lost for gap in gaps),
    }


def figures(rows: Sequence[tuple[Row, bool]], seconds: float) -> dict[str, Any]:
    found = reference([row for row, _ in rows])
    resumed = [row for row, mark in rows if mark]
    ratios = sum(Fraction(row.accepted, row.drafted) for row in resumed)
    found["post_resume"] = {
        "steps": len(resumed),
        "drafted": sum(row.drafted for row in resumed),
        "accepted": sum(row.accepted for row in resumed),
        "alpha": share(ratios, len(resumed)),
    }
    found["tokens_per_second"] = found["emitted"] / seconds if seconds else None
    found["state"] = "blind" if not found["steps"] else "few" if found["few"] else "calibrating"
    found["speedup_state"] = "calibrating" if found["decode_rows"] else "absent"
    return found


class Resume:
    """The rows of one sequence as they come: its first 64 draft steps after 64 or more decode rows at K = 0."""

    def __init__(self) -> None:
        self.quiet = 0
        self.left = 0

    def takes(self, row: Row) -> bool:
        if row.cause == "prefill":
            return False
        if row.k_asked == 0:
            self.quiet += 1
            return False
        if self.quiet >= 64:
            self.left = 64
        self.quiet = 0
        if not self.left or not row.drafted:
            return False
        self.left -= 1
        return True


def bucket(sequence: SequenceRecord, engine: EngineRecord, row: Row) -> dict[str, str]:
    contexts = ((512, "0-512"), (2048, "512-2048"), (8192, "2048-8192"), (32768, "8192-32768"))
    temperature = sequence.temperature
    return {
        "engine": engine.engine,
        "workload": sequence.workload or "untagged",
        "context": next((label for edge, label in contexts if row.context < edge), "32768+"),
        "temperature": "unknown" if temperature is None else "0" if temperature <= 0
        else "(0,0.5]" if temperature <= 0.5 else "(0.5,1]" if temperature <= 1 else ">1",
        "model_version": f"{engine.target} | {engine.drafter} | {engine.method} | vllm {engine.vllm}",
    }  # fmt: skip


def recorded(start: float, end: float, gaps: Sequence[GapRecord], engines: set[str]) -> float:
    """Seconds in which at least one engine was recorded: between neighbouring edges nothing changes."""
    changes = [edge for gap in gaps for edge in (gap.since or gap.ts, gap.ts)]
    edges = sorted({start, end, *(edge for edge in changes if start < edge < end)})
    seconds = 0.0
    for left, right in pairwise(edges):
        middle = (left + right) / 2
        dark = {gap.engine for gap in gaps if gap.since is not None and gap.since < middle < gap.ts}
        if engines - dark:
            seconds += right - left
    return seconds
