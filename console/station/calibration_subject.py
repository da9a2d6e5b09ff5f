"""What a calibration is of: an engine's versions, limits and machine, and what of it there is to measure."""

from __future__ import annotations

from console.station.calibration_plan import Measured, batches
from console.station.calibration_result import Calibrated
from console.station.calibration_steps import StepCounts
from engine.hardware import processor
from engine.policy import PolicyState, base_k
from engine.records import EngineRecord
from store.buckets import model_version


class Subject:
    """An engine as it is now, and how far its calibration has come."""

    def __init__(self, record: EngineRecord, name: str, kept: Calibrated | None) -> None:
        """`name`: its fingerprint."""
        self.record = record
        self.fingerprint = name
        self.kept = kept
        self.counts = StepCounts()
        self.measured: dict[int, Measured] = {}
        self.tries = 0
        self.tried_at: float | None = None
        self.last = ""
        """Why the last try came to nothing."""


def fingerprint(record: EngineRecord, threads: int | None) -> str:
    """Everything that step times hang on, in words. Blocks: a GPU's name is asked of its driver.

    Args:
        threads: that the engine computes with where it was told so; None: all there are.
    """
    parallel = (record.data_parallel_size, record.tensor_parallel_size, record.pipeline_parallel_size)
    parts = [model_version(record), record.device, f"sequences {record.max_num_seqs}", f"K {record.max_k}"]
    if parallel != (1, 1, 1):
        parts.append("parallel {}/{}/{}".format(*parallel))
    return " | ".join([*parts, processor(record.device, threads)])


def drafting_sizes(state: PolicyState, record: EngineRecord) -> tuple[int, ...]:
    """Batch sizes at which the policy drafts. At the others it is K = 0 anyway: traffic itself measures them."""
    if state.fallback:
        return ()
    cap = record.max_k if state.cap is None else min(state.cap, record.max_k)
    sizes = batches(record.max_num_seqs)
    return tuple(size for size in sizes if min(cap, base_k(state.policy, size, record.max_k)) > 0)


def never(record: EngineRecord, state: PolicyState) -> str | None:
    """Why there is nothing to calibrate in this engine under this mode; None where there is."""
    if record.max_k == 0:
        return "the engine does not draft"
    if record.batch_k == "fixed":
        return "this engine's batch K can't move, so that no step at K = 0 can be measured"
    if state.policy.mode == "off":
        return "in mode off nothing is drafted"
    return None
