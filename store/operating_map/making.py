"""Makes the operating map of a rehearsal, from its folder and nothing else."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from store.operating_map.cells import Measured, measure
from store.operating_map.costs import workload_costs
from store.operating_map.loads import Load, loads, shown
from store.operating_map.pooled import Pooled
from store.operating_map.proposal import Schedule, schedule
from store.operating_map.records import CellArm, MapCell, OperatingMap
from store.operating_map.strata import ArmStrata
from store.rehearsal.arm_passes import by_arm
from store.rehearsal.arms import baseline_of, drafts
from store.rehearsal.doubts import ONE_PASS
from store.rehearsal.holding import holding
from store.rehearsal.plan import PROPOSED, WITHOUT, Plan, fixed_k
from store.rehearsal.reading import PassRead, RehearsalError, read_passes, read_rehearsal
from store.rehearsal.records import Rehearsal
from store.rehearsal.request_figures import answered


def make_map(folder: Path) -> OperatingMap:
    """Raises RehearsalError: no rehearsal, a broken file, or no pass of a fixed arm yet."""
    rehearsal = read_rehearsal(folder)
    return map_of(rehearsal, read_passes(folder, rehearsal))


def map_of(rehearsal: Rehearsal, passes: Sequence[PassRead]) -> OperatingMap:
    """Raises RehearsalError: no pass of a fixed arm."""
    fixed = [one for one in passes if one.made.arm == WITHOUT or fixed_k(one.made.arm) is not None]
    arms = sorted({one.made.arm for one in fixed}, key=drafts)
    baseline = baseline_of(arms)
    if baseline is None:
        raise RehearsalError(f"{rehearsal.id}: no fixed arm came to a pass, so there is no map: resume the rehearsal")
    columns = loads(rehearsal.fingerprint.max_num_seqs)
    pooled = Pooled(strata_of(fixed), columns)
    shares = token_shares(rehearsal.plan, passes)
    names = [mix.name for mix in rehearsal.plan.mix]
    cells = [
        map_cell(workload, load, measure(pooled, arms, load, workload, shares), baseline)
        for workload in (None, *names)
        for load in columns
    ]
    later = proposed(pooled, arms, columns, shares)
    chosen = rehearsal.proposal if rehearsal.proposal is not None else later
    costs = []
    if chosen is not None:
        costs = workload_costs(cells, names, chosen, baseline, lambda name, load: pooled.seconds(baseline, load, name))
    return OperatingMap(
        id=rehearsal.id,
        ts=rehearsal.ended if rehearsal.ended is not None else _last(passes),
        plan=rehearsal.plan.name,
        fingerprint=rehearsal.fingerprint,
        baseline=baseline,
        repeats=max(len({one.made.repeat for one in fixed if one.made.arm == arm}) for arm in arms),
        workloads=names,
        loads=columns,
        cells=cells,
        schedule=chosen,
        costs=costs,
        notes=[*_notes(cells, chosen, later, arms), *_verdict(rehearsal, passes)],
    )


def proposed(pooled: Pooled, arms: Sequence[str], columns: Sequence[Load], shares: dict[str, float]) -> Schedule | None:
    """The schedule from what was measured of the mix. An engine without speculation stands for K = 0 where that was
    not."""
    executable = [arm for arm in arms if fixed_k(arm) is not None]
    if not any(fixed_k(arm) == 0 for arm in executable):
        executable = list(arms)
    cells = [measure(pooled, executable, load, None, shares) for load in columns]
    least = min(executable, key=drafts)
    return schedule([cell if cell is not None and least in cell.rates else None for cell in cells], columns)


def strata_of(passes: Iterable[PassRead]) -> Iterator[ArmStrata]:
    for one in passes:
        yield ArmStrata(one.made.arm, one.made.repeat, one.digest.strata)


def token_shares(plan: Plan, passes: Iterable[PassRead]) -> dict[str, float]:
    """Share of the mix's tokens that each workload makes: its share of the requests times the mean length of its
    answers, over all arms. A request share alone would count a short answer as much as a long one."""
    lengths: dict[str, list[int]] = defaultdict(list)
    for one in passes:
        for request in one.outcomes:
            if answered(request):
                lengths[request.workload].append(request.output_tokens)
    weights = {mix.name: mix.share * sum(of) / len(of) for mix in plan.mix if (of := lengths[mix.name])}
    whole = sum(weights.values())
    return {name: weight / whole for name, weight in weights.items() if weight > 0}


def map_cell(workload: str | None, load: Load, found: Measured | None, baseline: str) -> MapCell:
    """The cell as it is kept. Gains are over the baseline at equal load, None where that was not measured there."""
    first, last = load
    if found is None:
        return MapCell(workload=workload, first=first, last=last, state="not_measured")
    arms = [_cell_arm(found, arm, baseline) for arm in sorted(found.rates, key=drafts)]
    best = next(arm for arm in arms if arm.arm == found.best())
    return MapCell(
        workload=workload,
        first=first,
        last=last,
        state="measured" if found.decided() else "no_difference",
        best=best.arm,
        k=best.k,
        gain=best.gain,
        low=best.low,
        high=best.high,
        arms=arms,
    )


def _cell_arm(found: Measured, arm: str, baseline: str) -> CellArm:
    over = found.arms.ratio(arm, baseline) if arm != baseline and baseline in found.rates else None
    return CellArm(
        arm=arm,
        k=max(0, drafts(arm)),
        tokens_per_second=found.rates[arm],
        gain=over.value if over else None,
        low=over.low if over else None,
        high=over.high if over else None,
        steps=found.steps[arm],
        repeats=found.repeats[arm],
    )


def _notes(
    cells: Sequence[MapCell], chosen: Schedule | None, later: Schedule | None, arms: Sequence[str]
) -> Iterator[str]:
    mix = [cell for cell in cells if cell.workload is None]
    if all(repeats < 2 for cell in mix for repeats in (arm.repeats for arm in cell.arms)):
        yield ONE_PASS
    open_loads = [shown((cell.first, cell.last)) for cell in mix if cell.state == "not_measured"]
    if open_loads and chosen is not None:
        yield f"{', '.join(open_loads)} running: not measured; the schedule carries the lower K of its neighbours there"
    if chosen is not None and later is not None and chosen != later:
        yield f"the schedule is from the survey; all repeats together would give {[list(entry) for entry in later]}"
    if not any(fixed_k(arm) == 0 for arm in arms):
        yield "K = 0 was not measured: an engine without speculation stands for it"


def _verdict(rehearsal: Rehearsal, passes: Sequence[PassRead]) -> Iterator[str]:
    """What the rehearsal's own test says of the schedule: who takes it from the map does not read the report."""
    if rehearsal.proposal is None:
        return
    plan = rehearsal.plan
    if plan.survey == 1:
        yield "the schedule was chosen from one pass of each arm"
    held = next((one for one in holding(by_arm(passes, plan.arms), plan.survey, 0) if one.arm == PROPOSED), None)
    if held is not None and held.holds is False:
        share = f"{held.against_best.value:.2f} of {held.best}'s tokens/s"
        yield f"the schedule did NOT hold on the repeats after the survey: {share} with as many sequences running"


def _last(passes: Sequence[PassRead]) -> float:
    return max((one.made.end for one in passes), default=time.time())
