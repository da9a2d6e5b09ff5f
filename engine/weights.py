"""A fingerprint of a model's weights: a fine-tune pushed under the same name is another version.

Reading every byte of a large model takes minutes, so one block of every tensor is read instead (the safetensors header
says where each lies); training moves every tensor it touches. The same weights give the same fingerprint wherever they
lie and whenever they were copied: neither paths nor times take part.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

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


class Tensor(NamedTuple):
    """A tensor of a safetensors file; `start` and `end` are bytes of the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def weight_files(folder: Path) -> list[Path]:
    """The files of `folder` that hold weights, by name. Safetensors alone where there are any, as vLLM prefers them."""
    files = sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES and path.is_file())
    tensors = [path for path in files if path.suffix == ".safetensors"]
    return tensors or files


def fingerprint(folder: Path) -> str:
    """Fingerprint of the weights in `folder`: `FINGERPRINT_LENGTH` hex digits.

    Raises:
        NoWeightsError: no weight file, or a broken safetensors file.
    """
    files = weight_files(folder)
    if not files:
        raise NoWeightsError(f"{folder}: no weights (none of {', '.join('*' + suffix for suffix in _SUFFIXES)})")
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            for start in _offsets(path):
                file.seek(start)
                digest.update(file.read(BLOCK))
    return digest.hexdigest()[:FINGERPRINT_LENGTH]


def tensors(path: Path) -> list[Tensor]:
    """The tensors of a safetensors file, by name; reads its header alone.

    Raises:
        NoWeightsError: the file is damaged or was cut short.
    """
    size = path.stat().st_size
    length, header = _header(path, size)
    found = [_tensor(path, name, entry, 8 + length) for name, entry in header.items() if name != "__metadata__"]
    if any(tensor.end > size for tensor in found):
        raise NoWeightsError(f"{path}: shorter than its header says; it was cut short")
    return sorted(found)


def _offsets(path: Path) -> Iterable[int]:
    """Where to read in a file: the middle of each tensor, or evenly where the layout is unknown."""
    if path.suffix == ".safetensors":
        return (max(tensor.start, (tensor.start + tensor.end) // 2 - BLOCK // 2) for tensor in tensors(path))
    size = path.stat().st_size
    return range(0, size, max(BLOCK, size // EVEN_BLOCKS))


def _tensor(path: Path, name: str, entry: Any, data: int) -> Tensor:
    """`data`: where in the file the tensors' bytes begin."""
    try:
        first, last = entry["data_offsets"]
        return Tensor(name, str(entry["dtype"]), tuple(entry["shape"]), data + first, data + last)
    except (KeyError, TypeError, ValueError):
        raise NoWeightsError(f"{path}: tensor {name!r} has no data_offsets; the file is damaged") from None


def _header(path: Path, size: int) -> tuple[int, dict[str, Any]]:
    """Length in bytes, and what it says."""
    with path.open("rb") as file:
        head = file.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
        if not 0 < length <= min(_LONGEST_HEADER, size - 8):
            raise NoWeightsError(f"{path}: no safetensors header; the file is damaged or was cut short")
        encoded = file.read(length)
    try:
        header = msgspec.json.decode(encoded)
    except msgspec.DecodeError as error:
        raise NoWeightsError(f"{path}: broken safetensors header ({error})") from error
    if not isinstance(header, dict):
        raise NoWeightsError(f"{path}: broken safetensors header (not an object)")
    return int(length), header
