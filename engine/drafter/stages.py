"""The stages in their order, and how one is run: in a process of its own, which leaves torch and vLLM with their memory
and their threads when it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal, get_args

import msgspec

from engine import launch
from engine.drafter import prompts
from engine.drafter.work import Narrate, Run, Work, WorkError, read_run, write_json
from engine.models import ModelPath, identify

Stage = Literal["prompts", "answers", "features", "fit", "export", "evaluate"]
STAGES: Final[tuple[Stage, ...]] = get_args(Stage)

_KV_CACHE_GIB: Final = 4
"""On a CPU: room for a generation batch."""


class StageError(Exception):
    """A stage failed: says which, with the end of its log."""


def run(stage: Stage, work: Work, narrate: Narrate) -> None:
    """Run one stage in a child process; it goes on where an earlier run of it was cut off.

    Raises:
        StageError: it failed.
        WorkError: another process is at work in the folder.
    """
    log = work.folder / f"{stage}.log"
    command = [sys.executable, "-m", "engine.drafter", stage, str(work.folder)]
    with (
        work.alone() as lock,
        log.open("ab") as output,
        subprocess.Popen(
            command,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=output,
            pass_fds=(lock,),
        ) as child,
    ):
        assert child.stdout is not None  # a pipe was asked for
        for line in child.stdout:
            narrate(line.decode(errors="replace").rstrip())
    if child.returncode != 0:
        tail = "\n  ".join(log.read_text(errors="replace").splitlines()[-12:])
        raise StageError(f"{stage} failed (exit code {child.returncode}); the end of {log}:\n  {tail}")


def environment() -> dict[str, str]:
    """Of a process that holds an engine in itself."""
    env = launch.vllm_environment(launch.installed_device(), dict(os.environ), kv_cache_gib=_KV_CACHE_GIB)
    return env | {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "HF_HUB_OFFLINE": "1",
        "PYTHONUNBUFFERED": "1",
        "NO_COLOR": "1",  # the output goes to a file
        "TQDM_DISABLE": "1",
    }


def here(stage: Stage, work: Work, narrate: Narrate) -> None:
    """Do a stage in this process.

    Raises:
        WorkError: the stage before it is missing.
    """
    found = read_run(work)
    _DO[stage](work, found, identify(Path(found.folder)), narrate)


def _prompts(work: Work, found: Run, model: ModelPath, narrate: Narrate) -> None:
    if not work.prompts.exists():
        write_json(work.prompts, prompts.build(found.recipe))
    sets = _sets(work)
    narrate(f"prompts: {len(sets.training):,} for training, {len(sets.held_out):,} held out")


def _answers(work: Work, found: Run, model: ModelPath, narrate: Narrate) -> None:
    from engine.drafter import answers

    answers.generate(work, _sets(work), found.recipe, model.path, narrate)


def _features(work: Work, found: Run, model: ModelPath, narrate: Narrate) -> None:
    from engine.drafter import features

    features.extract(work, Path(model.path), narrate)


def _fit(work: Work, found: Run, model: ModelPath, narrate: Narrate) -> None:
    from engine.drafter import fit

    fit.train(work, found.recipe, Path(model.path), narrate)


def _export(work: Work, found: Run, model: ModelPath, narrate: Narrate) -> None:
    from engine.drafter import export

    export.export(work, model)
    narrate(f"export: {work.head}")


def _evaluate(work: Work, found: Run, model: ModelPath, narrate: Narrate) -> None:
    from engine.drafter import card
    from engine.drafter.evaluation.evaluate import PLANS, evaluate

    if not work.head.exists():
        raise WorkError(f"{work.head}: no head; run the stage before (specdeck drafter export)")
    if not work.evaluation.exists():
        plan = PLANS[found.recipe.evaluation]
        write_json(work.evaluation, evaluate(work.head, model, _sets(work).held_out, plan, narrate))
    card.write(work, model)


def _sets(work: Work) -> prompts.PromptSets:
    if not work.prompts.exists():
        raise WorkError(f"{work.prompts}: no prompts; run the stage before (specdeck drafter prompts)")
    return msgspec.json.decode(work.prompts.read_bytes(), type=prompts.PromptSets)


_DO: Final[dict[Stage, Callable[[Work, Run, ModelPath, Narrate], None]]] = {
    "prompts": _prompts,
    "answers": _answers,
    "features": _features,
    "fit": _fit,
    "export": _export,
    "evaluate": _evaluate,
}
