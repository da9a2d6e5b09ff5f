"""The prompts that a workload of a plan draws from: a set of specdeck's own, or a file of the operator's."""

from __future__ import annotations

from pathlib import Path
from typing import Final, get_args

from console.rehearsing.plans.errors import PlanError, nearest, shown
from console.rehearsing.plans.prompt_files import SUFFIXES, Prompt, read_prompts
from console.traffic.prompts import MAX_TOKENS, TEMPERATURE, Workload, prompts
from store.rehearsal.records import Message

OURS: Final[dict[str, Workload]] = {name: name for name in get_args(Workload)}
"""Sets of the demo's traffic, by their names."""


def lengths_of(name: str) -> tuple[int, ...]:
    """Lengths of answer that go with a set of ours, tokens; empty for a file."""
    return MAX_TOKENS[OURS[name]] if name in OURS else ()


def temperature_of(name: str) -> float:
    """The temperature that goes with a set of ours; 0 for a file."""
    return TEMPERATURE[OURS[name]] if name in OURS else 0.0


def prompt_set(name: str) -> tuple[Prompt, ...]:
    """The prompts of a set of ours, or of the file of that path, never empty.

    Raises:
        PlanError: neither, or a file that is broken.
    """
    if name in OURS:
        made = prompts(OURS[name])
        return tuple(Prompt(tuple(Message(one.role, one.content) for one in prompt)) for prompt in made)
    if name.lower().endswith(SUFFIXES):
        return read_prompts(Path(name))
    raise PlanError(
        f"there are no prompts {shown(name)}{nearest(name, OURS)} (a set: {', '.join(OURS)}; or the path of a .jsonl "
        "or .csv)"
    )
