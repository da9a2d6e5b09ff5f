"""What each workload's drafts buy at the K it has now: to be shown beside the experienced speedup, not to decide by."""

from __future__ import annotations

from engine.deciding.estimates import Estimates
from engine.deciding.hazards import tokens_interval
from engine.deciding.marginal import Judged, Marginal, filled
from engine.deciding.memory import Memory
from engine.deciding.settings import DecidingSettings
from engine.deciding.view import idle, take_view


def present_gains(settings: DecidingSettings, memory: Memory, estimates: Estimates) -> dict[str, Judged]:
    """By workload: of those that have had rows lately and draft. Empty while step times are not known well enough."""
    if idle(estimates.policy) or not estimates.max_k or not estimates.workloads:
        return {}
    view = take_view(settings, memory, estimates)
    if view.objective is None:
        return {}
    found = {}
    for place in range(len(view.policies)):
        k, evidence = view.executed(place), view.seen(place).window
        if not k or not view.present(place) or evidence.rows[0] < settings.enough_rows:
            continue
        interval = tokens_interval(evidence, k, settings.confidence)
        hazards = filled(evidence, settings.enough_rows)
        found[view.seen(place).name] = Marginal.of(view, place).judged(k, hazards[:k], interval, evidence.sequences)
    return found
