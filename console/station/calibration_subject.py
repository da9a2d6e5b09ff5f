"""What a calibration is of: an engine's versions, limits and machine, and what of it there is to measure."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Final

from console.station.calibration_plan import Measured, batches
from console.station.calibration_result import Calibrated
from console.station.calibration_steps import StepCounts
from engine.policy import PolicyState, base_k
from engine.records import EngineRecord
from store.buckets import model_version

_NVIDIA_SECONDS: Final = 20.0


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


def processor(device: str, threads: int | None = None) -> str:
    """The processor's name and how much of it there is."""
    if device == "cuda":
        return _gpus() or "unknown GPU"
    return f"{_cpu() or platform.machine()}, {threads or len(os.sched_getaffinity(0))} threads"


def _cpu(path: Path = Path("/proc/cpuinfo")) -> str | None:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)


def _gpus() -> str | None:
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    query = [program, "--query-gpu=name", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=_NVIDIA_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    names = sorted(line.strip() for line in done.stdout.splitlines() if line.strip())
    return ", ".join(names) or None
