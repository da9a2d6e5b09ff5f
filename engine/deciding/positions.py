"""Rows counted by draft position and sequence: the at-risk counts of definitions.md."""

from __future__ import annotations

from typing import Final

import numpy as np

from engine.deciding.sliding import Positions
from engine.frames import CAUSE_CODE
from engine.step_time.columns import Floats, Ints

_TOKEN_BUDGET: Final = CAUSE_CODE["token_budget"]


def positions_of(sequence: Ints, k_asked: Ints, drafted: Ints, accepted: Ints, cause: Ints, max_k: int) -> Positions:
    """Count decode rows; arrays of one length. A position that the token budget took away is censored: such a row
    counts at j ≤ d only."""
    asked = np.minimum(np.where(cause == _TOKEN_BUDGET, np.minimum(k_asked, drafted), k_asked), max_k)
    last = np.minimum(asked, accepted + 1)
    sequences, of = np.unique(sequence, return_inverse=True)
    return Positions(
        sequences,
        _reaching(of, last, len(sequences), max_k),
        _reaching(of, np.minimum(last, accepted), len(sequences), max_k),
        _reaching(np.zeros_like(of), asked, 1, max_k)[0],
        _reaching(np.zeros_like(of), np.minimum(asked, drafted), 1, max_k)[0],
    )


def _reaching(of: Ints, last: Ints, groups: int, max_k: int) -> Floats:
    """(groups, max_k): in each group, the rows whose last position is j or later."""
    ending = np.bincount(of * (max_k + 1) + last, minlength=groups * (max_k + 1)).reshape(groups, max_k + 1)
    return np.asarray(ending[:, ::-1].cumsum(axis=1)[:, -2::-1], dtype=np.float64)
