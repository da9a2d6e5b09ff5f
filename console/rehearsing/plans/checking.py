"""Whether a plan can be meant, and whether an engine can run it: what is wrong is named with its place and remedy."""

from __future__ import annotations

import math
import re
from typing import Final

from console.rehearsing.levels import default_schedule
from console.rehearsing.plans.arms import check_arms, fixed
from console.rehearsing.plans.arrivals import MOST_REQUESTS, expected
from console.rehearsing.plans.errors import PlanError, shown
from console.rehearsing.plans.lengths import TEMPLATE_TOKENS, about_tokens
from console.rehearsing.plans.prompt_sets import prompt_set
from console.rehearsing.plans.public_traces import FORMATS
from console.rehearsing.plans.traced_arrivals import stretch
from console.rehearsing.plans.traffic_checks import check_mix, check_phases, places
from engine.schedule import ScheduleError
from store.rehearsal.plan import WITHOUT, Mix, Plan, PublicTrace

MOST_REPEATS: Final = 100
MOST_SCALE: Final = 10_000.0
LARGEST_SEED: Final = 2**53

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


def check(plan: Plan) -> None:
    """Also reads the files that the plan names.

    Raises:
        PlanError: the first thing that is wrong.
    """
    if not _NAME.fullmatch(plan.name):
        raise PlanError(f"name {shown(plan.name)}: a folder is called by it; 1 to 40 of A-Z a-z 0-9 . _ -")
    _check_numbers(plan)
    check_arms(plan)
    check_mix(plan.mix, plan.trace is not None)
    check_phases(plan.phases)
    if plan.trace is not None:
        _check_trace(plan, plan.trace)
    else:
        _check_expected(plan)


def check_engine(plan: Plan, *, max_k: int, max_num_seqs: int, max_model_len: int | None, drafts: bool) -> None:
    """Whether an engine of these limits can run the plan; `drafts`: it has a drafter.

    Raises:
        PlanError: an arm, the fallback test, or an answer that is beyond it.
    """
    need = [arm for arm in plan.arms if arm != WITHOUT]
    if need and not drafts:
        raise PlanError(f"arms: {', '.join(need)} need a drafter and the engine has none; start it with --drafter")
    for arm, k in fixed(plan.arms).items():
        if k > max_k:
            raise PlanError(
                f"arms: {arm} drafts {k} tokens and the engine {max_k} at most; leave it out, or start the engine with "
                f"--max-k {k}"
            )
    if plan.fallback_test and need:
        _check_fallback(max_k, max_num_seqs)
    if max_model_len is not None and plan.trace is None:
        for where, mix in places(plan.mix):
            _check_context(where, mix, max_model_len)


def _check_numbers(plan: Plan) -> None:
    if not 1 <= plan.repeats <= MOST_REPEATS:
        raise PlanError(f"repeats is {plan.repeats}: 1 to {MOST_REPEATS}")
    if not 0 <= plan.survey <= plan.repeats:
        raise PlanError(f"survey is {plan.survey}: from 0 to the {plan.repeats} repeats, of which it takes the first")
    if not 0 <= plan.seed <= LARGEST_SEED:
        raise PlanError(f"seed is {shown(plan.seed)}: 0 to {LARGEST_SEED}")
    if plan.scale is not None and not 0 < plan.scale <= MOST_SCALE:
        raise PlanError(f"scale is {plan.scale:g}: above 0, at most {MOST_SCALE:g}; without one the engine is measured")


def _check_expected(plan: Plan) -> None:
    due = expected(plan.phases, 1.0 if plan.scale is None else plan.scale)
    if due < 1:
        raise PlanError(f"{due:.2g} requests are expected in all phases together; raise rate or seconds")
    if due > MOST_REQUESTS:
        raise PlanError(
            f"{due:,.0f} requests are expected in one pass, more than {MOST_REQUESTS:,}; lower rate, seconds or scale"
        )


def _check_trace(plan: Plan, trace: PublicTrace) -> None:
    if trace.format not in FORMATS:
        raise PlanError(f"trace: format {shown(trace.format)} is none of {', '.join(FORMATS)}")
    if not (trace.speed > 0 and math.isfinite(trace.speed)):
        raise PlanError(f"trace: speed is {trace.speed:g}: seconds of the trace a second, above 0")
    try:
        stretch(plan, trace, None)
    except PlanError as error:
        raise PlanError(f"trace: {error}") from error


def _check_fallback(max_k: int, max_num_seqs: int) -> None:
    try:
        default_schedule(max_k, max_num_seqs)
    except ScheduleError as error:
        raise PlanError(f"fallback_test can't be run: {error}; fallback_test = false leaves it out") from error


def _check_context(where: str, mix: Mix, max_model_len: int) -> None:
    """Prompts are only known in bytes: `about`."""
    for prompt in prompt_set(mix.prompts):
        answer = max(mix.max_tokens, default=0) if prompt.max_tokens is None else prompt.max_tokens
        if answer >= max_model_len:
            raise PlanError(
                f"{where}: an answer of {answer} tokens is longer than the engine's context of {max_model_len}; lower "
                "max_tokens, or start the engine with a longer --max-model-len"
            )
        length = about_tokens(prompt.messages) + TEMPLATE_TOKENS
        if length + answer > max_model_len:
            raise PlanError(
                f"{where}: a prompt of about {length} tokens and an answer of {answer} are longer than the engine's "
                f"context of {max_model_len}; shorten them, or start the engine with a longer --max-model-len"
            )
