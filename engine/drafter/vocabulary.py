"""The draft vocabulary: the tokens a head can draft, the most frequent of the answers it is trained on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.drafter import answers
from engine.drafter.work import Work, WorkError

Ids = npt.NDArray[np.int64]


def choose(work: Work, size: int, vocabulary: int) -> Ids:
    """Target ids of the draft vocabulary, ascending: [min(size, vocabulary)].

    Raises:
        WorkError: no answers to count.
    """
    counts = np.zeros(vocabulary, dtype=np.int64)
    for path in answers.training_shards(work):
        for exchange in answers.read(path):
            np.add.at(counts, exchange.answer, 1)
    if not counts.any():
        raise WorkError(f"{work.answers}: no training answers; run the stage before (specdeck drafter answers)")
    # Ties, and tokens never seen, go by id: low ids are the frequent merges of a byte-pair vocabulary.
    order = np.lexsort((np.arange(vocabulary), -counts))
    return np.sort(order[:size])


def draft_ids(kept: Ids, vocabulary: int) -> Ids:
    """[vocabulary]: the draft id of each target id, -1 where it has none."""
    ids = np.full(vocabulary, -1, dtype=np.int64)
    ids[kept] = np.arange(len(kept))
    return ids
