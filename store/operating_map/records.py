"""The operating map as it is kept, sent and shown."""

from __future__ import annotations

from typing import Literal

import msgspec

from store.operating_map.fingerprint import Fingerprint

CellState = Literal["measured", "no_difference", "not_measured"]
"""`no_difference`: an arm that drafts and one that doesn't can't be told apart, or by less than matters; fewer than two
arms that can be compared are `not_measured` (`store.operating_map.cells`)."""


class CellArm(msgspec.Struct, frozen=True, kw_only=True):
    """One arm in one cell. `tokens_per_second`: tokens that the workload's sequences (the whole batch for the mix) got
    over the time of the steps that held them, per sequence (in all for the mix); `gain`: over the map's baseline
    with as many sequences running, so not the quotient of the former, whose arms stood at different loads within the
    cell; None for the baseline and where that was not measured. Bounds at 95 % over repeats, None for fewer than two.
    """

    arm: str
    k: int | None
    tokens_per_second: float
    gain: float | None = None
    low: float | None = None
    high: float | None = None
    steps: int
    repeats: int


class MapCell(msgspec.Struct, frozen=True, kw_only=True):
    """A workload (None: the mix) with `first` to `last` sequences running. `arms` is empty where not measured."""

    workload: str | None
    first: int
    last: int
    state: CellState
    best: str | None = None
    """The arm to use there: where there is no difference, the one that drafts least among those that are as good."""
    k: int | None = None
    gain: float | None = None
    low: float | None = None
    high: float | None = None
    arms: list[CellArm] = []


class WorkloadCost(msgspec.Struct, frozen=True, kw_only=True):
    """What the proposed schedule, which is for the whole mix, means to one workload: its gain over the baseline under
    the schedule, and under the arm that would be best for it alone, both weighted by the cells it ran in."""

    workload: str
    gain: float | None
    low: float | None = None
    high: float | None = None
    own_best_gain: float | None = None


class OperatingMap(msgspec.Struct, frozen=True, kw_only=True):
    """`baseline`: the best ordinary path (an engine without speculation where that was measured, else K = 0)."""

    id: str
    """Of the rehearsal that made it."""
    ts: float
    plan: str
    fingerprint: Fingerprint
    baseline: str
    repeats: int
    workloads: list[str]
    loads: list[tuple[int, int]]
    """Ranges of running sequences, first to last, in order: the columns."""
    cells: list[MapCell]
    schedule: list[tuple[int, int, int]] | None
    """Proposed from the mix; None where too little was measured."""
    costs: list[WorkloadCost] = []
    notes: list[str] = []
