"""Marginal gains on the time axis of a bucket's series."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from console.feed.bucket_detail import MarginalGain
from engine.records import ControlRecord
from store.figures import SeriesPoint


def with_marginals(points: Sequence[SeriesPoint], seconds: float, gains: Iterable[MarginalGain]) -> list[SeriesPoint]:
    """The last gain that was worked out in the cell of each point, which is `seconds` long."""
    last = {int(gain.ts // seconds): gain for gain in gains}
    return [_with(point, last.get(int(point.ts // seconds) - 1)) for point in points]


def _with(point: SeriesPoint, gain: MarginalGain | None) -> SeriesPoint:
    if gain is None:
        return point
    return replace(point, marginal=gain.gain, marginal_low=gain.low, marginal_high=gain.high)


def decided_gains(records: Iterable[ControlRecord], workload: str | None) -> Iterator[MarginalGain]:
    """What the controller had worked out when it decided about a workload: all that a recording holds of it."""
    for record in records:
        numbers = record.numbers or {}
        gain, k = numbers.get("marginal"), numbers.get("k_before") or numbers.get("k_after")
        if record.workload != workload or not isinstance(gain, int | float) or not isinstance(k, int):
            continue
        low, high, sequences = numbers.get("low"), numbers.get("high"), numbers.get("sequences")
        yield MarginalGain(
            ts=record.ts, k=k, gain=float(gain), low=low if isinstance(low, int | float) else None,
            high=high if isinstance(high, int | float) else None,
            sequences=sequences if isinstance(sequences, int) else 0,
        )  # fmt: skip
