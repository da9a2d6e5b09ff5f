"""A fingerprint of a model's weights: a fine-tune pushed under the same name is another version.

Reading every byte of a large model takes minutes, so one block of every tensor is read instead (the safetensors header
says where each lies); training moves every tensor it touches. The same weights give the same fingerprint wherever they
lie and whenever they were copied: neither paths nor times take part.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

BLOCK: Final = 4096
"""Bytes read of each tensor, from its middle."""

EVEN_BLOCKS: Final = 512
"""Blocks read of a file whose layout is unknown, evenly spaced."""

FINGERPRINT_LENGTH: Final = 16
"""Hex digits of a fingerprint."""

_SUFFIXES: Final = (".safetensors", ".bin", ".pt", ".pth", ".gguf")
_LONGEST_HEADER: Final = 256 * 1024 * 1024


class NoWeightsError(ValueError):
    """A folder without weight files, or with one that cannot be read as what its name says."""


def weight_files(folder: Path) -> list[Path]:
    """The files of `folder` that hold weights, by name. Safetensors alone where there are any, as vLLM prefers them."""
    files = sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES and path.is_file())
    tensors = [path for path in files if path.suffix == ".safetensors"]
    return tensors or files


def fingerprint(folder: Path) -> str:
    """Fingerprint of the weights in `folder`: `FINGERPRINT_LENGTH` hex digits.

    Raises:
        NoWeightsError: no weight file, or a broken safetensors header.
    """
    files = weight_files(folder)
    if not files:
        raise NoWeightsError(f"{folder}: no weights (none of {', '.join('*' + suffix for suffix in _SUFFIXES)})")
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            for start in _offsets(path, file):
                file.seek(start)
                digest.update(file.read(BLOCK))
    return digest.hexdigest()[:FINGERPRINT_LENGTH]


def _offsets(path: Path, file: BinaryIO) -> Iterator[int]:
    size = path.stat().st_size
    if path.suffix == ".safetensors":
        return _tensor_offsets(path, file, size)
    step = max(BLOCK, size // EVEN_BLOCKS)
    return iter(range(0, size, step))


def _tensor_offsets(path: Path, file: BinaryIO, size: int) -> Iterator[int]:
    """Where to read in a safetensors file: the middle of each tensor, in the order of their names."""
    start = 8 + _header_length(path, file, size)
    for name, tensor in sorted(_header(path, file).items()):
        if name == "__metadata__":
            continue
        try:
            first, last = tensor["data_offsets"]
        except (KeyError, TypeError, ValueError):
            raise NoWeightsError(f"{path}: tensor {name!r} has no data_offsets; the file is damaged") from None
        yield start + max(first, (first + last) // 2 - BLOCK // 2)


def _header_length(path: Path, file: BinaryIO, size: int) -> int:
    file.seek(0)
    head = file.read(8)
    length = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
    if not 0 < length <= min(_LONGEST_HEADER, size - 8):
        raise NoWeightsError(f"{path}: no safetensors header; the file is damaged or was cut short")
    return int(length)


def _header(path: Path, file: BinaryIO) -> dict[str, Any]:
    length = _header_length(path, file, path.stat().st_size)
    try:
        header = msgspec.json.decode(file.read(length))
    except msgspec.DecodeError as error:
        raise NoWeightsError(f"{path}: broken safetensors header ({error})") from error
    if not isinstance(header, dict):
        raise NoWeightsError(f"{path}: broken safetensors header (not an object)")
    return header
