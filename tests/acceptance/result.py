"""Write a measurement's result with the machine and the commit it was made on."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Any

import msgspec

HERE = Path(__file__).parent


def machine() -> dict[str, Any]:
    name = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            name = line.partition(":")[2].strip()
            break
    return {"cpu": name, "cores": os.cpu_count(), "python": platform.python_version(), "kernel": platform.release()}


def commit() -> str:
    git = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, cwd=HERE, check=False
    )
    return git.stdout.strip() or "unknown"


def write(name: str, figures: dict[str, Any]) -> Path:
    path = HERE / f"{name}.json"
    record = {"measurement": name, "date": time.strftime("%Y-%m-%d"), "commit": commit(), "machine": machine()}
    path.write_bytes(msgspec.json.format(msgspec.json.encode(record | figures), indent=1) + b"\n")
    return path
