"""Everything a head depends on besides its target: amounts, seeds, steps. Two runs of one recipe do the same work."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, get_args

import msgspec


class RecipeError(ValueError):
    """A recipe that cannot be followed: names the field and what it may be."""


Kind = Literal["chat", "code", "rewrite", "creative", "languages"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Amounts are per run; a token is one of the target's."""

    name: str
    seed: int = 20
    prompts: dict[Kind, int] = {}
    """Training prompts of each kind at most (the kinds have so many as their topics and templates make)."""
    held_out: dict[Kind, int] = {}
    """Held-out prompts of each kind; their topics are in no training prompt."""
    greedy_share: float = 0.6
    """Share of the training answers at temperature 0; the others take one of `temperatures`."""
    temperatures: tuple[float, ...] = (0.4, 0.8, 1.0)
    max_answer_tokens: int = 192
    """Beyond it a small target repeats itself, which is easily foreseen and teaches little."""
    max_prompt_tokens: int = 640
    generation_batch: int = 96
    shard_prompts: int = 768
    """Prompts a shard: what an interrupted run loses at most."""

    draft_vocabulary: int = 8192
    """Tokens that the head can draft: the most frequent of the training answers."""
    batch_tokens: int = 4096
    """Tokens of an optimiser step, about."""
    steps: int = 3000
    learning_rate: float = 2e-3
    warmup_steps: int = 50
    weight_decay: float = 0.01
    unroll: tuple[tuple[float, int], ...] = ((0.0, 1), (0.3, 2), (0.75, 3))
    """(share of the steps done, draft positions trained from there on): training-time test of EAGLE-3."""
    position_decay: float = 0.8
    """Weight of a draft position's loss relative to the one before."""
    evaluate_every: int = 250
    """Steps between looks at held-out acceptance."""
    patience: int = 6
    """Looks without a better one after which the run stops early."""
    early_step: int = 400
    """The step whose weights are kept as the "worse version"."""
    evaluation: Literal["full", "tiny"] = "full"
    """How much is measured on the engine at the end (`engine.drafter.evaluation.evaluate`)."""


FIT_FIELDS: Final = frozenset({
    "draft_vocabulary", "batch_tokens", "steps", "learning_rate", "warmup_steps", "weight_decay", "unroll",
    "position_decay", "evaluate_every", "patience", "early_step", "evaluation",
})  # fmt: skip
"""What answers and features don't depend on."""

FULL: Final = Recipe(
    name="full",
    prompts={"chat": 6600, "code": 4200, "rewrite": 2000, "creative": 900, "languages": 500},
    held_out={"chat": 160, "code": 160, "rewrite": 64, "creative": 30, "languages": 12},
)
TINY: Final = Recipe(
    name="tiny",
    prompts={"chat": 24, "code": 12, "rewrite": 4, "creative": 4, "languages": 4},
    held_out={"chat": 6, "code": 6, "rewrite": 2, "creative": 2, "languages": 2},
    max_answer_tokens=48,
    max_prompt_tokens=256,
    generation_batch=24,
    shard_prompts=24,
    draft_vocabulary=1024,
    batch_tokens=512,
    steps=24,
    warmup_steps=4,
    evaluate_every=8,
    early_step=8,
    evaluation="tiny",
)
RECIPES: Final = {recipe.name: recipe for recipe in (FULL, TINY)}


def read(name: str) -> Recipe:
    """A recipe by its name, or from a TOML file whose keys are `Recipe`'s fields.

    Raises:
        RecipeError: no such recipe, or a file that is none.
    """
    if name in RECIPES:
        return RECIPES[name]
    path = Path(name)
    try:
        recipe = msgspec.toml.decode(path.read_bytes(), type=Recipe)
    except FileNotFoundError:
        raise RecipeError(f"{name}: neither a recipe ({', '.join(RECIPES)}) nor a file") from None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path}: {error}; its keys are those of `engine.drafter.recipe.Recipe`") from error
    validate(recipe)
    return recipe


def validate(recipe: Recipe) -> None:
    """Check that the amounts can be meant.

    Raises:
        RecipeError: names the field.
    """
    for field in _POSITIVE:
        if getattr(recipe, field) <= 0:
            raise RecipeError(f"{field}: {getattr(recipe, field)} must be above 0")
    for field in ("prompts", "held_out"):
        amounts = getattr(recipe, field)
        if not amounts or any(amount < 0 for amount in amounts.values()) or not any(amounts.values()):
            raise RecipeError(f"{field}: {amounts} must give a number of prompts for some kind")
    if not 0 <= recipe.greedy_share <= 1:
        raise RecipeError(f"greedy_share: {recipe.greedy_share} must be between 0 and 1")
    if any(temperature < 0 for temperature in recipe.temperatures) or not recipe.temperatures:
        raise RecipeError(f"temperatures: {recipe.temperatures} must be 0 or more, and at least one")
    if not recipe.unroll or recipe.unroll[0][0] != 0 or any(positions < 1 for _, positions in recipe.unroll):
        raise RecipeError(f"unroll: {recipe.unroll} must begin at share 0, with 1 or more draft positions each")


_POSITIVE: Final = (
    "max_answer_tokens", "max_prompt_tokens", "generation_batch", "shard_prompts", "draft_vocabulary", "batch_tokens",
    "steps", "learning_rate", "position_decay", "evaluate_every", "patience",
)  # fmt: skip
