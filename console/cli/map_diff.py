"""What would change if the map's schedule were put in force: K by running sequences, now and then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from console.cli.figures_text import NONE
from console.cli.rehearse_text_words import aligned, bounds
from console.feed.messages import Snapshot
from engine.policy import base_k, describe
from engine.records import PolicyMode
from engine.schedule import lookup, parse_schedule
from store.operating_map.loads import shown
from store.operating_map.records import CellArm, MapCell, OperatingMap
from store.rehearsal.arms import drafts


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """With `first` to `last` sequences running. `gain`: tokens/s of the mix at the map's K over those at the present
    one; None where the K is the same, or one of the two was not measured there."""

    first: int
    last: int
    now: int
    map: int | None
    gain: float | None = None
    low: float | None = None
    high: float | None = None


class Differing(msgspec.Struct, frozen=True, kw_only=True):
    """`policy`: as it is typed; None where the station only observes. `notes`: what else holds now."""

    policy: str | None
    ranges: list[Change]
    notes: list[str]

    def as_object(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


def differing(made: OperatingMap, snapshot: Snapshot) -> Differing:
    """Ranges in which neither K changes, cut at those of the map's cells."""
    notes = []
    if snapshot.policy is None:
        return Differing(policy=None, ranges=[], notes=["the station only observes: its policy is not known here"])
    now = _k_now(snapshot, snapshot.policy, made.fingerprint.max_k)
    if snapshot.policy.mode == "adaptive":
        notes.append("adaptive: K now is the most that it may draft")
    if snapshot.cap is not None:
        notes.append(f"cap {snapshot.cap} holds for both")
    if snapshot.fallback:
        notes.append("the operator's fallback holds: K is 0 until it is lifted, whatever the schedule")
    if made.schedule is None:
        notes.append("the map proposes no schedule: too little was measured")
    parsed = None if made.schedule is None else parse_schedule(made.schedule)
    cells = {(cell.first, cell.last): cell for cell in made.cells if cell.workload is None}
    ranges: list[Change] = []
    for load in made.loads:
        for first, last, k in _runs(now, load):
            for begin, stop, to in _runs(lambda n: -1 if parsed is None else lookup(parsed, n), (first, last)):
                change = Change(first=begin, last=stop, now=k, map=None if to < 0 else to)
                ranges.append(_with_gain(change, cells.get(load)))
    return Differing(policy=describe(snapshot.policy), ranges=ranges, notes=notes)


def text(found: Differing, made: OperatingMap) -> list[str]:
    if not found.ranges:
        return found.notes
    rows = [
        [
            shown((one.first, one.last)),
            str(one.now),
            NONE if one.map is None else str(one.map),
            "" if one.map in (one.now, None) else bounds(one.gain, one.low, one.high),
        ]
        for one in found.ranges
    ]
    changes = sum(one.map not in (one.now, None) for one in found.ranges)
    lines = [f"now {found.policy}", *aligned(["running", "K now", "K by the map", "tokens/s of the mix"], rows)]
    if not changes:
        lines.append("nothing would change")
    elif made.schedule is not None:
        schedule = [list(entry) for entry in made.schedule]
        lines.append(f"specdeck policy set 'schedule:{schedule}' --confirm 5m".replace(", ", ","))
    return [*lines, *found.notes]


def _k_now(snapshot: Snapshot, policy: PolicyMode, max_k: int) -> Callable[[int], int]:
    largest = max_k if snapshot.cap is None else min(max_k, snapshot.cap)
    return lambda running: 0 if snapshot.fallback else min(base_k(policy, running, max_k), largest)


def _runs(k_of: Callable[[int], int], load: tuple[int, int]) -> list[tuple[int, int, int]]:
    """Stretches of a range over which K is the same: first, last, K."""
    found: list[tuple[int, int, int]] = []
    for running in range(load[0], load[1] + 1):
        k = k_of(running)
        if found and found[-1][2] == k:
            found[-1] = (found[-1][0], running, k)
        else:
            found.append((running, running, k))
    return found


def _with_gain(change: Change, cell: MapCell | None) -> Change:
    if cell is None or change.map is None or change.map == change.now:
        return change
    now, then = _arm(cell.arms, change.now), _arm(cell.arms, change.map)
    if now is None or then is None or not _known(now, cell) or not _known(then, cell):
        return change
    value = (then.gain or 1.0) / (now.gain or 1.0)
    low, high = (then.low, then.high) if now.gain is None else (None, None)  # only the baseline's own ratio has bounds
    return msgspec.structs.replace(change, gain=value, low=low, high=high)


def _arm(arms: Sequence[CellArm], k: int) -> CellArm | None:
    """The arm of a K in the same engine; one without speculation stands for 0 where that was not measured."""
    of_k = sorted((arm for arm in arms if arm.k == k), key=lambda arm: drafts(arm.arm))
    return of_k[-1] if of_k else None


def _known(arm: CellArm, cell: MapCell) -> bool:
    """Whether its gain is: the baseline's is 1, where there is one in the cell."""
    return arm.gain is not None or any(one.gain is not None for one in cell.arms)
