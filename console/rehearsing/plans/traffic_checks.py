"""Whether the workloads and the phases of a plan can be meant."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Final

from console.rehearsing.plans.errors import PlanError, shown
from console.rehearsing.plans.fields import place
from console.rehearsing.plans.prompt_files import HOTTEST, MOST_TOKENS
from console.rehearsing.plans.prompt_sets import prompt_set
from store.rehearsal.plan import Deadline, Mix, Phase

SHARES_OFF: Final = 0.001
"""So much the shares may miss 1 by."""

MOST_WORKLOADS: Final = 32
LONGEST_PASS: Final = 86_400.0
BURSTINESS: Final = (0.05, 100.0)
_LONGEST_NAME: Final = 40

_WORKLOAD: Final = re.compile(r"[\w.:/-][\w .:/-]{0,38}[\w.:/-]|[\w.:/-]")


def check_mix(mix: Sequence[Mix], traced: bool) -> None:
    """Raises PlanError for none, doubles, shares that are not 1, and what of one can't be meant; reads its prompts.

    `traced`: the lengths of answers come from a trace.
    """
    if not mix:
        raise PlanError("there is no workload: say what is sent, under a line [[workload]]")
    if len(mix) > MOST_WORKLOADS:
        raise PlanError(f"{len(mix)} workloads: at most {MOST_WORKLOADS}, each is a tag of the engine's")
    seen: list[str] = []
    for where, one in places(mix):
        if not _WORKLOAD.fullmatch(one.name):
            raise PlanError(f"{where}: name {shown(one.name)} is no tag; 1 to 40 letters, digits and . _ : / -")
        if one.name in seen:
            raise PlanError(f"{where}: workload {seen.index(one.name) + 1} has this name already; figures go by name")
        seen.append(one.name)
        _check_workload(where, one, traced)
    total = sum(one.share for one in mix)
    if abs(total - 1.0) > SHARES_OFF:
        where, last = list(places(mix))[-1]
        raise PlanError(f"{where}: share {last.share:g}: the shares add up to {total:g}, they must be 1")


def _check_workload(where: str, one: Mix, traced: bool) -> None:
    if not 0 < one.share <= 1 + SHARES_OFF:
        raise PlanError(f"{where}: share is {one.share:g}: above 0, at most 1; leave out a workload that has none")
    if not 0 <= one.temperature <= HOTTEST:
        raise PlanError(f"{where}: temperature is {one.temperature:g}: 0 to {HOTTEST:g}")
    for tokens in one.max_tokens:
        if not 1 <= tokens <= MOST_TOKENS:
            raise PlanError(f"{where}: max_tokens is {shown(tokens)}: 1 to {MOST_TOKENS:,}")
    _check_deadline(where, one.deadline)
    try:
        prompts = prompt_set(one.prompts)
    except PlanError as error:
        raise PlanError(f"{where}: {error}") from error
    bare = sum(prompt.max_tokens is None for prompt in prompts)
    if bare and not one.max_tokens and not traced:
        raise PlanError(
            f"{where}: max_tokens is missing, e.g. max_tokens = 128; {bare:,} of {len(prompts):,} prompts have none of "
            "their own"
        )


def _check_deadline(where: str, deadline: Deadline) -> None:
    for name in Deadline.__struct_fields__:
        seconds = getattr(deadline, name)
        if seconds is not None and not (seconds > 0 and math.isfinite(seconds)):
            raise PlanError(
                f"{where}: deadline {name} is {seconds:g}: seconds above 0; leave it out where there is none"
            )


def check_phases(phases: Sequence[Phase]) -> None:
    """Raises PlanError for none, doubles, and numbers that can't be meant."""
    if not phases:
        raise PlanError("there is no phase: say when how much is sent, under a line [[phase]]")
    seen: list[str] = []
    for number, phase in enumerate(phases, 1):
        where = place("phase", number, phase.name)
        if phase.name in seen:
            raise PlanError(f"{where}: phase {seen.index(phase.name) + 1} has this name already; figures go by name")
        seen.append(phase.name)
        _check_phase(where, phase)
    total = sum(phase.seconds for phase in phases)
    if total > LONGEST_PASS:
        raise PlanError(f"the phases last {total:g} s together: at most a day ({LONGEST_PASS:g})")


def _check_phase(where: str, phase: Phase) -> None:
    if not phase.name.strip() or not phase.name.isprintable() or len(phase.name) > _LONGEST_NAME:
        raise PlanError(f"{where}: name {shown(phase.name)} can't be shown; 1 to {_LONGEST_NAME} characters")
    if not 0 < phase.seconds <= LONGEST_PASS:
        raise PlanError(f"{where}: seconds is {phase.seconds:g}: above 0, at most a day ({LONGEST_PASS:g})")
    for name, rate in (("rate", phase.rate), ("to", phase.to)):
        if rate is not None and not (rate >= 0 and math.isfinite(rate)):
            raise PlanError(f"{where}: {name} is {rate:g}: requests/s, 0 or more")
    if not BURSTINESS[0] <= phase.burstiness <= BURSTINESS[1]:
        raise PlanError(
            f"{where}: burstiness is {phase.burstiness:g}: {BURSTINESS[0]:g} to {BURSTINESS[1]:g}; 1 is Poisson, less "
            "is more bursty"
        )


def places(mix: Sequence[Mix]) -> Iterator[tuple[str, Mix]]:
    """Each workload with what it is called in a complaint."""
    for number, one in enumerate(mix, 1):
        yield place("workload", number, one.name), one
