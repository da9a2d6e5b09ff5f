"""How a run stands, and what it came to."""

from __future__ import annotations

from collections import Counter

import msgspec

from console.traffic.client import Outcome
from console.traffic.prompts import WORKLOADS, Workload


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """A run at one moment. Errors and sheds are by kind."""

    phase: str
    seconds_left: float
    sent: int
    done: int
    in_flight: int
    errors: dict[str, int]
    shed: dict[str, int]
    """Requests that were due but not sent: `in-flight limit`, or `server down`."""
    tokens_per_second: float
    """Output tokens of finished requests over the last progress interval."""
    note: str = ""
    """One line about trouble, empty when there is none."""


class WorkloadResult(msgspec.Struct, frozen=True):
    """Latencies in seconds, from the moment a request was to be sent to the end of its answer."""

    done: int
    errors: int
    output_tokens: int
    latency_p50: float | None
    latency_p95: float | None


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run."""

    profile: str
    seed: int
    scale: float
    """Factor on the profile's rates that was used."""
    seconds: float
    interrupted: bool
    sent: int
    done: int
    errors: dict[str, int]
    shed: dict[str, int]
    workloads: dict[Workload, WorkloadResult]


class Tally:
    """Counts what happens; `progress` and `result` show it."""

    def __init__(self) -> None:
        self.sent = 0
        self.done = 0
        self.errors: Counter[str] = Counter()
        self.shed: Counter[str] = Counter()
        self.output_tokens = 0
        self.last_error = ""
        self._latencies: dict[Workload, list[float]] = {workload: [] for workload in WORKLOADS}
        self._tokens: Counter[Workload] = Counter()
        self._failed: Counter[Workload] = Counter()

    @property
    def in_flight(self) -> int:
        return self.sent - self.done - sum(self.errors.values())

    def ended(self, workload: Workload, outcome: Outcome, latency: float) -> None:
        self.output_tokens += outcome.output_tokens
        self._tokens[workload] += outcome.output_tokens
        if outcome.error is None:
            self.done += 1
            self._latencies[workload].append(latency)
        else:
            self.errors[outcome.error] += 1
            self._failed[workload] += 1
            self.last_error = f"{outcome.error}: {outcome.detail}"

    def workload_results(self) -> dict[Workload, WorkloadResult]:
        return {
            workload: WorkloadResult(
                done=len(latencies),
                errors=self._failed[workload],
                output_tokens=self._tokens[workload],
                latency_p50=_quantile(latencies, 0.50),
                latency_p95=_quantile(latencies, 0.95),
            )
            for workload, latencies in self._latencies.items()
        }


def _quantile(values: list[float], share: float) -> float | None:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else None
