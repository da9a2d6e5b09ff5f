"""Arrays that grow, and arrays inside of records that are kept as JSON."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any, TypeVar, get_origin

import msgspec
import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", bound=np.generic)
Memory = TypeVar("Memory", bound=msgspec.Struct)


def columns_at_least(array: npt.NDArray[Number], length: int, axis: int) -> npt.NDArray[Number]:
    """The array with zeros after it, so that `axis` is at least `length` long."""
    missing = length - array.shape[axis]
    if missing <= 0:
        return array
    return np.pad(array, [(0, missing if place == axis else 0) for place in range(array.ndim)])


def packed(memory: msgspec.Struct) -> dict[str, Any]:
    """A record as plain values that JSON can hold; arrays become their shape, their type and their bytes."""
    plain: dict[str, Any] = msgspec.to_builtins(memory, enc_hook=_pack, str_keys=True)
    return plain


def unpacked(plain: dict[str, Any], kind: type[Memory]) -> Memory:
    """The inverse of `packed`.

    Raises:
        msgspec.ValidationError: names the field that is not as it should be.
    """
    return msgspec.convert(plain, kind, dec_hook=_unpack, strict=False, str_keys=True)


def _pack(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, np.ndarray):
        raise NotImplementedError(f"{type(value)} can't be kept")
    return [value.dtype.str, list(value.shape), b64encode(np.ascontiguousarray(value).tobytes()).decode()]


def _unpack(kind: type, value: Any) -> Any:
    if get_origin(kind) is not np.ndarray and kind is not np.ndarray:
        raise NotImplementedError(f"{kind} can't be read back")
    try:
        dtype, shape, data = value
        return np.frombuffer(b64decode(data, validate=True), dtype=np.dtype(dtype)).reshape(shape).copy()
    except (TypeError, ValueError) as error:
        raise ValueError(f"not an array: {error}") from error  # msgspec adds the place
