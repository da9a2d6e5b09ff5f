"""Tier 1: one workload's K at a time, towards a higher R (design §9). Mode adaptive only."""

from __future__ import annotations

from msgspec.structs import replace

from engine.deciding.decisions import Basis
from engine.deciding.memory import Memory, WorkloadMemory
from engine.deciding.plan import Move, next_move
from engine.deciding.settings import DecidingSettings
from engine.deciding.view import View, acting


def next_k(view: View, memory: Memory) -> Move | None:
    """The change that tier 1 makes now; None for none.

    K = 0 is one of its lengths: the load may make drafts useless within seconds, and tier 2 waits for minutes.
    """
    if view.objective is None or view.estimates.policy.policy.mode != "adaptive":
        return None
    choices = [_choices(view, memory, place) for place in range(len(view.policies))]
    if all(len(options) == 1 for options in choices):
        return None
    move = next_move(view.objective, view.prospects, view.lengths, choices)
    return move if move is not None and move.gain > view.settings.min_gain else None


def dwelt(view: View, memory: Memory, place: int) -> bool:
    """Whether a workload has had its K for long enough to get another."""
    seen = view.seen(place)
    return seen.steps - memory.workloads[seen.name].changed_steps >= view.settings.dwell_steps


def basis_of(view: View, place: int, k: int) -> Basis:
    """How well the positions up to K = k are known: as well as the worst known of them."""
    bases = view.known[place].basis[:k]
    return next((basis for basis in ("expected", "remembered") if basis in bases), "measured")


def changed(
    settings: DecidingSettings, known: WorkloadMemory, before: int, k: int, steps: int, now: float
) -> WorkloadMemory:
    """Memory of a workload whose K in effect goes from `before` to `k`.

    Lowered soon after it was raised, it was a try that failed: the next one is put off for twice as long.
    """
    known = replace(known, k=k, fallback=False, changed_steps=steps)
    if k > before:
        return replace(known, raised_steps=steps)
    failed = known.raised_steps is not None and steps - known.raised_steps <= 2 * settings.dwell_steps
    pause = min(2 * known.pause_s, settings.pause_cap_s) if failed else 0.0
    pause = max(pause, settings.shortest_pause_s)
    hazards = tuple(
        replace(held, until=now + pause) if held is not None and place >= k else held
        for place, held in enumerate(known.hazards)
    )
    return replace(known, raised_steps=None, pause_s=pause, hazards=hazards)


def can_go_deep(view: View, place: int) -> bool:
    """Whether a `deep` probe can look further: the batch K is higher than this workload's own anyway."""
    loads, mine = view.estimates.loads, view.executed(place)
    if not mine or not acting(view.estimates.policy) or mine >= view.reach(place):
        return False
    beside = (loads.rows > 0) & (loads.rows[:, [place]] > 0)
    others = [other for other in range(len(view.policies)) if other != place and beside[:, other].any()]
    return any(view.executed(other) > mine for other in others)


def _choices(view: View, memory: Memory, place: int) -> list[int]:
    """The K a workload may get now: those of which something is known, and one more to find out."""
    now, executed, known = int(view.lengths[place]), view.executed(place), view.known[place]
    policy = view.policies[place]
    reach = view.reach(place)
    if policy.fallback or policy.lane == "vanilla" or not reach or not dwelt(view, memory, place):
        return [now]
    depth = max(executed, known.known_depth())
    surely_useless = memory.workloads[view.seen(place).name].below_since is not None
    if executed and known.basis[0] == "expected":
        return [now]  # too little seen yet: what the schedule says holds until more is
    if not can_go_deep(view, place) and not (surely_useless and not executed):
        depth += 1
    choices = list(range(min(depth, reach) + 1))
    if executed < len(choices):
        choices[executed] = now
    if choices[-1] == reach and reach < view.estimates.max_k and executed < reach:
        choices[-1] = view.estimates.max_k  # as far as schedule and cap go, also when they go further
    return choices
