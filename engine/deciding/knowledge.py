"""What is known of each position of a workload, and from when: measured now, remembered, or hoped for."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from engine.deciding.decisions import Basis
from engine.deciding.estimates import Evidence, WorkloadEstimate
from engine.deciding.hazards import expected_tokens
from engine.deciding.memory import Remembered, WorkloadMemory
from engine.deciding.settings import DecidingSettings
from engine.step_time.columns import Floats


@dataclass(frozen=True)
class Knowledge:
    """Of one workload, for K = 0 … max_k."""

    hazards: tuple[float, ...]
    basis: tuple[Basis, ...]
    """Of each hazard."""
    expected: Floats
    """(max_k + 1,): E[tokens | K]."""
    verified: Floats
    """(max_k + 1,): draft tokens to verify a row asked for K."""

    def known_depth(self) -> int:
        """Positions up to the first that is only hoped for."""
        return self.basis.index("expected") if "expected" in self.basis else len(self.basis)


def knowledge(
    settings: DecidingSettings, memory: WorkloadMemory, seen: WorkloadEstimate, executed: int, now: float
) -> Knowledge:
    """What to expect of a workload.

    Positions that are drafted now are measured. Deeper ones are remembered, until their time is over or the position
    before them has moved; then they are taken to be as good as the one before, so that a longer K is tried again.

    Args:
        executed: K in effect.
    """
    hazards: list[float] = []
    bases: list[Basis] = []
    for place in range(seen.window.at_risk.shape[1]):
        before = hazards[-1] if hazards else None
        hazard, basis = _position(settings, memory, seen, place, before, place < executed, now)
        if bases and bases[-1] == "expected":
            basis = "expected"
        hazards.append(hazard)
        bases.append(basis)
    shares = _drafted(seen.window, memory)
    return Knowledge(tuple(hazards), tuple(bases), expected_tokens(hazards), np.concatenate(([0.0], np.cumsum(shares))))


def measured(settings: DecidingSettings, seen: WorkloadEstimate, place: int) -> float | None:
    """The hazard of position `place` + 1 by rows of the last minute, or of the window where these are too few."""
    for evidence in (seen.recent, seen.window):
        if evidence.rows[place] >= settings.enough_rows:
            return float(evidence.hazards[place])
    return None


def remember(
    settings: DecidingSettings, memory: WorkloadMemory, seen: WorkloadEstimate, executed: int, now: float
) -> WorkloadMemory:
    """Write down what is measured now of the positions that are drafted, and of deeper ones by `deep` probes."""
    depth = seen.window.at_risk.shape[1]
    held: list[Remembered | None] = [*memory.hazards, *[None] * depth][:depth]
    before, pause = 1.0, max(memory.pause_s, settings.shortest_pause_s)
    for place in range(depth):
        found = measured(settings, seen, place) if place < executed else None
        probed = _probed(settings, seen, place) if place >= executed else None
        if found is not None:
            held[place] = Remembered(found, before, now + pause)
        elif probed is not None:
            earlier = held[place]
            if earlier is None or probed[1] + pause > earlier.until:
                held[place] = Remembered(probed[0], before, probed[1] + pause)
        known = held[place]
        before = known.hazard if known is not None else before
    if not seen.window.asked[0]:
        drafted = memory.drafted
    else:
        drafted = tuple(float(share) for share in _drafted(seen.window, memory))
    return msgspec.structs.replace(memory, hazards=tuple(held), drafted=drafted)


def _position(
    settings: DecidingSettings, memory: WorkloadMemory, seen: WorkloadEstimate, place: int, before: float | None,
    executed: bool, now: float,
) -> tuple[float, Basis]:  # fmt: skip
    found = measured(settings, seen, place) if executed else None
    if found is not None:
        return found, "measured"
    held = memory.hazards[place] if place < len(memory.hazards) else None
    if (
        held is not None
        and (now < held.until or executed)
        and (before is None or abs(before - held.before) <= settings.changed)
    ):
        return held.hazard, "remembered"
    hoped = settings.hopeful if before is None else before
    return max(hoped, held.hazard if held is not None else 0.0), "expected"


def _probed(settings: DecidingSettings, seen: WorkloadEstimate, place: int) -> tuple[float, float] | None:
    """The hazard by the newest `deep` blocks that have enough rows together, and the time of the newest."""
    rows = passed = 0.0
    blocks = [block for block in seen.blocks if block.kind == "deep"]
    for block in reversed(blocks):
        rows += float(block.evidence.rows[place])
        passed += float(block.evidence.passed[:, place].sum())
        if rows >= settings.enough_rows:
            return passed / rows, blocks[-1].ts
    return None


def _drafted(evidence: Evidence, memory: WorkloadMemory) -> Floats:
    """For each position the share of rows asked for it in which it was filled; where none was asked for it, as
    remembered, else as the position before."""
    shares: list[float] = []
    for place, asked in enumerate(evidence.asked.tolist()):
        if asked:
            shares.append(float(evidence.drafted[place]) / asked)
        elif place < len(memory.drafted):
            shares.append(memory.drafted[place])
        else:
            shares.append(shares[-1] if shares else 1.0)
    return np.array(shares)
