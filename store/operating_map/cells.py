"""Measures the cells of the map: which arm serves a workload, or the mix, best while so many sequences run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from store.operating_map.loads import Load
from store.operating_map.pairing import Arms, Ratio, logs_of, mix_ratio, rate_ratio
from store.operating_map.pooled import Pooled
from store.rehearsal.arms import drafts

FEWEST_STEPS: Final = 30
"""Steps, over all repeats, from which an arm counts as measured in a cell."""

FEWEST_IN_REPEAT: Final = 10
"""Steps from which a repeat says anything about a cell."""

FEWEST_SHARE: Final = 0.5
"""Of the mix's tokens: as much must be of workloads that every arm had there, for the mix to be measured."""

NEGLIGIBLE: Final = 1.03
"""A gain below this is no reason to draft more, however sure it is."""


class Measured(NamedTuple):
    """A cell in which arms could be compared. `workload`: None for the mix."""

    workload: str | None
    load: Load
    rates: dict[str, float]
    """Tokens/s of each arm: per sequence for a workload, in all for the mix."""
    steps: dict[str, int]
    repeats: dict[str, int]
    arms: Arms

    def top(self) -> str:
        """The arm with the most tokens/s at equal load; of equals the one that drafts less."""
        names = sorted(self.arms.arms, key=drafts)
        return max(names, key=lambda arm: self.arms.ratio(arm, names[0]).value)

    def as_good(self) -> list[str]:
        """The arms that can't be told from the top one, it among them, by how much they draft: its gain over them is
        negligible, or its interval holds 1."""
        top = self.top()
        return sorted((arm for arm in self.arms.arms if _no_less(self.arms.ratio(top, arm))), key=drafts)

    def decided(self) -> bool:
        """Whether it is clear if drafting helps there: not where an arm that drafts is as good as one that doesn't."""
        idle = max(0, drafts(min(self.arms.arms, key=drafts)))
        found = {drafts(arm) > idle for arm in self.as_good()}
        return len(found) == 1

    def best(self) -> str:
        return self.as_good()[0]


def _no_less(gain: Ratio) -> bool:
    return gain.value < NEGLIGIBLE or (gain.low is not None and gain.low <= 1)


def measure(
    pooled: Pooled, arms: Sequence[str], load: Load, workload: str | None, tokens: Mapping[str, float]
) -> Measured | None:
    """None where fewer than two arms were measured: one alone can be the slowest, and there for that reason.

    Args:
        tokens: share of the mix's tokens that each workload makes.
    """
    steps = {arm: pooled.steps(arm, load, workload) for arm in arms}
    enough = [arm for arm in arms if steps[arm] >= FEWEST_STEPS]
    if len(enough) < 2:
        return None
    against = max(enough, key=lambda arm: steps[arm])
    if workload is None:
        found = _mix(pooled, enough, against, load, tokens)
    else:
        found = _ratios(pooled, enough, against, load, workload)
    kept = [arm for arm in enough if any(name == arm for name, _ in found)]
    rates = {arm: rate for arm in kept if (rate := _rate(pooled, arm, load, workload, tokens)) is not None}
    if len(rates) < 2:
        return None
    found = {key: ratio for key, ratio in found.items() if key[0] in rates}
    return Measured(
        workload=workload,
        load=load,
        rates=rates,
        steps={arm: steps[arm] for arm in rates},
        repeats={arm: sum(name == arm for name, _ in found) for arm in rates},
        arms=Arms(logs_of(found)),
    )


def _ratios(
    pooled: Pooled, arms: Sequence[str], against: str, load: Load, workload: str
) -> dict[tuple[str, int], float]:
    """By arm and repeat, rates over those of the arm `against` in the same repeat."""
    found = {}
    for repeat in pooled.repeats(against):
        if pooled.steps(against, load, workload, repeat) < FEWEST_IN_REPEAT:
            continue
        other = pooled.bands(against, load, workload, repeat)
        for arm in arms:
            if pooled.steps(arm, load, workload, repeat) >= FEWEST_IN_REPEAT:
                ratio = rate_ratio(pooled.bands(arm, load, workload, repeat), other)
                if ratio is not None:
                    found[arm, repeat] = ratio
    return found


def _mix(
    pooled: Pooled, arms: Sequence[str], against: str, load: Load, tokens: Mapping[str, float]
) -> dict[tuple[str, int], float]:
    """The same for the mix as it was planned, whatever mix each arm happened to have in the cell: the time for a token
    of each workload, by the workloads' tokens."""
    own = {name: rate for name in tokens if (rate := pooled.rate(against, load, name)) is not None}
    weights = {name: tokens[name] / rate for name, rate in own.items()}
    by_workload = {name: _ratios(pooled, arms, against, load, name) for name in weights}
    found = {}
    for arm, repeat in dict.fromkeys(key for ratios in by_workload.values() for key in ratios):
        there = {name: ratios for name, ratios in by_workload.items() if (against, repeat) in ratios}
        share = sum(tokens[name] for name in there)
        if share >= FEWEST_SHARE * sum(tokens.values()) and all((arm, repeat) in ratios for ratios in there.values()):
            found[arm, repeat] = mix_ratio({name: ratios[arm, repeat] for name, ratios in there.items()}, weights)
    return found


def _rate(pooled: Pooled, arm: str, load: Load, workload: str | None, tokens: Mapping[str, float]) -> float | None:
    """As it is shown. The mix: of the sequences that ran in the cell on average, over all arms."""
    if workload is not None:
        return pooled.rate(arm, load, workload)
    own = {name: rate for name in tokens if (rate := pooled.rate(arm, load, name)) is not None}
    whole = sum(tokens[name] for name in own)
    running = pooled.mean_running(load)
    if not whole or running is None:
        return None
    return running * whole / sum(tokens[name] / rate for name, rate in own.items())
