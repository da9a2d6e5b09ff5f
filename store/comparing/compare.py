"""Holds two sides together: bucket by bucket with the interval of each difference, and setting by setting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from store.buckets import bucket_order
from store.comparing.comparison import AtDepth, BucketComparison, Comparison, Differing, SideSummary, Told
from store.comparing.difference import Estimate, difference
from store.comparing.sides import Depth, Measured, Side, untouched
from store.figures import Figures, Window

FEW_SEQUENCES: Final = 10
FEW_STEPS: Final = 30
SAME_MIX: Final = 0.05
"""Draft lengths whose mixes differ by more than this share of the draft steps are another K."""


def compare(a: Side, b: Side) -> Comparison:
    """Both sides must have been taken by the same keys.

    Raises:
        ValueError: they were not.
    """
    if a.keys != b.keys:
        raise ValueError(f"sides by {', '.join(a.keys)} and by {', '.join(b.keys)} can't be held together")
    here, there = (_by_name(one) for one in (a, b))
    names = sorted({**here, **there}, key=lambda name: (*bucket_order(*name[:4]), name[4] or ""))
    return Comparison(
        a=_summary(a),
        b=_summary(b),
        by=a.keys,
        configuration=list(_configuration(a, b)),
        buckets=[hold(name, here.get(name), there.get(name)) for name in names],
        total=hold((None,) * 5, a.total, b.total) if a.total or b.total else None,
        notes=list(_notes(a, b)),
    )


Name = tuple[str | None, ...]


def _by_name(side: Side) -> dict[Name, Measured]:
    named: dict[Name, Measured] = {}
    for one in side.buckets:  # of one name what rows are known of comes first, then what is only counted
        named.setdefault(_name(one.figures), one)
    return named


def _name(figures: Figures) -> Name:
    return figures.workload, figures.context, figures.temperature, figures.model_version, figures.engine


def hold(name: Name, a: Measured | None, b: Measured | None) -> BucketComparison:
    """Two measurements against each other, of one bucket or of two; None: there is none. `name`: workload, context,
    temperature, model version and engine that the comparison goes by."""
    workload, context, temperature, version, engine = name
    named = BucketComparison(
        workload=workload,
        context=context,
        temperature=temperature,
        model_version=version,
        engine=engine,
        a=a.figures if a else None,
        b=b.figures if b else None,
    )
    if a is None or b is None:
        return named
    left, right = a.figures, b.figures
    alpha, speedup = difference(_alpha(left), _alpha(right)), difference(_speedup(left), _speedup(right))
    k_differs = _mix_distance(left, right) > SAME_MIX
    at_depth = _at_depth(a.depths, b.depths)
    few_acceptance = left.few or right.few if not k_differs else at_depth is None or at_depth.few
    few_speedup = "few" in (left.speedup_state, right.speedup_state)
    acceptance = alpha if not k_differs else at_depth.acceptance if at_depth else None
    tells: list[Told] = []
    if acceptance is not None and acceptance.tells and not few_acceptance:
        tells.append("acceptance")
    if speedup is not None and speedup.tells and not few_speedup:
        tells.append("speedup")
    return msgspec.structs.replace(
        named,
        alpha=alpha,
        k_differs=k_differs,
        at_depth=at_depth,
        speedup=speedup,
        waste_ratio=_minus(right.waste_ratio, left.waste_ratio),
        tokens_per_second=_minus(right.tokens_per_second, left.tokens_per_second),
        few=few_acceptance or few_speedup,
        tells=tells,
    )


def _alpha(figures: Figures) -> Estimate | None:
    return None if figures.alpha is None else Estimate(figures.alpha, figures.alpha_low, figures.alpha_high)


def _speedup(figures: Figures) -> Estimate | None:
    return None if figures.speedup is None else Estimate(figures.speedup, figures.speedup_low, figures.speedup_high)


def _minus(b: float | None, a: float | None) -> float | None:
    return None if a is None or b is None else b - a


def _mix_distance(a: Figures, b: Figures) -> float:
    """Share of the draft steps that would have to change their length for the mixes to be the same: half the summed
    differences of the shares. 0 where a side drafted nothing."""
    left, right = ({length: rows for length, rows in one.drafted_histogram.items() if length != "0"} for one in (a, b))
    wholes = sum(left.values()), sum(right.values())
    if not all(wholes):
        return 0.0
    lengths = left.keys() | right.keys()
    return sum(abs(left.get(one, 0) / wholes[0] - right.get(one, 0) / wholes[1]) for one in lengths) / 2


def _at_depth(a: list[Depth], b: list[Depth]) -> AtDepth | None:
    common = at_each_depth(a, b)
    return next((one for one in reversed(common) if not one.few), common[-1] if common else None)


def at_each_depth(a: list[Depth], b: list[Depth]) -> list[AtDepth]:
    """At m = 1, 2, …, as deep as both sides go. A depth speaks of the steps that drafted as many: of a side whose K
    moved, each of other steps."""
    found = []
    for depth, (left, right) in enumerate(zip(a, b, strict=False), 1):
        acceptance = difference(*(Estimate(one.acceptance, one.low, one.high) for one in (left, right)))
        if acceptance is not None:
            found.append(AtDepth(depth=depth, acceptance=acceptance, few=_few(left, right)))
    return found


def _few(*sides: Depth) -> bool:
    return any(one.sequences < FEW_SEQUENCES or one.steps < FEW_STEPS for one in sides)


def _configuration(a: Side, b: Side) -> Iterator[Differing]:
    """Engines are held together by name; one alone on each side are, whatever their names."""
    engines = [list(dict.fromkeys(one.engine for one in side.settings if one.engine is not None)) for side in (a, b)]
    if not all(engines):
        return  # nothing ran on a side
    pair = all(len(names) == 1 for names in engines)
    left, right = (_settings(side, pair) for side in (a, b))
    lonely = set() if pair else {*engines[0]} ^ {*engines[1]}
    for engine in sorted(lonely):
        there = [["runs"] if engine in names else ["absent"] for names in engines]
        yield Differing(engine=engine, name="engine", a=there[0], b=there[1])
    for of, name in {**left, **right}:
        values = [one.get((of, name)) or [untouched(name)] for one in (left, right)] if of not in lonely else [[], []]
        if set(values[0]) != set(values[1]):
            yield Differing(engine=of, name=name, a=values[0], b=values[1])


def _settings(side: Side, pair: bool) -> dict[tuple[str | None, str], list[str]]:
    """By engine and name. `pair`: each side has one engine, whose name is left out as if it were a control's."""
    return {(None if pair else one.engine, one.name): one.values for one in side.settings}


def _notes(a: Side, b: Side) -> Iterator[str]:
    for letter, side in (("A", a), ("B", b)):
        if side.window is None:
            yield f"nothing ran in {letter}"
    twice = {(run.engine, run.boot or run.started) for run in a.runs} & {
        (run.engine, run.boot or run.started) for run in b.runs
    }
    if twice and _overlap(a.window, b.window):
        engines = ", ".join(sorted({engine for engine, _ in twice}))
        yield f"A and B hold records of the same run of {engines} over the same time: what is in both tells nothing"


def _overlap(a: Window | None, b: Window | None) -> bool:
    return a is not None and b is not None and max(a.start, b.start) < min(a.end, b.end)


def _summary(side: Side) -> SideSummary:
    return SideSummary(**{name: getattr(side, name) for name in SideSummary.__struct_fields__})
