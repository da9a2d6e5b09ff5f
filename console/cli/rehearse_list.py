"""Rehearsals that were made, and what one would be: nothing is started here."""

from __future__ import annotations

from typing import Literal

import msgspec

from console.cli.outcomes import BadInput
from console.cli.rehearse_choice import Asked, rehearsals, subject
from console.rehearsing.passes.folder import FolderError, RehearsalFolder, all_of
from console.rehearsing.passes.lock import going_on
from console.rehearsing.passes.order import FALLBACK_TEST, DuePass, engine_starts, passes, to_do
from console.rehearsing.passes.pace import MEASURE_SECONDS, Pace
from console.rehearsing.passes.telling import span
from console.rehearsing.plans.drawing import draw
from console.rehearsing.plans.reading import PlanError
from engine.places import runtime_dir
from store.rehearsal.plan import PROPOSED, Plan


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A rehearsal as `--list` has it. `state`: `stopped` can be resumed."""

    id: str
    plan: str
    host: Literal["own", "station"]
    state: Literal["over", "going on", "stopped"]
    started: float
    ended: float | None
    passes_done: int
    passes: int
    folder: str


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """What a rehearsal would do. `requests`: of each repeat; where `scale` is None they are counted at 1, and the
    engine's speed multiplies them. `passes`: arm and repeat, in order."""

    plan: str
    passes: list[tuple[str, int]]
    fallback_test: bool
    requests: list[int]
    scale: float | None
    traffic_seconds: float
    engine_starts: int
    seconds: float


def listed() -> list[Listed]:
    """Oldest first. Folders that can't be read are left out: `--report` says what is wrong with one."""
    now = going_on(runtime_dir())
    found = []
    for folder in all_of(rehearsals()):
        try:
            found.append(_listed(folder, now))
        except FolderError:
            continue
    return found


def _listed(folder: RehearsalFolder, now: str | None) -> Listed:
    one = folder.rehearsal()
    left_out = 0 if one.ended is None or one.proposal is not None else _proposed(one.plan)
    return Listed(
        id=folder.id,
        plan=one.plan.name,
        host=one.host,
        state="going on" if folder.id == now else "stopped" if one.ended is None else "over",
        started=one.started,
        ended=one.ended,
        passes_done=len(folder.done()),
        passes=len(passes(one.plan)) - left_out,
        folder=str(folder.path),
    )


def _proposed(plan: Plan) -> int:
    return sum(one.arm == PROPOSED for one in passes(plan))


def listed_lines(found: list[Listed]) -> list[str]:
    if not found:
        return ["no rehearsal was made yet"]
    width = max(len(one.id) for one in found)
    return [f"{one.id:<{width}}  {one.state:<8}  {one.passes_done} of {one.passes} passes  {one.host}" for one in found]


def dry_run(asked: Asked) -> DryRun:
    """Raises BadInput: no such plan, or one that can't be meant."""
    plan = subject(asked).plan
    try:
        counts = [len(draw(plan, repeat, plan.scale or 1.0)) for repeat in range(1, plan.repeats + 1)]
    except PlanError as error:
        raise BadInput(str(error)) from error
    steps = to_do(plan, ())
    every = [step for step in steps if isinstance(step, DuePass)]
    measuring = MEASURE_SECONDS if plan.scale is None else 0.0
    return DryRun(
        plan=plan.name,
        passes=[(one.arm, one.repeat) for one in every],
        fallback_test=FALLBACK_TEST in steps,
        requests=counts,
        scale=plan.scale,
        traffic_seconds=len(every) * plan.seconds,
        engine_starts=engine_starts(steps),
        seconds=Pace(plan, starts_engines=True).seconds(steps) + measuring,
    )


def dry_run_lines(found: DryRun) -> list[str]:
    lines = [
        f"pass {number:>2}: {arm:<9} repeat {repeat}, {found.requests[repeat - 1]} requests"
        for number, (arm, repeat) in enumerate(found.passes, 1)
    ]
    if found.fallback_test:
        lines.append("and the fallback test, while the engine with the drafter is up")
    if found.scale is None:
        lines.append("requests for an engine of 200 tokens/s: the engine is measured first, and their number fitted")
    lines.append(
        f"traffic {span(found.traffic_seconds)}; on an engine of its own, started {_times(found.engine_starts)}, about "
        f"{span(found.seconds)} in all"
    )
    return lines


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
