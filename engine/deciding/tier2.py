"""Tier 2: whether a workload's drafts bring anything at all (design §9): off when surely not, on again when surely so.

Judged by the marginal gain: R with its drafts / R without, the others as they are. Not by the experienced speedup,
which its neighbours' drafts lower whatever its own K is.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from engine.deciding.estimates import Evidence, ProbeBlock
from engine.deciding.hazards import regrouped, tokens_interval
from engine.deciding.marginal import Judged, Marginal, filled
from engine.deciding.memory import Memory, WorkloadMemory
from engine.deciding.tier1 import dwelt
from engine.deciding.view import View, acting


def with_clocks(view: View, memory: Memory) -> Memory:
    """Note since when drafts of each workload have surely brought nothing, and when to try one that is off again."""
    if view.objective is None:
        return memory
    workloads = dict(memory.workloads)
    for place in range(len(view.policies)):
        name = view.seen(place).name
        if view.policies[place].fallback:
            workloads[name] = _sooner(view, workloads[name], place)
        elif view.present(place):
            workloads[name] = _below(view, workloads[name], place)
    return replace(memory, workloads=workloads)


def next_fallback(view: View, memory: Memory) -> Judged | None:
    """The workload to turn off now; None for none."""
    if view.objective is None:
        return None
    for place in range(len(view.policies)):
        since = memory.workloads[view.seen(place).name].below_since
        over = since is not None and view.now - since >= view.settings.window_s
        if over and not view.policies[place].fallback and view.present(place) and dwelt(view, memory, place):
            return _at_one(view, place)
    return None


def next_recovery(view: View, memory: Memory) -> Judged | None:
    """The workload to let draft again now, and at which K; None for none."""
    if view.objective is None:
        return None
    for place in range(len(view.policies)):
        if not view.policies[place].fallback or not view.reach(place) or not dwelt(view, memory, place):
            continue
        found = _recovery(view, place)
        if found is not None and found.bounds is not None and found.bounds.low > view.settings.recover_above:
            return found
    return None


def turned_off(known: WorkloadMemory, steps: int, now: float, shortest_pause_s: float) -> WorkloadMemory:
    return replace(
        known, k=None, fallback=True, changed_steps=steps, raised_steps=None, below_since=None,
        pause_s=shortest_pause_s, next_try=now + shortest_pause_s,
    )  # fmt: skip


def _below(view: View, known: WorkloadMemory, place: int) -> WorkloadMemory:
    judged = _at_one(view, place)
    if judged is None:
        return replace(known, below_since=None)
    if judged.bounds is None or judged.bounds.high >= view.settings.fallback_below:
        # At K = 0 the rows that told run out before the time is over: what they said holds on.
        stays = judged.bounds is None and view.executed(place) == 0 and judged.gain < view.settings.fallback_below
        return known if stays else replace(known, below_since=None)
    if _worth_it(view, place):
        return replace(known, below_since=None)
    return known if known.below_since is not None else replace(known, below_since=view.now)


def _worth_it(view: View, place: int) -> bool:
    """Whether a longer draft brings something though the first token alone doesn't."""
    evidence = view.seen(place).window
    if not evidence.rows[0]:
        return False
    _, gain = Marginal.of(view, place).best(filled(evidence, view.settings.enough_rows))
    return gain > 1 + view.settings.min_gain


def _sooner(view: View, known: WorkloadMemory, place: int) -> WorkloadMemory:
    """A try is due after the shortest pause once anything speaks for it, be it only another load."""
    if not view.reach(place):
        return known
    blocks = _promising(view, place)
    remembered = [held.hazard for held in known.hazards if held is not None]
    hopes = bool(blocks) or (
        bool(remembered) and Marginal.of(view, place).best(np.array(remembered))[1] > view.settings.recover_above
    )
    since = max((block.ts for block in blocks if block.kind == "recover"), default=view.now)
    return replace(known, next_try=min(known.next_try, since + view.settings.shortest_pause_s)) if hopes else known


def _at_one(view: View, place: int) -> Judged | None:
    """The marginal gain at K = 1, by the rows of the window; without bounds by what is known otherwise."""
    if not view.reach(place):
        return None
    evidence = view.seen(place).window
    interval = tokens_interval(evidence, 1, view.settings.confidence)
    few = evidence.rows[0] < view.settings.enough_rows
    hazards = view.known[place].hazards if few else tuple(evidence.hazards[:1].tolist())
    return Marginal.of(view, place).judged(1, np.array(hazards[:1]), None if few else interval, evidence.sequences)


def _recovery(view: View, place: int) -> Judged | None:
    """The marginal gain of a workload that is off, at the K that is best by the blocks that speak for it."""
    if not acting(view.estimates.policy):  # advice only: it drafts, so it need not be probed
        evidence = view.seen(place).window
    else:
        blocks = _promising(view, place)
        if not blocks:
            return None
        evidence = _clustered(blocks)
    marginal, hazards = Marginal.of(view, place), filled(evidence, view.settings.enough_rows)
    # No deeper than anything was seen: of a position that no row came to nothing can be sure, however good it may be.
    k, _ = marginal.best(hazards, max(1, int(np.count_nonzero(evidence.rows))))
    interval = tokens_interval(evidence, k, view.settings.confidence)
    return marginal.judged(k, hazards[:k], interval, evidence.sequences)


def _promising(view: View, place: int) -> list[ProbeBlock]:
    """The newest blocks, back to the last that says no at the present load. The oldest of all is what it did before."""
    seen = view.seen(place)
    found: list[ProbeBlock] = []
    before = ProbeBlock(
        "recover", seen.last_seen - view.settings.window_s, np.arange(-seen.window.sequences, 0), seen.window
    )
    marginal = Marginal.of(view, place)
    for block in reversed((before, *(block for block in seen.blocks if block.kind == "recover"))):
        if not block.evidence.rows[0]:
            continue
        _, gain = marginal.best(filled(block.evidence, 1))
        if gain <= view.settings.recover_above:
            break
        found.append(block)
    return found


def _clustered(blocks: list[ProbeBlock]) -> Evidence:
    """All rows of the blocks, by sequence, or by block where that gives more clusters: blocks begin at random moments,
    so they are a sample of the time even where one sequence lasts through all of them."""
    joined = blocks[0]
    for block in blocks[1:]:
        joined = joined.joined(block)
    number = np.repeat(np.arange(len(blocks)), [len(block.sequence) for block in blocks])
    by_sequence = regrouped(joined.evidence, joined.sequence)
    return by_sequence if by_sequence.sequences >= len(blocks) else regrouped(joined.evidence, number)
