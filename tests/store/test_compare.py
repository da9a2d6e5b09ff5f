"""Two sides held together: differences and intervals, K that changed, versions, configuration, what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.intervals import ratio_interval
from engine.records import ControlRecord, EngineRecord, PolicyMode, Record, Row
from store.comparing.compare import compare
from store.comparing.comparison import BucketComparison, Comparison
from store.comparing.difference import Estimate, difference
from store.comparing.measure import side
from store.comparing.sides import Side
from store.report import ReportError
from tests.store.builders import T0, engine, row, sequence, step, store_of
from tests.store.reference import reference

Cut = tuple[float | None, float | None]
WHOLE: Cut = (None, None)


def taken(records: Iterable[Record], *cuts: Cut, **arguments: Any) -> list[Side]:
    with store_of(records) as store:
        return [side(store.connection, source="test", start=cut[0], end=cut[1], **arguments) for cut in cuts]


def whole(records: Iterable[Record], **arguments: Any) -> Side:
    (found,) = taken(records, WHOLE, **arguments)
    return found


def windows(records: Iterable[Record], a: Cut, b: Cut, **arguments: Any) -> Comparison:
    return compare(*taken(records, a, b, **arguments))


def only(found: Comparison) -> BucketComparison:
    (bucket,) = found.buckets
    return bucket


def traffic(
    accepted: Sequence[Sequence[int]], d: int = 4, first: float = T0, k: int | None = None, prefix: str = "s"
) -> tuple[list[Record], list[Row]]:
    """One sequence for each list, whose draft steps accept so many of `d`: a step each 0.1 s after `first`."""
    names = [f"{prefix}{number}" for number in range(len(accepted))]
    rows = [row(name, d=d, a=a, k=k) for name, each in zip(names, accepted, strict=True) for a in each]
    records: list[Record] = [sequence(name, ts=first) for name in names]
    records += [step(n, [one], ts=first + n * 0.1) for n, one in enumerate(rows, 1)]
    return records, rows


def test_differences_and_intervals_are_those_of_an_independent_calculation() -> None:
    rng = np.random.default_rng(7)
    rows, sides = [], []
    for place, share in enumerate((0.7, 0.5)):
        counts = [list(rng.binomial(4, share, size=rng.integers(2, 9))) for _ in range(30)]
        counts = [[int(a) for a in each] for each in counts]
        records, own = traffic(counts, first=T0 + 1000 * place, prefix="ab"[place])
        sides.append([engine(), *records])
        rows.append(own)
    found = only(compare(*(whole(records) for records in sides)))
    a, b = (reference(own) for own in rows)
    delta = b["alpha"] - a["alpha"]
    below = sqrt((b["alpha"] - b["alpha_low"]) ** 2 + (a["alpha_high"] - a["alpha"]) ** 2)
    above = sqrt((b["alpha_high"] - b["alpha"]) ** 2 + (a["alpha"] - a["alpha_low"]) ** 2)
    assert found.alpha is not None
    assert (found.alpha.difference, found.alpha.low, found.alpha.high) == pytest.approx(
        (delta, delta - below, delta + above)
    )
    assert found.tells == ["acceptance"]
    assert found.waste_ratio == pytest.approx(b["waste_ratio"] - a["waste_ratio"])
    assert found.a is not None
    assert found.b is not None
    assert (found.a.sequences, found.b.sequences, found.a.steps, found.b.steps) == (
        30, 30, len(rows[0]), len(rows[1]),
    )  # fmt: skip
    rates = [one.tokens_per_second for one in (found.a, found.b)]
    assert found.tokens_per_second == pytest.approx(rates[1] - rates[0])  # type: ignore[operator]
    assert rates == [pytest.approx(sum(one.emitted for one in own) / (0.1 * len(own)), rel=1e-3) for own in rows]


def test_two_halves_of_one_trace_are_the_traces_that_they_would_be_alone() -> None:
    first, _ = traffic([[4, 2, 3]] * 12, prefix="a")
    second, _ = traffic([[1, 2]] * 15, first=T0 + 100, prefix="b")
    both = [engine(), *first, *second]
    inside = windows(both, (None, T0 + 50), (T0 + 50, None))
    alone = compare(whole([engine(), *first]), whole([engine(), *second]))
    assert inside.buckets == alone.buckets
    assert inside.configuration == []


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=8),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=8),
)
@settings(max_examples=60, deadline=None)
def test_the_difference_is_the_same_from_both_ends(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    a, b = (estimate([min(x, y) for x, y in one], [y for _, y in one]) for one in (left, right))
    there, back = difference(a, b), difference(b, a)
    if a is None or b is None:
        assert there is back is None
        return
    assert there is not None
    assert back is not None
    assert there.difference == -back.difference
    if there.low is not None and there.high is not None:
        assert (there.low, there.high) == (-back.high, -back.low)  # type: ignore[operator]
        assert there.low <= there.difference <= there.high
        overlap = b.low <= a.value <= b.high or a.low <= b.value <= a.high  # type: ignore[operator]
        assert not (overlap and there.tells)


def estimate(x: Any, y: Any) -> Estimate | None:
    if not sum(y):
        return None
    interval = ratio_interval(x, y)
    return Estimate(sum(x) / sum(y), *(interval or (None, None)))


def test_sides_that_are_the_same_are_told_apart_one_time_in_twenty_at_most() -> None:
    rng = np.random.default_rng(11)
    told, missed, trials = 0, 0, 400
    for _ in range(trials):
        steps = rng.integers(5, 60, size=(2, 40))
        level = np.clip(rng.normal(0.6, 0.15, size=(2, 40)), 0, 1)
        x = rng.binomial(steps * 4, level) / 4
        same = difference(*(estimate(x[i], steps[i]) for i in (0, 1)))
        lower = difference(estimate(x[0], steps[0]), estimate(np.maximum(0, x[1] - 0.2 * steps[1]), steps[1]))
        assert same is not None
        assert lower is not None
        told += bool(same.tells)
        missed += not lower.tells
    assert told / trials < 0.08
    assert missed / trials < 0.05


@pytest.mark.parametrize(("before", "after"), [(2, 4), (4, 8), (8, 2)])
def test_a_changed_k_moves_alpha_and_nothing_at_the_common_depth(before: int, after: int) -> None:
    first, _ = traffic([[2] * 5] * 12, d=before, prefix="a")
    second, _ = traffic([[2] * 5] * 12, d=after, first=T0 + 100, prefix="b")
    found = only(windows([engine(), *first, *second], (None, T0 + 50), (T0 + 50, None)))
    assert found.k_differs
    assert found.alpha is not None
    assert found.alpha.tells
    assert found.at_depth is not None
    assert found.at_depth.depth == min(before, after)
    assert found.at_depth.acceptance.difference == 0
    assert found.tells == []


def test_the_common_depth_is_the_deepest_that_both_sides_know_enough_of() -> None:
    few_deep = [[1, 1, 1, 1]] * 12
    first, _ = traffic(few_deep, d=2, prefix="a")
    deep, _ = traffic([[4]], d=4, first=T0 + 40, prefix="deep")
    second, _ = traffic([[2, 2, 2]] * 12, d=4, first=T0 + 100, prefix="b")
    found = only(windows([engine(), *first, *deep, *second], (None, T0 + 50), (T0 + 50, None)))
    assert found.at_depth is not None
    assert (found.at_depth.depth, found.at_depth.few) == (2, False)
    assert found.at_depth.acceptance.b.value == 1.0
    assert found.at_depth.acceptance.a.value == pytest.approx((48 * 1 + 2) / (49 * 2))


def test_a_common_depth_of_little_carries_few_and_tells_nothing() -> None:
    first, _ = traffic([[2] * 20], d=2, prefix="a")
    second, _ = traffic([[0] * 20], d=4, first=T0 + 100, prefix="b")
    found = only(windows([engine(), *first, *second], (None, T0 + 50), (T0 + 50, None)))
    assert found.at_depth is not None
    assert found.at_depth.few
    assert found.few
    assert found.tells == []


def test_a_depth_counts_neither_probes_nor_the_first_steps_after_k_zero() -> None:
    records = [engine(), sequence("a")]
    quiet = [row("a", d=0, a=0)] * 64
    resumed = [row("a", d=4, a=0)] * 64
    rows = [*quiet, *resumed, row("a", d=4, a=4), row("a", d=4, a=0, limit="probe")]
    found = whole([*records, *(step(n, [one]) for n, one in enumerate(rows, 1))])  # type: ignore[list-item]
    assert [(one.steps, one.acceptance) for one in found.buckets[0].depths] == [(1, 1.0)] * 4


def test_a_version_push_keeps_the_bucket_together_and_stands_in_the_configuration() -> None:
    first, _ = traffic([[3, 2, 2]] * 15, d=7, prefix="a")
    second, _ = traffic([[1, 2, 1]] * 15, d=7, first=T0 + 100, prefix="b")
    pushed = engine(T0 + 60, drafter="drafter@2", boot="b2")
    records = [engine(boot="b1"), *first, pushed, *second]
    cuts: tuple[Cut, Cut] = ((None, T0 + 60), (T0 + 60, None))
    found = windows(records, *cuts)
    bucket = only(found)
    assert bucket.model_version is None
    assert bucket.tells == ["acceptance"]
    (differing,) = found.configuration
    assert (differing.engine, differing.name, differing.a, differing.b) == (None, "drafter", ["drafter"], ["drafter@2"])
    apart = windows(records, *cuts, by=["workload", "model_version"])
    assert [(one.a is None, one.b is None) for one in apart.buckets] == [(False, True), (True, False)]
    assert all(one.alpha is None and not one.tells for one in apart.buckets)


def test_a_window_across_a_push_names_both_versions_in_their_order() -> None:
    first, _ = traffic([[3]] * 10, prefix="a")
    second, _ = traffic([[3]] * 10, first=T0 + 100, prefix="b")
    records = [engine(), *first, engine(T0 + 60, target="target@2"), *second]
    (differing,) = windows(records, WHOLE, (T0 + 60, None)).configuration
    assert (differing.a, differing.b) == (["target", "target@2"], ["target@2"])


def test_controls_in_force_are_those_of_the_start_and_of_the_window_itself() -> None:
    first, _ = traffic([[3]] * 10, prefix="a")
    second, _ = traffic([[3]] * 10, first=T0 + 100, prefix="b")
    records = [
        engine(), *first,
        control(T0 + 40, "mode", {"mode": "static", "k": 2}),
        control(T0 + 41, "cap", {"cap": 3}),
        control(T0 + 42, "lane", {"lane": "vanilla", "k": 1}, "code"),
        *second,
        control(T0 + 100.5, "undo", {"cap": None}),
        control(T0 + 101, "fallback", {"fallback": True}, "code"),
        control(T0 + 500, "fallback", {"fallback": True}),
    ]  # fmt: skip
    found = windows(records, (None, T0 + 39), (T0 + 50, T0 + 110)).configuration
    assert {one.name: (one.a, one.b) for one in found} == {
        "configured": (["static:4"], ["static:2"]),
        "resolved": (["static:4"], ["static:2"]),
        "cap": (["none"], ["3", "none"]),
        "lane of code": (["speculative"], ["vanilla", "speculative"]),
        "K of code": (["free"], ["1", "free"]),
        "fallback of code": (["off"], ["off", "on"]),
    }


def test_what_the_engine_made_of_the_policy_is_told_with_its_reason() -> None:
    records, _ = traffic([[3]] * 10)
    clamped = PolicyMode(mode="static", k=2, reason="clamped to the engine's maximum of 2")
    sides = [whole([one, *records]) for one in (engine(), engine(resolved=clamped, max_k=2))]
    found = {one.name: (one.a, one.b) for one in compare(*sides).configuration}
    assert found == {
        "max K": (["8"], ["2"]),
        "resolved": (["static:4"], ["static:2 (clamped to the engine's maximum of 2)"]),
    }


def test_a_restarted_engine_that_heard_of_the_policy_before_has_not_changed_it() -> None:
    first, _ = traffic([[3]] * 10, prefix="a")
    second, _ = traffic([[3]] * 10, first=T0 + 100, prefix="b")
    set_before = control(T0 - 5, "mode", {"mode": "static", "k": 2}, policy=1)
    records = [set_before, engine(), *first, engine(T0 + 60, boot="b2"), *second]
    assert windows(records, (None, T0 + 60), (T0 + 60, None)).configuration == []
    assert dict_of(*taken(records, (T0 + 60, None)))["configured"] == ["static:2"]


def dict_of(found: Side) -> dict[str, list[str]]:
    return {one.name: one.values for one in found.settings}


def control(
    ts: float, action: str, after: dict[str, Any], workload: str | None = None, policy: int | None = None
) -> ControlRecord:
    return ControlRecord(ts, "operator", action, workload, None, after, policy)


def test_engines_are_held_together_by_name_and_one_alone_by_being_alone() -> None:
    def of(*engines: EngineRecord) -> Side:
        rows = [step(n, [], engine=one.engine, k_draft=4) for one in engines for n in range(1, 4)]
        return whole([*engines, *rows])

    small = engine(engine="small", max_num_seqs=8)
    assert [(one.engine, one.name) for one in compare(of(engine()), of(small)).configuration] == [
        (None, "max_num_seqs")
    ]
    found = compare(of(engine(), small), of(engine(), engine(engine="new"))).configuration
    assert [(one.engine, one.name, one.a, one.b) for one in found] == [
        ("new", "engine", ["absent"], ["runs"]), ("small", "engine", ["runs"], ["absent"]),
    ]  # fmt: skip


def test_a_bucket_of_one_side_only_is_shown_and_has_no_difference() -> None:
    records, _ = traffic([[3]] * 10)
    other: list[Record] = [engine(), sequence("x", "chat"), step(1, [row("x")]), sequence("y"), step(2, [row("y")])]
    found = compare(whole([engine(), *records]), whole(other))
    assert [(one.workload, one.a is None, one.b is None) for one in found.buckets] == [
        ("chat", True, False), ("code", False, False),
    ]  # fmt: skip
    chat = found.buckets[0]
    assert (chat.alpha, chat.at_depth, chat.tokens_per_second) == (None, None, None)
    assert found.total is not None
    assert found.total.b is not None
    assert found.total.b.decode_rows == 2


def test_a_window_in_which_nothing_ran_is_empty_and_said() -> None:
    first, _ = traffic([[3]] * 10, prefix="a")
    second, _ = traffic([[3]] * 10, first=T0 + 100, prefix="b")
    found = windows([engine(), *first, *second], (T0 + 40, T0 + 60), (T0 + 60, None))
    assert found.notes == ["nothing ran in A"]
    assert found.configuration == []
    assert found.a.window is None
    assert only(found).a is None


def test_nothing_drafted_leaves_acceptance_absent_on_that_side() -> None:
    first, _ = traffic([[0] * 4] * 10, d=0, prefix="a")
    second, _ = traffic([[3] * 4] * 10, first=T0 + 100, prefix="b")
    found = only(windows([engine(), *first, *second], (None, T0 + 50), (T0 + 50, None)))
    assert (found.alpha, found.at_depth, found.waste_ratio) == (None, None, None)
    assert found.tokens_per_second is not None
    assert not found.k_differs


def test_the_same_record_on_both_sides_is_said() -> None:
    records, _ = traffic([[3]] * 10)
    copies = [whole([engine(boot="b1"), *records]) for _ in range(2)]
    (note,) = compare(*copies).notes
    assert "the same run of e0" in note
    assert compare(copies[0], whole([engine(boot="b2"), *records])).notes == []


def test_what_can_not_be_asked_is_refused() -> None:
    with pytest.raises(ReportError, match="colour"):
        whole([engine()], by=["colour"])
    with pytest.raises(ReportError, match="begin"):
        taken([engine()], (T0 + 5, T0 + 5))
    with pytest.raises(ValueError, match="held together"):
        compare(whole([engine()], by=["workload"]), whole([engine()], by=["engine"]))
