"""`specdeck drafter evaluate`: acceptance and speed of a head, on the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from console.cli.outcomes import BadInput, Unreachable, say

if TYPE_CHECKING:
    from engine.drafter.evaluation.result import Plan


@click.command(epilog="Example: specdeck drafter evaluate bundled --only acceptance")
@click.argument("head")
@click.option("--target", default="bundled", show_default=True, help="`bundled`, or a model folder.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: counts, intervals, plan, machine.")
@click.option("--quick", is_flag=True, help="A minute or two, to see that it works: the figures say little.")
@click.option("--only", type=click.Choice(["acceptance", "throughput"]), default=None, help="One of the two parts.")
def evaluate(
    head: str, target: str, as_json: bool, quick: bool, only: Literal["acceptance", "throughput"] | None
) -> None:
    """Acceptance per position by kind, draft length and temperature, and tokens/s against no speculation and n-grams.

    HEAD is a folder that `drafter export` wrote, `bundled` or `bundled-worse`. On held-out prompts of the full recipe,
    with the engine that serves. It takes long and wants the machine for itself; narration says how long.
    """
    from pathlib import Path

    import msgspec

    from engine import models
    from engine.drafter import prompts
    from engine.drafter.evaluation import heads
    from engine.drafter.evaluation.evaluate import FULL, TINY, ArmError, EvaluationError, table
    from engine.drafter.evaluation.evaluate import evaluate as measure
    from engine.drafter.recipe import FULL as RECIPE
    from engine.launch import SpecError

    try:
        model = models.resolve(target, say)
        if not model.local:
            raise BadInput(f"{target}: not on this machine; give a model folder")
        found = models.resolve_drafter(head, say)
        if not found.local:
            raise BadInput(f"{head}: not on this machine; give the folder of a head, bundled or bundled-worse")
        heads.check(Path(found.path), model)
        plan = _only(TINY if quick else FULL, only)
        evaluation = measure(Path(found.path), model, prompts.build(RECIPE).held_out, plan, say)
    except (models.ModelError, heads.HeadError, EvaluationError, SpecError) as error:
        raise BadInput(str(error)) from error
    except ArmError as error:
        raise Unreachable(str(error)) from error
    click.echo(msgspec.json.encode(evaluation).decode() if as_json else table(evaluation))


def _only(plan: Plan, part: str | None) -> Plan:
    import msgspec

    without = {"acceptance": "throughput", "throughput": "acceptance"}.get(part or "")
    return msgspec.structs.replace(plan, **{without: None}) if without else plan
