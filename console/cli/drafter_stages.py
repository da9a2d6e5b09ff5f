"""The stages of `specdeck drafter`: each alone, and all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from console.cli.outcomes import BadInput, CheckFailed, say

_RESULTS: Final = {
    "prompts": "prompts",
    "answers": "answers",
    "features": "features",
    "fit": "fit",
    "export": "head",
    "evaluate": "head",
}
"""What a stage leaves in the working folder; its path is what the command prints."""


def _stage(name: str, text: str) -> click.Command:
    @click.command(name, help=text, epilog=f"Example: specdeck drafter {name} --recipe tiny --work ./my-head")
    @_settings
    def command(target: str, recipe: str, work: str | None) -> None:
        _run(target, recipe, work, (name,))

    return command


def _settings(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option(
            "--work",
            default=None,
            metavar="FOLDER",
            help="Where the stages leave their results (full recipe: 17 GB); by default in the cache directory.",
        ),
        click.option("--recipe", default="full", show_default=True, help="`full`, `tiny` (minutes), or a TOML file."),
        click.option("--target", default="bundled", show_default=True, help="`bundled`, or a model folder."),
    ):
        command = option(command)
    return command


prompts = _stage("prompts", "Build the training and held-out prompts from templates, topics and Python's own library.")
answers = _stage("answers", "Let the target answer the prompts, through vLLM.")
features = _stage("features", "Write the target's hidden states at every token of the answers to disk.")
fit = _stage("fit", "Train the head on the features; stops early when held-out acceptance no longer rises.")
export = _stage(
    "export", "Write the head as a folder that vLLM loads, with its card, and an early checkpoint beside it."
)


@click.command(epilog="Example: specdeck drafter train --recipe tiny --work ./my-head")
@_settings
def train(target: str, recipe: str, work: str | None) -> None:
    """Train an EAGLE-3 head for a target: prompts, answers, features, fit, export, evaluation on the engine.

    Prints the folder of the head: give it to `specdeck serve --drafter`. Cut off, it goes on where it was.
    """
    from engine.drafter.stages import STAGES

    _run(target, recipe, work, STAGES)


def _run(target: str, recipe_name: str, folder: str | None, stages: tuple[str, ...]) -> None:
    from pathlib import Path

    from engine import models
    from engine.drafter import recipe as recipes
    from engine.drafter import stages as running
    from engine.drafter.work import Work, WorkError
    from engine.launch import SpecError
    from engine.places import cache_dir

    try:
        recipe = recipes.read(recipe_name)
        model = models.resolve(target, say)
        if not model.local:
            raise BadInput(f"{target}: not on this machine; give a model folder")
        work = Work(Path(folder) if folder else cache_dir() / "drafter" / f"{model.name}-{recipe.name}")
        work.claim(recipe, model)
        for stage in stages:
            running.run(stage, work, say)  # type: ignore[arg-type]  # one of STAGES
    except (recipes.RecipeError, models.ModelError, WorkError, SpecError) as error:
        raise BadInput(str(error)) from error
    except running.StageError as error:
        raise CheckFailed(str(error)) from error
    click.echo(str(getattr(work, _RESULTS[stages[-1]])))
