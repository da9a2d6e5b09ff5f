"""Which measurement to make next, if any: blocks of steps that leave the policy, a small share of the time (§9)."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from msgspec.structs import replace

from engine.deciding.marginal import Marginal
from engine.deciding.memory import Memory, OutstandingProbe
from engine.deciding.tier1 import can_go_deep
from engine.deciding.view import View, acting
from engine.policy import ProbeOrder
from engine.records import Probe
from engine.step_time.bands import batch_band, context_band
from engine.step_time.cells import ENOUGH_STEPS
from engine.step_time.model import MEASURED_SHARE


@dataclass(frozen=True)
class Wish:
    """A probe that is due."""

    kind: Probe
    workload: int | None
    k: int
    steps: int


def next_probe(view: View, memory: Memory) -> tuple[Memory, ProbeOrder | None]:
    """The order to give now; None where nothing is due, nothing can be afforded, or a change is too fresh."""
    totals, settings = view.estimates.totals, view.settings
    fresh = max(memory.changed_steps, memory.probed_steps)
    if memory.ordered is not None or totals.steps - fresh < settings.probe_clear_steps:
        return memory, None
    wish = _recover(view, memory) or _deep(view, memory) or _k0(view, memory)
    if wish is None:
        return memory, None
    steps = min(wish.steps, int(memory.budget_ms / _step_ms(view, wish)))
    if steps < settings.probe_least_steps:
        return memory, None
    random = np.random.default_rng((memory.seed, memory.next_probe))
    name = None if wish.workload is None else view.seen(wish.workload).name
    wait = int(random.integers(settings.probe_wait_steps))
    order = ProbeOrder(memory.next_probe, wish.kind, name, wish.k, steps, wait)
    ordered = OutstandingProbe(order, totals.steps, totals.probe_steps)
    memory = replace(memory, next_probe=memory.next_probe + 1, ordered=ordered)
    if name is None:
        return replace(memory, k0_at=view.now), order
    return _tried(view, memory, name), order


def _tried(view: View, memory: Memory, name: str) -> Memory:
    """The next try of this workload comes after a longer pause, unless this one finds something."""
    known, settings = memory.workloads[name], view.settings
    pause = max(known.pause_s, settings.shortest_pause_s)
    longer = min(2 * pause, settings.pause_cap_s)
    tried = replace(known, next_try=view.now + pause, pause_s=longer)
    return replace(memory, workloads={**memory.workloads, name: tried})


def _recover(view: View, memory: Memory) -> Wish | None:
    """A workload that tier 2 turned off, whose pause is over."""
    if not acting(view.estimates.policy) or view.objective is None:
        return None
    for place, policy in enumerate(view.policies):
        due = memory.workloads[view.seen(place).name].next_try <= view.now
        if policy.fallback and policy.lane == "speculative" and view.present(place) and view.reach(place) and due:
            k = _hopeful_k(view, place)
            if k:  # at a load at which not even good drafts pay there is nothing to find out
                return Wish("recover", place, k, _steps(view, place))
    return None


def _deep(view: View, memory: Memory) -> Wish | None:
    """A workload of which nothing is known beyond its K, though its neighbours draft more anyway."""
    if view.estimates.policy.policy.mode != "adaptive" or view.objective is None:
        return None
    for place, known in enumerate(view.known):
        executed = view.executed(place)
        due = memory.workloads[view.seen(place).name].next_try <= view.now
        if due and view.present(place) and can_go_deep(view, place) and known.known_depth() <= executed:
            return Wish("deep", place, _deepest(view, place), _steps(view, place))
    return None


def _k0(view: View, memory: Memory) -> Wish | None:
    """Everybody, while the step times without drafts at the present loads are not known. Not where the controller only
    advises: there the schedule alone executes."""
    mode = view.estimates.policy.policy
    if mode.mode == "adaptive" and mode.act is False:
        return None
    loads, model = view.estimates.loads, view.estimates.model
    drafting = any(view.executed(place) for place in range(len(view.policies)))
    if not drafting or view.now - memory.k0_at < view.settings.shortest_pause_s:
        return None
    if view.estimates.fixed_batch_k:
        # The drafter goes on, so there is no cell of K = 0: what shows, at any load, is the cost of tokens to verify.
        if model is not None and model.trimmed_steps >= ENOUGH_STEPS:
            return None
    elif model is not None:
        known = model.measured(batch_band(loads.batch), context_band(loads.context, loads.batch))
        if loads.steps[known].sum() >= MEASURED_SHARE * loads.steps.sum():
            return None
    return Wish("k0", None, 0, view.settings.probe_most_steps)


def _hopeful_k(view: View, place: int) -> int:
    """The K that would be best if the workload had turned friendly."""
    return Marginal.of(view, place).best(np.full(view.estimates.max_k, view.settings.hopeful))[0]


def _deepest(view: View, place: int) -> int:
    """As long as the longest draft beside it, and no longer than allowed."""
    others = [view.executed(other) for other in range(len(view.policies)) if other != place]
    return min(max(others), view.reach(place))


def _steps(view: View, place: int) -> int:
    """Steps that give enough rows of a workload, the first of them left out."""
    loads, settings = view.estimates.loads, view.settings
    here = loads.rows[:, place] > 0
    rows = float(loads.steps[here] @ loads.rows[here, place] / loads.steps[here].sum())
    return max(settings.probe_least_steps, min(settings.probe_most_steps, ceil(settings.probe_rows / rows) + 1))


def _step_ms(view: View, wish: Wish) -> float:
    """What a step of the probe takes, for the budget: by the model, and no less than steps took so far."""
    totals = view.estimates.totals
    usual = totals.busy_ms / max(totals.steps, 1)
    if view.objective is None or wish.workload is None:
        return usual
    lengths = np.maximum(view.lengths, view.with_length(wish.workload, wish.k))
    ms = view.objective.ms(lengths, view.prospects) / float(view.estimates.loads.steps.sum())
    return max(ms, usual)
