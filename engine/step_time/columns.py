"""Columns of numbers as a database gives them, of any width: widened here, so that no product of them overflows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Groups(NamedTuple):
    """Which of `number` groups each row is in."""

    of: Ints
    number: int

    def sums(self, column: Floats) -> Floats:
        """The column's sum over each group."""
        return np.bincount(self.of, weights=column, minlength=self.number).astype(np.float64)


def widened(columns: Mapping[str, npt.ArrayLike], keys: Sequence[str], sums: Sequence[str]) -> list[Ints | Floats]:
    """The columns in the order of `keys`, as int64, then of `sums`, as float64.

    Raises:
        ValueError: a column is missing, unknown, or of another length than the first; it is named.
    """
    odd = sorted(set(columns) ^ {*keys, *sums})
    if odd:
        raise ValueError(f"columns are {', '.join((*keys, *sums))}: {', '.join(odd)} missing or unknown")
    found: list[Ints | Floats] = [np.atleast_1d(np.asarray(columns[name], dtype=np.int64)) for name in keys]
    found += [np.atleast_1d(np.asarray(columns[name], dtype=np.float64)) for name in sums]
    for name, column in zip((*keys, *sums), found, strict=True):
        if column.shape != (len(found[0]),):
            raise ValueError(f"column {name} has shape {column.shape}, column {keys[0]} {found[0].shape}")
    return found


def grouped(keys: Iterable[Ints]) -> Groups:
    """Rows that are equal in every key are one group."""
    keys = tuple(keys)
    rows = len(keys[0])
    order = np.lexsort(keys)
    fresh = np.zeros(rows, dtype=bool)
    fresh[:1] = True
    for key in keys:
        ordered = key[order]
        fresh[1:] |= ordered[1:] != ordered[:-1]
    of = np.empty(rows, dtype=np.int64)
    of[order] = np.cumsum(fresh) - 1
    return Groups(of, int(fresh.sum()))
