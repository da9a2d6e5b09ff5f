"""Strata of all passes, added up as the cells of the map ask for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from store.operating_map.loads import Load, band
from store.operating_map.strata import ArmStrata, Stratum


class Pooled:
    """`loads`: the columns of the map. What ran with more sequences than its last range is in none."""

    def __init__(self, passes: Iterable[ArmStrata], loads: Iterable[Load]) -> None:
        self._found: dict[tuple[str, Load, str | None], dict[int, list[Stratum]]] = defaultdict(dict)
        self._repeats: dict[str, list[int]] = defaultdict(list)
        self._all: dict[Load, list[Stratum]] = defaultdict(list)
        columns = list(loads)
        for one in passes:
            self._repeats[one.arm].append(one.repeat)
            for stratum in one.strata:
                load = next((load for load in columns if load[0] <= stratum.running <= load[1]), None)
                if load is not None:
                    of = self._found[one.arm, load, stratum.workload]
                    of.setdefault(one.repeat, []).append(stratum)
                    if stratum.workload is None:
                        self._all[load].append(stratum)

    def repeats(self, arm: str) -> list[int]:
        return sorted(self._repeats[arm])

    def steps(self, arm: str, load: Load, workload: str | None, repeat: int | None = None) -> int:
        """Steps in the cell; of a workload, those that had a decode row of it. None: over all repeats."""
        return sum(stratum.steps for stratum in self._strata(arm, load, workload, repeat))

    def bands(self, arm: str, load: Load, workload: str | None, repeat: int) -> dict[int, tuple[float, float]]:
        """Tokens and seconds by quarter of the range."""
        found: dict[int, tuple[float, float]] = {}
        for stratum in self._strata(arm, load, workload, repeat):
            tokens, seconds = found.get(band(load, stratum.running), (0.0, 0.0))
            found[band(load, stratum.running)] = tokens + stratum.emitted, seconds + stratum.seconds
        return found

    def seconds(self, arm: str, load: Load, workload: str | None) -> float:
        return sum(stratum.seconds for stratum in self._strata(arm, load, workload, None))

    def rate(self, arm: str, load: Load, workload: str) -> float | None:
        """Tokens/s per sequence; None where it made none."""
        strata = self._strata(arm, load, workload, None)
        tokens, seconds = sum(one.emitted for one in strata), sum(one.seconds for one in strata)
        return tokens / seconds if tokens > 0 and seconds > 0 else None

    def mean_running(self, load: Load) -> float | None:
        """Sequences in the steps of all arms, over their time."""
        strata = self._all[load]
        seconds = sum(one.seconds for one in strata)
        return sum(one.running * one.seconds for one in strata) / seconds if seconds > 0 else None

    def _strata(self, arm: str, load: Load, workload: str | None, repeat: int | None) -> list[Stratum]:
        by_repeat = self._found.get((arm, load, workload), {})
        if repeat is not None:
            return by_repeat.get(repeat, [])
        return [stratum for strata in by_repeat.values() for stratum in strata]
