"""Training: AdamW in float32 with bfloat16 arithmetic, cosine schedule, held-out acceptance as the judge.

Everything follows from recipe and features. The state is written at every look at the held-out acceptance, so a killed
run goes on from the last one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import torch
from torch import Tensor

from engine.drafter import vocabulary
from engine.drafter.answers import HELD_OUT
from engine.drafter.batches import Batch, Entry, batches, entries, load
from engine.drafter.features import Shard
from engine.drafter.head import Head, Shape
from engine.drafter.held_out import HeldOut, acceptance
from engine.drafter.loss import cross_entropy
from engine.drafter.progress import Progress
from engine.drafter.recipe import Recipe
from engine.drafter.target import Target, device
from engine.drafter.work import Narrate, Work, WorkError, whole

BEST: Final = "best.pt"
EARLY: Final = "early.pt"
_STATE: Final = "state.pt"
_HISTORY: Final = "history.json"


class Look(msgspec.Struct, frozen=True):
    """One look at the held-out acceptance."""

    step: int
    loss: float
    """Mean training loss since the look before, nats."""
    trained: float
    """Share of the training places whose first draft was the target's token, since the look before."""
    held_out: HeldOut


class Parts(NamedTuple):
    """What stays the same through a run."""

    recipe: Recipe
    target: Target
    kept: Tensor
    """Target ids of the draft vocabulary."""
    draft_ids: Tensor
    """Draft id of each target id, or -1."""
    output_rows: Tensor
    """[draft vocabulary, width]: the target's own output layer for them."""


def train(work: Work, recipe: Recipe, model: Path, narrate: Narrate) -> list[Look]:
    """Fit a head and leave the best in `work.fit`. Returns the looks, the best of which is the one kept.

    Raises:
        WorkError: the features are missing.
    """
    training, apart = _shards(work)
    parts = _parts(work, recipe, model)
    torch.manual_seed(recipe.seed)
    run = _Run(parts, work.fit)
    if run.ended:
        return run.looks
    progress = Progress("fit", "steps", recipe.steps, run.step, narrate)
    for batch in _stream(entries(training), recipe, run.step):
        run.advance(load(batch))
        progress.advance(1, run.remark())
        if run.step % recipe.evaluate_every == 0 or run.step == recipe.steps:
            run.look(apart)
            narrate(describe(run.looks[-1]))
        if run.step == recipe.early_step:
            run.keep(EARLY)
        if run.ended:
            break
    return run.looks


def describe(look: Look) -> str:
    shares = ", ".join(
        f"{kind} " + "/".join(f"{share:.3f}" for share in found.conditional)
        for kind, found in look.held_out.kinds.items()
    )
    return f"fit: step {look.step}: loss {look.loss:.3f}, training {look.trained:.3f}; held out by position: {shares}"


def head_shape(target: Target, draft_vocabulary: int) -> Shape:
    config = target.config
    heads = config.num_attention_heads
    return Shape(
        hidden=config.hidden_size,
        inner=config.intermediate_size,
        heads=heads,
        key_heads=config.num_key_value_heads,
        head_width=getattr(config, "head_dim", None) or config.hidden_size // heads,
        depths=len(target.depths),
        draft_vocabulary=draft_vocabulary,
        norm_eps=config.rms_norm_eps,
        rope_theta=config.rope_parameters["rope_theta"],
    )


def _shards(work: Work) -> tuple[list[Shard], Shard]:
    folders = sorted(folder for folder in work.features.glob("[!.]*") if folder.name != HELD_OUT)
    apart = work.features / HELD_OUT
    if not folders or not apart.exists():
        raise WorkError(f"{work.features}: no features; run the stage before (specdeck drafter features)")
    return [Shard(folder) for folder in folders], Shard(apart)


def _parts(work: Work, recipe: Recipe, model: Path) -> Parts:
    target = Target(model)
    target.forget_layers()
    size = int(target.config.vocab_size)
    kept = vocabulary.choose(work, recipe.draft_vocabulary, size)
    ids = torch.from_numpy(vocabulary.draft_ids(kept, size))
    rows = torch.from_numpy(kept).to(device())
    return Parts(recipe, target, rows, ids.to(device()), target.output_rows(rows))


def _stream(found: list[Entry], recipe: Recipe, skipped: int) -> Iterator[list[Entry]]:
    """The batches of all epochs from step `skipped` on."""
    epoch = 0
    while True:
        order = batches(found, recipe.batch_tokens, recipe.seed, epoch)
        yield from order[skipped:]
        skipped = max(0, skipped - len(order))
        epoch += 1


