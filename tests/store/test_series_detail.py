"""How sure each point of a bucket's series is, and the speedup in it: the figures of its rows alone, however stored."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.intervals import interval_of_sums, ratio_interval
from engine.records import Record
from store.database import Store
from store.figures import BucketKey, SeriesPoint
from store.load import Runner
from store.recent_rows import ENOUGH_STEPS, recent_rows
from store.report import report
from store.rollup import roll_up
from store.series_detail import detailed, members_of
from store.step_models import step_models
from tests.store.builders import T0, engine, row, sequence, step, store_of

NAMES = "abcdefghijkl"
PREPARED = 60
"""Seconds of vanilla steps before anything is drafted, so that vanilla times are known."""


def clean_steps() -> Iterator[Record]:
    for number in range(PREPARED * 20):
        ts = T0 + (number + 1) * 0.05
        yield step(number, [row("v", d=0, a=0, k=0)], ts, duration_ms=50.0, k_verify=0, k_draft=0)


def drafting_steps(seconds: int, a_of: dict[str, int], k: int = 4, start: int = PREPARED) -> Iterator[Record]:
    """Ten steps a second, the sequences one after the other: of `k` drafted, each accepts its own number."""
    names = list(a_of)
    for number in range(seconds * 10):
        name = names[number % len(names)]
        a = min(k, (a_of[name] + number % 2) if a_of[name] else 0)
        ts = T0 + start + (number + 1) * 0.1
        yield step(100_000 + start * 10 + number, [row(name, d=k, a=a)], ts, duration_ms=100.0, k_verify=k, k_draft=k)


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    """A minute at K = 0, then two minutes at K = 4, then a minute at K = 2; another workload is idle."""
    spread = {name: number % 4 for number, name in enumerate(NAMES)}
    records: list[Record] = [engine(), sequence("v"), *(sequence(name) for name in NAMES), sequence("o", "other")]
    records += [*clean_steps(), *drafting_steps(120, spread), *drafting_steps(60, spread, 2, PREPARED + 120)]
    with store_of(records) as made:
        yield made


END = T0 + PREPARED + 180


def key_of(store: Store) -> BucketKey:
    found = store.connection.execute(
        "SELECT workload, context, temperature, model_version FROM buckets WHERE workload = 'code'"
    ).fetchall()
    return BucketKey(*found[0])


def points(count: int, seconds: int, end: float) -> list[SeriesPoint]:
    last = math.ceil(end / seconds) * seconds
    return [
        SeriesPoint(float(last - (count - 1 - n) * seconds), None, None, None, 0.0, None, None) for n in range(count)
    ]


@pytest.mark.parametrize("seconds", [30, 60])
def test_each_point_has_the_figures_that_a_report_has_of_its_stretch(store: Store, seconds: int) -> None:
    models = step_models(store.connection)
    made = detailed(store.connection, key_of(store), points(4, seconds, END), seconds, models, END)
    for point in made:
        at = min(point.ts - 1e-4, END)
        alone = report(store.connection, source="", window=at - (point.ts - seconds) + 1e-4, at=at).total
        assert alone is not None
        assert (point.alpha_low, point.alpha_high) == pytest.approx((alone.alpha_low, alone.alpha_high))
        assert point.sequences == 12
        assert point.speedup == pytest.approx(alone.speedup, rel=1e-3)
        assert point.speedup is not None
        assert point.speedup_low is not None
        assert point.speedup_low < point.speedup


def test_what_is_rolled_up_says_the_same_as_rows(store: Store) -> None:
    models = step_models(store.connection)
    asked = points(4, 30, END)
    before = detailed(store.connection, key_of(store), asked, 30, models, END)
    roll_up(store.connection, END - 40)
    after = detailed(store.connection, key_of(store), asked, 30, models, END)
    for one, other in zip(before, after, strict=True):
        assert (one.sequences, one.alpha_low) == (other.sequences, pytest.approx(other.alpha_low))
        assert one.speedup == pytest.approx(other.speedup)


def test_nothing_later_than_now_counts_and_what_is_unknown_is_absent(store: Store) -> None:
    models = step_models(store.connection)
    now = T0 + PREPARED + 10
    early, late = detailed(store.connection, key_of(store), points(2, 60, now), 60, models, now)
    assert (early.sequences, early.alpha_low) == (0, None)
    assert 0 < (late.sequences or 0) <= 12
    uncalibrated = detailed(store.connection, key_of(store), points(2, 60, END), 60, {}, END)
    assert [point.speedup for point in uncalibrated] == [None, None]
    nobody = BucketKey("nobody", "0-512", "0", "x")
    assert detailed(store.connection, nobody, points(2, 60, END), 60, models, END) == points(2, 60, END)


@given(st.lists(st.tuples(st.integers(1, 40), st.floats(0, 1)), max_size=12))
def test_sums_give_the_interval_that_the_clusters_give(clusters: list[tuple[int, float]]) -> None:
    under = [float(y) for y, _ in clusters]
    over = [math.floor(y * share) * 1.0 for y, share in clusters]
    pairs = list(zip(over, under, strict=True))
    sums = (sum(under), sum(over), sum(y * y for y in under), sum(x * y for x, y in pairs), sum(x * x for x in over))
    found, expected = interval_of_sums(len(clusters), *sums), ratio_interval(over, under)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found == pytest.approx(expected, abs=1e-6)


def test_each_k_has_the_speedup_of_its_own_rows(store: Store) -> None:
    models, members = step_models(store.connection), members_of(store.connection, key_of(store))
    recent = recent_rows(store.connection, members, models, END)
    assert recent is not None
    assert [(one.k, one.rows) for one in recent.by_k] == [(0, 1200), (2, 600), (4, 1200)]
    none, two, four = (one.speedup.value for one in recent.by_k)
    assert none == pytest.approx(1.0, abs=0.02)
    assert two is not None
    assert four is not None
    assert two < four, "more is accepted of four than of two"
    assert recent.batch == pytest.approx(1.0)


def test_the_worst_sequences_come_first_with_their_last_rows(store: Store) -> None:
    members = members_of(store.connection, key_of(store))
    recent = recent_rows(store.connection, members, {}, END)
    assert recent is not None
    assert [one.name for one in recent.worst[:3]] == ["a", "e", "i"], "those that never accept"
    first = recent.worst[0]
    assert (first.alpha, first.accepted) == (0.0, 0)
    assert len(first.rows) == 12
    assert [one.ts for one in first.rows] == sorted(one.ts for one in first.rows)
    assert (first.rows[-1].k_asked, first.rows[-1].drafted, first.rows[-1].limit) == (2, 2, "static")


def test_only_the_newest_steps_by_the_clock_are_looked_at(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    members = members_of(store.connection, key_of(store))
    monkeypatch.setattr("store.recent_rows.MOST_ROWS", 50)
    recent = recent_rows(store.connection, members, {}, END)
    assert recent is not None
    assert [(one.k, one.rows) for one in recent.by_k] == [(2, 50)]
    assert recent.worst == [], f"nobody has {ENOUGH_STEPS} draft steps among them"
    earlier = recent_rows(store.connection, members, {}, T0 + PREPARED)
    assert earlier is not None
    assert [one.k for one in earlier.by_k] == [0]
    assert recent_rows(store.connection, members, {}, T0 - 1) is None


def test_a_key_has_the_buckets_of_every_engine(store: Store) -> None:
    (runner,) = set(members_of(store.connection, key_of(store)).values())
    assert isinstance(runner, Runner)
    assert runner.engine == "e0"
