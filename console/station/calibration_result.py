"""What a calibration came to: the form in which it is kept, and the sentence in which it is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from console.station.calibration_plan import Measured
from console.station.calibration_steps import Cell, StepCounts
from store.retention import Keep


class BatchTimes(msgspec.Struct, frozen=True):
    """Of one batch size: counted steps and their mean duration, at K = 0 and at `k`."""

    batch: int
    k: int
    steps_vanilla: int
    steps_drafting: int
    ms_vanilla: float
    ms_drafting: float


class Calibrated(msgspec.Struct, frozen=True):
    """A complete calibration. `left_out`: batch sizes that did not fit into the time."""

    fingerprint: str
    ts: float
    """When it ended, Unix seconds."""
    seconds: float
    batches: list[BatchTimes]
    left_out: list[int] = []

    def sentence(self) -> str:
        """E.g. `batches 1–16 at K 0 and 4; 32 did not fit into the time`."""
        sizes = [times.batch for times in self.batches]
        span = f"batches {sizes[0]}–{sizes[-1]}" if len(sizes) > 1 else f"batch {sizes[0]}"
        lengths = sorted({0, *(times.k for times in self.batches)})
        text = f"{span} at K {', '.join(map(str, lengths[:-1]))} and {lengths[-1]}"
        left_out = ", ".join(map(str, self.left_out))
        return f"{text}; {left_out} did not fit into the time" if left_out else text


def kept_under(fingerprint: str) -> str:
    """The name under which the store keeps it."""
    return f"calibration {fingerprint}"


def read_calibrated(stored: bytes | None, now: float) -> Calibrated | None:
    """What is still worth something: the step times themselves are kept for a limited time only. None for nothing."""
    if stored is None:
        return None
    try:
        found = msgspec.json.decode(stored, type=Calibrated)
    except msgspec.DecodeError:
        return None  # of another version of ours: it is measured again
    return found if now - found.ts < Keep().totals_seconds else None


def calibrated(
    fingerprint: str,
    now: float,
    seconds: float,
    sizes: Sequence[int],
    measured: Mapping[int, Measured],
    counts: StepCounts,
) -> Calibrated | None:
    """None where not a single batch size is known."""
    times = [_times(size, counts) for size in sizes if size in measured and measured[size].known]
    known = {found.batch for found in times}
    if not times:
        return None
    return Calibrated(fingerprint, now, round(seconds, 3), times, [size for size in sizes if size not in known])


def _times(size: int, counts: StepCounts) -> BatchTimes:
    vanilla, drafting = Cell(size, "vanilla"), Cell(size, "drafting")
    return BatchTimes(
        size,
        counts.k(drafting) or 0,
        counts.steps(vanilla),
        counts.steps(drafting),
        round(counts.mean_ms(vanilla) or 0.0, 3),
        round(counts.mean_ms(drafting) or 0.0, 3),
    )
