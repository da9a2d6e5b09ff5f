"""Training batches out of the feature shards: read as they are needed, in an order that seed and epoch give."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from engine.drafter.features import Shard, Span

_WINDOW: Final = 96
"""Exchanges sorted by length together: little padding, and still a mixed order."""


class Batch(NamedTuple):
    tokens: Tensor
    """[batch, length]"""
    states: Tensor
    """[batch, length, depths × width], bf16"""
    trained: Tensor
    """[batch, length], bool: places t whose token t+2 belongs to the answer. The last two places of an exchange have
    none."""


class Entry(NamedTuple):
    shard: Shard
    span: Span


def entries(shards: Sequence[Shard]) -> list[Entry]:
    return [Entry(shard, span) for shard in shards for span in shard.spans if span.length - span.answer > 1]


def batches(found: Sequence[Entry], batch_tokens: int, seed: int, epoch: int) -> list[list[Entry]]:
    """One epoch: every entry once, in batches of about `batch_tokens` tokens, padding included."""
    generator = random.Random(f"{seed} epoch {epoch}")
    order = generator.sample(found, len(found))
    grouped: list[list[Entry]] = []
    for start in range(0, len(order), _WINDOW):
        grouped += _packed(sorted(order[start : start + _WINDOW], key=lambda entry: entry.span.length), batch_tokens)
    generator.shuffle(grouped)
    return grouped


def _packed(by_length: list[Entry], batch_tokens: int) -> Iterator[list[Entry]]:
    batch: list[Entry] = []
    for entry in by_length:
        if batch and entry.span.length * (len(batch) + 1) > batch_tokens:
            yield batch
            batch = []
        batch.append(entry)
    yield batch


def load(batch: Sequence[Entry]) -> Batch:
    tokens = pad_sequence([entry.shard.tokens(entry.span) for entry in batch], batch_first=True)
    states = pad_sequence([entry.shard.states(entry.span) for entry in batch], batch_first=True)
    places = torch.arange(tokens.shape[1])
    first = torch.tensor([entry.span.answer for entry in batch])[:, None]
    length = torch.tensor([entry.span.length for entry in batch])[:, None]
    return Batch(tokens, states, (places + 2 >= first) & (places + 2 < length))
