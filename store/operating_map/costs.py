"""What the proposed schedule, made for the mix, means to each workload."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from engine.schedule import lookup, parse_schedule
from store.operating_map.records import CellArm, MapCell, WorkloadCost
from store.rehearsal.arms import drafts


def workload_costs(
    cells: Iterable[MapCell],
    workloads: Sequence[str],
    schedule: Sequence[tuple[int, int, int]],
    baseline: str,
    seconds: Callable[[str, tuple[int, int]], float],
) -> list[WorkloadCost]:
    """Args:
    seconds: time that a workload's sequences spent in a range under the baseline.

    The gain of a workload over several cells is the time that it spent there under the baseline over the time that the
    same tokens take: Σ τ / Σ (τ / gain). Bounds take the errors of the cells to go together, which is the wider way.
    """
    parsed = parse_schedule(schedule)
    measured = [cell for cell in cells if cell.workload is not None and cell.arms]
    found = []
    for name in workloads:
        under, best = [], []
        for cell in measured:
            gains = {arm.arm: one for arm in cell.arms if (one := _gain(arm, baseline)) is not None}
            k = lookup(parsed, cell.first)
            chosen = gains.get(_arm_of(k, gains))
            if cell.workload == name and chosen is not None and baseline in gains:
                time = seconds(name, (cell.first, cell.last))
                under.append((time, *chosen))
                best.append((time, max(value for value, _, _ in gains.values())))
        found.append(
            WorkloadCost(
                workload=name,
                gain=_joined((time, value) for time, value, _, _ in under),
                low=_joined((time, low) for time, _, low, _ in under),
                high=_joined((time, high) for time, _, _, high in under),
                own_best_gain=_joined(best),
            )
        )
    return found


def _arm_of(k: int, arms: Iterable[str]) -> str:
    """The arm that stands for a K: K = 0 by an engine without speculation where no other was measured."""
    names = [arm for arm in sorted(arms, key=drafts, reverse=True) if max(0, drafts(arm)) == k]
    return names[0] if names else ""


def _gain(arm: CellArm, baseline: str) -> tuple[float, float | None, float | None] | None:
    if arm.arm == baseline:
        return 1.0, 1.0, 1.0
    return None if arm.gain is None else (arm.gain, arm.low, arm.high)


def _joined(cells: Iterable[tuple[float, float | None]]) -> float | None:
    """Σ τ / Σ (τ / gain); None without any time, or where a gain is not known."""
    listed = [(time, gain) for time, gain in cells if time > 0]
    if not listed or any(gain is None or gain <= 0 for _, gain in listed):
        return None
    return sum(time for time, _ in listed) / sum(time / gain for time, gain in listed if gain is not None)
