"""The target's states at every token of the answers, on disk: written and read as a stream, never held whole.

A shard is a folder: `states.bin` (bf16, [tokens, depths × width]), `tokens.bin` (int32) and `index.json`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import torch
from torch import Tensor

from engine.drafter import answers
from engine.drafter.answers import Answer
from engine.drafter.progress import Progress
from engine.drafter.recipe import Kind
from engine.drafter.target import Target
from engine.drafter.work import Narrate, Work, WorkError, draft_of

_PASS_TOKENS: Final = 3072
"""Tokens of a forward pass, padding included."""


class Span(msgspec.Struct, frozen=True):
    """One exchange in a shard."""

    kind: Kind
    temperature: float
    start: int
    """Its first token in the shard."""
    length: int
    answer: int
    """Tokens before the answer."""


class Index(msgspec.Struct, frozen=True):
    width: int
    """Values of a token's states."""
    spans: list[Span]


class Shard:
    """A finished shard, read where it is needed."""

    def __init__(self, folder: Path) -> None:
        self._index = msgspec.json.decode((folder / "index.json").read_bytes(), type=Index)
        self.spans = self._index.spans
        self._states = np.memmap(folder / "states.bin", dtype=np.int16, mode="r").reshape(-1, self._index.width)
        self._tokens = np.memmap(folder / "tokens.bin", dtype=np.int32, mode="r")

    def states(self, span: Span) -> Tensor:
        """[length, width], bf16"""
        values = np.array(self._states[span.start : span.start + span.length])
        return torch.from_numpy(values).view(torch.bfloat16)

    def tokens(self, span: Span) -> Tensor:
        """[length], int64"""
        return torch.from_numpy(self._tokens[span.start : span.start + span.length].astype(np.int64))


def extract(work: Work, model: Path, narrate: Narrate) -> None:
    """Write what is missing of `work.features`, a shard for each of `work.answers`."""
    paths = sorted(work.answers.glob("*.jsonl"))
    if not paths:
        raise WorkError(f"{work.answers}: no answers yet; run the stage before (specdeck drafter answers)")
    missing = [path for path in paths if not (work.features / path.stem).exists()]
    if not missing:
        return
    total = sum(path.stat().st_size for path in paths)
    left = sum(path.stat().st_size for path in missing)
    progress = Progress("features", "bytes of answers", total, total - left, narrate)
    target = Target(model)
    for path in missing:
        _extract_shard(answers.read(path), work.features / path.stem, target, progress, path.stat().st_size)


def _extract_shard(exchanges: list[Answer], folder: Path, target: Target, progress: Progress, size: int) -> None:
    draft = draft_of(folder)
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    spans: list[Span] = []
    start = done = 0
    with (draft / "states.bin").open("wb") as states, (draft / "tokens.bin").open("wb") as tokens:
        for batch in _batches(exchanges):
            ids = [exchange.prompt + exchange.answer for exchange in batch]
            padded = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in ids], batch_first=True)
            found = target.states(padded).cpu()
            for exchange, row, values in zip(batch, ids, found, strict=True):
                states.write(_bytes(values[: len(row)]))
                tokens.write(np.array(row, dtype=np.int32).tobytes())
                spans.append(Span(exchange.kind, exchange.temperature, start, len(row), len(exchange.prompt)))
                start += len(row)
            done += len(batch)
            progress.advance(size * len(batch) // len(exchanges))
    width = len(target.depths) * target.width
    (draft / "index.json").write_bytes(msgspec.json.encode(Index(width, spans)))
    draft.rename(folder)


def _batches(exchanges: list[Answer]) -> Iterator[list[Answer]]:
    """Neighbours in length together, so that little is padding."""
    batch: list[Answer] = []
    for exchange in sorted(exchanges, key=lambda exchange: -len(exchange.prompt) - len(exchange.answer)):
        longest = len(batch[0].prompt) + len(batch[0].answer) if batch else 0
        if batch and longest * (len(batch) + 1) > _PASS_TOKENS:
            yield batch
            batch = []
        batch.append(exchange)
    if batch:
        yield batch


def _bytes(values: Tensor) -> Any:
    return values.contiguous().view(torch.int16).numpy().tobytes()
