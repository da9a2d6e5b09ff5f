"""The order of arms, and which of them the others are held against."""

from __future__ import annotations

from collections.abc import Sequence

from store.rehearsal.plan import WITHOUT, fixed_k


def baseline_of(arms: Sequence[str]) -> str | None:
    """The best ordinary path: an engine without speculation where that was measured, else the fixed arm that drafts
    least, K = 0 wherever it takes part. None where there is neither."""
    fixed = sorted((arm for arm in arms if fixed_k(arm) is not None), key=lambda arm: fixed_k(arm) or 0)
    return WITHOUT if WITHOUT in arms else fixed[0] if fixed else None


def drafts(arm: str) -> int:
    """Orders fixed arms by how much they draft: none at all before K = 0."""
    k = fixed_k(arm)
    return -1 if k is None else k
