"""Tells a pooled fall of acceptance that the traffic mix alone has made: Δ = Σ Δw·ā + Σ Δα·w̄ (definitions.md)."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec
import numpy as np

from store.judge.alerts import Cause, Evidence, Note
from store.judge.book import AlertBook
from store.judge.compare import Compared, compared, plain
from store.judge.inputs import Floats, Ints
from store.judge.moments import MOMENTS, OVER, UNDER, N
from store.judge.places import Places
from store.judge.reference import sum_windows
from store.judge.settings import SHIFT_WINDOWS, JudgeSettings

Group = tuple[str, str, str]
"""Workload, context, temperature: over all engines and versions, since a pushed version is no other traffic."""

_KEPT: Final = 6


class MixWindow(msgspec.Struct):
    end: float
    groups: list[Group]
    sums: Floats
    """Groups × columns × MOMENTS."""


class MixMemory(msgspec.Struct):
    recent: list[list[MixWindow]] = []
    """For each of the shorter window lengths."""
    noted: Note | None = None
    """The last one."""


class Parts(NamedTuple):
    """What a change of pooled acceptance is made of; fractions."""

    mix: float
    """Σ Δw·ā: other shares of the traffic."""
    rates: float
    """Σ Δα·w̄: other acceptance of the same traffic."""
    shares: Floats
    """Δw of each group."""


def parts(before: Floats, after: Floats) -> Parts:
    """Split the change of the pooled ratio between two periods.

    Args:
        before, after: groups × MOMENTS. A group that one period lacks has there the ratio that it has in the other.
    """
    under = np.stack([before[:, UNDER], after[:, UNDER]])
    over = np.stack([before[:, OVER], after[:, OVER]])
    rate = np.divide(over, under, out=np.zeros_like(over), where=under > 0)
    rate = np.where(under > 0, rate, rate[::-1])
    weight = under / under.sum(axis=1, keepdims=True)
    shares, rates = weight[1] - weight[0], rate[1] - rate[0]
    return Parts(float(shares @ rate.mean(axis=0)), float(rates @ weight.mean(axis=0)), shares)


class MixJudge:
    """Args:
    memory: changed in place.
    """

    def __init__(self, memory: MixMemory, places: Places, book: AlertBook, settings: JudgeSettings) -> None:
        self.memory = memory
        self.memory.recent = self.memory.recent or [[] for _ in range(SHIFT_WINDOWS)]
        self._places = places
        self._book = book
        self._settings = settings

    def windows(self, scale: int, end: float, buckets: Ints, sums: Floats) -> None:
        """All buckets' windows of one length have ended. `sums`: buckets × columns × MOMENTS."""
        if scale >= SHIFT_WINDOWS or not len(buckets) or sums.shape[1] < 2:
            return
        if sums[:, 1, N].sum() < self._settings.enough_sequences:
            return
        present = MixWindow(end, *_by_group([self._places.names[bucket][1:4] for bucket in buckets.tolist()], sums))
        recent = [one for one in self.memory.recent[scale] if one.end > end - self._settings.before_seconds]
        if recent and self._compare(recent, present):
            self.memory.recent = [[] for _ in range(SHIFT_WINDOWS)]  # it is told; what comes next is held against it
            recent = []
        self.memory.recent[scale] = [*recent, present][-_KEPT:]

    def causes(self, since: float, until: float) -> list[Cause]:
        """Names a change of the traffic mix that was noted in [since, until]."""
        noted = self.memory.noted
        return [Cause("mix", noted.text, noted.ts)] if noted is not None and since <= noted.ts <= until else []

    def _compare(self, recent: list[MixWindow], present: MixWindow) -> bool:
        """Note a fall that the mix has made. Returns whether there was one."""
        pooled_before = sum_windows([one.sums.sum(axis=0) for one in recent])
        result = compared(plain(present.sums.sum(axis=0)), plain(pooled_before), self._settings)
        if result is None or not result.stands_below(self._settings.mix_fall):
            return False
        groups = sorted({*present.groups, *(group for one in recent for group in one.groups)})
        found = parts(_aligned(recent, groups, result.depth), _aligned([present], groups, result.depth))
        if -found.mix < max(self._settings.mix_fall, self._settings.mix_share * result.fall.fall):
            return False
        self._note(result, found, groups[int(found.shares.argmax())], present.end)
        return True

    def _note(self, result: Compared, found: Parts, grown: Group, ts: float) -> None:
        before, after = result.fall.reference.value, result.fall.present.value
        workload, context, temperature = grown
        text = (
            f"mix: pooled acceptance fell {100 * (before - after):.1f} points ({before:.1%} to {after:.1%} at depth "
            f"{result.depth}), {-100 * found.mix:.1f} of them by traffic mix alone; {workload} {context} at "
            f"temperature {temperature} has {100 * found.shares.max():.0f} points more of the draft steps"
        )
        evidence: Evidence = {
            "depth": result.depth,
            "before": round(before, 4),
            "after": round(after, 4),
            "fall_points": round(100 * (before - after), 2),
            "mix_points": round(-100 * found.mix, 2),
            "rates_points": round(-100 * found.rates, 2),
        }
        self.memory.noted = Note(kind="mix", ts=ts, text=text, evidence=evidence)
        self._book.note(self.memory.noted)


def _by_group(of: list[Group], sums: Floats) -> tuple[list[Group], Floats]:
    """Buckets of one group, which differ in engine or version, put together."""
    groups = sorted(set(of))
    numbers = {group: number for number, group in enumerate(groups)}
    total = np.zeros((len(groups), *sums.shape[1:]))
    np.add.at(total, [numbers[group] for group in of], sums)
    return groups, total


def _aligned(windows: list[MixWindow], groups: list[Group], depth: int) -> Floats:
    """Moments at one depth of all windows together: groups × MOMENTS."""
    numbers = {group: number for number, group in enumerate(groups)}
    total = np.zeros((len(groups), MOMENTS))
    for window in windows:
        if depth < window.sums.shape[1]:
            np.add.at(total, [numbers[group] for group in window.groups], window.sums[:, depth])
    return total
