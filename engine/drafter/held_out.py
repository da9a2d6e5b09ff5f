"""Acceptance on the held-out answers without an engine: what each draft position would have had accepted at
temperature 0, with a draft begun at every token of the answers."""

from __future__ import annotations

from typing import Final

import msgspec
import torch
from torch import Tensor

from engine.drafter.batches import Batch, batches, entries, load
from engine.drafter.features import Shard
from engine.drafter.head import Head
from engine.drafter.recipe import KINDS
from engine.drafter.target import Target, device

POSITIONS: Final = 4
_BATCH_TOKENS: Final = 4096


class KindAcceptance(msgspec.Struct, frozen=True):
    drafts: int
    """Places at which a draft was begun."""
    conditional: list[float]
    """Acceptance at each draft position, given that those before it were accepted."""


class HeldOut(msgspec.Struct, frozen=True):
    kinds: dict[str, KindAcceptance]

    @property
    def score(self) -> float:
        """Mean tokens accepted of a draft of two, over the kinds: what a run is judged by."""
        found = [kind.conditional[0] * (1 + kind.conditional[1]) for kind in self.kinds.values()]
        return sum(found) / len(found)


def acceptance(head: Head, target: Target, kept: Tensor, shard: Shard) -> HeldOut:
    """Acceptance by kind, from the greedy answers of a shard."""
    kinds: dict[str, KindAcceptance] = {}
    for kind in KINDS:
        found = [entry for entry in entries([shard]) if entry.span.kind == kind and entry.span.temperature == 0]
        counts = torch.zeros(POSITIONS + 1)
        with torch.inference_mode():
            for batch in batches(found, _BATCH_TOKENS, 0, 0):
                counts += _counts(head, target, kept, load(batch))
        if counts[0]:
            shares = [(counts[place + 1] / counts[place].clamp(min=1)).item() for place in range(POSITIONS)]
            kinds[kind] = KindAcceptance(int(counts[0]), shares)
    return HeldOut(kinds)


def _counts(head: Head, target: Target, kept: Tensor, batch: Batch) -> Tensor:
    """[positions + 1]: drafts begun, and how many had their first 1, 2, … tokens accepted."""
    tokens, states = batch.tokens.to(device()), batch.states.to(device())
    trained = batch.trained[:, :-2].to(device())
    with torch.autocast(device().type, torch.bfloat16):
        embedded = torch.nn.functional.embedding(tokens[:, 1:-1], target.embedding())
        outputs = head(embedded, states[:, :-2], POSITIONS)
        right = [_drafted(head, output, kept) == tokens[:, 2:] for output in outputs]
    length = trained.shape[1]
    # A draft begun at place s has its k-th token (from 0) at place s + k of the k-th pass. All must lie in the answer.
    begun = trained[:, : length - POSITIONS + 1] & trained[:, POSITIONS - 1 :]
    counts = [begun.sum()]
    for position, hits in enumerate(right):
        begun = begun & hits[:, position : length - POSITIONS + 1 + position]
        counts.append(begun.sum())
    return torch.stack(counts).float().cpu()


def _drafted(head: Head, output: Tensor, kept: Tensor) -> Tensor:
    return kept[head.lm_head(output).argmax(-1)]
