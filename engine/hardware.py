"""What an engine computes with, in words: the processor or the GPUs, and how many threads."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Final

_NVIDIA_SECONDS: Final = 20.0


def processor(device: str, threads: int | None = None) -> str:
    """The processor's name and how much of it there is. Blocks: a GPU's name is asked of its driver.

    Args:
        threads: that the engine computes with where it was told so; None: all there are.
    """
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