class _Run:
    """The state of a training run: weights, optimiser, step, looks."""

    def __init__(self, parts: Parts, folder: Path) -> None:
        self._parts, self._folder = parts, folder
        recipe = parts.recipe
        self._head = Head(head_shape(parts.target, len(parts.kept))).to(device())
        with torch.no_grad():  # the draft vocabulary's rows of the target's own output layer: a good start
            self._head.lm_head.weight.copy_(parts.output_rows)
        self._optimiser = torch.optim.AdamW(
            self._head.parameters(), recipe.learning_rate, (0.9, 0.95), weight_decay=recipe.weight_decay, fused=True
        )
        self.step = 0
        self.looks: list[Look] = []
        self._losses: list[float] = []
        self._right: list[float] = []
        self._resume()

    @property
    def ended(self) -> bool:
        recipe = self._parts.recipe
        return self.step >= recipe.steps or len(self.looks) - 1 - self._best() >= recipe.patience

    def advance(self, batch: Batch) -> None:
        for group in self._optimiser.param_groups:
            group["lr"] = _learning_rate(self._parts.recipe, self.step)
        loss, right = _losses(self._head, batch, self._parts, _positions(self._parts.recipe, self.step))
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._head.parameters(), 1.0)
        self._optimiser.step()
        self.step += 1
        self._losses.append(loss.item())
        self._right.append(right)

    def look(self, apart: Shard) -> None:
        held_out = acceptance(self._head, self._parts.target, self._parts.kept, apart)
        self.looks.append(Look(self.step, _mean(self._losses), _mean(self._right), held_out))
        self._losses, self._right = [], []
        if self._best() == len(self.looks) - 1:
            self.keep(BEST)
        self._save()

    def keep(self, name: str) -> None:
        with whole(self._folder / name) as draft:
            torch.save({"head": self._head.state_dict(), "kept": self._parts.kept}, draft)

    def remark(self) -> str:
        return f"loss {_mean(self._losses[-20:]):.3f}, training acceptance {_mean(self._right[-20:]):.3f}"

    def _best(self) -> int:
        scores = [look.held_out.score for look in self.looks]
        return max(range(len(scores)), key=scores.__getitem__, default=-1)

    def _save(self) -> None:
        state = {"head": self._head.state_dict(), "optimiser": self._optimiser.state_dict(), "step": self.step}
        with whole(self._folder / _HISTORY) as draft:
            draft.write_text(json.dumps(msgspec.to_builtins(self.looks)))
        with whole(self._folder / _STATE) as draft:
            torch.save(state, draft)

    def _resume(self) -> None:
        path = self._folder / _STATE
        if not path.exists():
            return
        state: dict[str, Any] = torch.load(path, map_location=device())
        self._head.load_state_dict(state["head"])
        self._optimiser.load_state_dict(state["optimiser"])
        self.step = state["step"]
        looks = msgspec.json.decode((self._folder / _HISTORY).read_bytes(), type=list[Look])
        self.looks = [look for look in looks if look.step <= self.step]


def history(work: Work) -> list[Look]:
    """The looks of a run."""
    return msgspec.json.decode((work.fit / _HISTORY).read_bytes(), type=list[Look])


def _losses(head: Head, batch: Batch, parts: Parts, positions: int) -> tuple[Tensor, float]:
    """(weighted loss over the draft positions, share of first drafts that are the target's token)."""
    tokens, states = batch.tokens.to(device()), batch.states.to(device())
    following = parts.draft_ids[tokens[:, 2:]]
    # A token outside the draft vocabulary can't be drafted: nothing to learn there.
    trained = batch.trained[:, :-2].to(device()) & (following >= 0)
    wanted = _wanted(parts, states[:, 1:-1][trained])
    with torch.autocast(device().type, torch.bfloat16):
        embedded = torch.nn.functional.embedding(tokens[:, 1:-1], parts.target.embedding())
        outputs = head(embedded, states[:, :-2], positions)
    weights = [parts.recipe.position_decay**position for position in range(positions)]
    total = torch.zeros((), device=device())
    right = 0.0
    for position, (weight, output) in enumerate(zip(weights, outputs, strict=True)):
        loss, drafts = cross_entropy(output[trained], head.lm_head.weight, wanted)
        total = total + loss * (weight / sum(weights))
        if position == 0:
            right = (drafts == following[trained]).float().mean().item()
    return total, right


def _wanted(parts: Parts, states: Tensor) -> Tensor:
    """[n, depths × width] → [n, draft vocabulary]: the target's next-token probabilities within that vocabulary."""
    with torch.no_grad():
        logits = parts.target.normed(states) @ parts.output_rows.T
        return logits.float().softmax(-1).to(torch.bfloat16)


def _learning_rate(recipe: Recipe, step: int) -> float:
    """Linear warm-up, then a cosine down to a hundredth."""
    if step < recipe.warmup_steps:
        return recipe.learning_rate * (step + 1) / recipe.warmup_steps
    done = (step - recipe.warmup_steps) / max(1, recipe.steps - recipe.warmup_steps)
    return recipe.learning_rate * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, done))))


def _positions(recipe: Recipe, step: int) -> int:
    return max(positions for share, positions in recipe.unroll if step >= share * recipe.steps)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
