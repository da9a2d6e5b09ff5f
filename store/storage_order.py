"""The order in which the rows of a flush take the least space in DuckDB's column segments."""

from __future__ import annotations

from typing import Final

import numpy as np

from store.counts import Ints
from store.grouping import dense

STRETCH: Final = 8192
"""Rows that are ordered among themselves: longer stretches save on sequences what they cost on steps. Below 2¹⁶, where
numpy's stable sort of small numbers is a radix sort."""


def storage_order(sequence: Ints, context: Ints) -> Ints:
    """Places of the rows, given in the order they came (`context` in tokens), as they are best stored.

    Within a stretch the rows of a sequence stand together as they came, and sequences go by the context they begin
    with: sequence and bucket are then runs, and contexts that are packed together lie close. A quarter less than step
    by step.
    """
    starts = range(0, len(sequence), STRETCH)
    parts = [start + _order(sequence[start : start + STRETCH], context[start : start + STRETCH]) for start in starts]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _order(sequence: Ints, context: Ints) -> Ints:
    names, place = dense(sequence)
    first = np.empty(len(names), dtype=np.int64)
    first[place[::-1]] = context[::-1]  # of several values for one place the last assignment stays: the first row's
    rank = np.empty(len(names), dtype=np.uint16)
    rank[np.argsort(first, kind="stable")] = np.arange(len(names))
    order: Ints = np.argsort(rank[place], kind="stable")
    return order
