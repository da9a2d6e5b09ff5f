"""The query that a figure is explained with gives that figure, to the last digit, from a recorded store."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import intervals
from store import buckets, counts, levels
from store.database import Store
from store.figure_sql import acceptance, deciding, judged, literals, missing, scope, sequences, work
from store.figure_sql.scope import Scope
from store.figures import BucketKey, Figures
from store.moments import losses
from store.observed import observed, observed_buckets
from store.recent_rows import recent_rows
from store.series_detail import members_of
from store.source import open_source
from store.step_models import step_models
from store.still_windows import StillWindows
from tests.store import builders

TRACES = Path(__file__).parents[2] / "sample_traces"
POOL = BucketKey(None, None, None, None)


def ask(connection: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    cursor = connection.execute(query)
    names = [column[0] for column in cursor.description or []]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def close(value: float | None) -> Any:
    return value if value is None else pytest.approx(value, rel=1e-9, abs=1e-12)


def scope_of(figures: Figures, by_cells: bool) -> Scope:
    assert figures.window is not None
    return Scope(key=figures.key, start=figures.window.start, end=figures.window.end, by_cells=by_cells)


def assert_true(connection: duckdb.DuckDBPyConnection, figures: Figures, by_cells: bool) -> None:
    """Every query about these figures gives them."""
    where = scope_of(figures, by_cells)
    assert_rates(connection, figures, where)
    assert_interval(connection, figures, where)
    mix = ask(connection, acceptance.k_mix(where))
    for column, told in (("k_asked", figures.k_histogram), ("set_by", figures.limit_histogram)):
        rows: dict[str, int] = {}
        for line in mix:
            rows[str(line[column])] = rows.get(str(line[column]), 0) + line["decode_rows"]
        assert rows == told
    assert not mix or sum(line["share"] for line in mix) == close(1.0)
    longest = len(figures.position_marginal)
    places = acceptance.positions(where, longest) if longest else "SELECT 0 WHERE false"
    lines = ask(connection, places)
    if figures.steps:
        assert [line["accepted"] for line in lines] == [close(value) for value in figures.position_marginal]
        assert [line["given_the_one_before"] for line in lines] == [
            close(value) for value in figures.position_conditional
        ]
    else:
        assert not lines
    (rate,) = ask(connection, work.tokens_per_second(where))
    assert rate["tokens_per_second"] == close(figures.tokens_per_second)
    (simple,) = ask(connection, work.tokens_per_second(where, gaps=False))
    if not connection.execute("FROM gaps").fetchall():
        assert simple["tokens_per_second"] == close(figures.tokens_per_second)
    (out,) = ask(connection, missing.left_out(where))
    assert figures.decode_rows is not None
    assert figures.post_resume is not None
    assert out["undrafted"] == figures.decode_rows - figures.steps
    assert out["post_resume"] == figures.post_resume.steps
    assert out["probe_rows"] == figures.limit_histogram.get("probe", 0)


def assert_rates(connection: duckdb.DuckDBPyConnection, figures: Figures, where: Scope) -> None:
    (found,) = ask(connection, acceptance.rates(where))
    for name in ("steps", "decode_rows", "drafted", "accepted", "emitted"):
        assert found[name] == getattr(figures, name), name
    for name in (
        "alpha", "pooled_acceptance", "conditional_acceptance", "mean_acceptance_length", "committed_per_step",
        "waste_ratio", "drafted_share",
    ):  # fmt: skip
        assert found[name] == close(getattr(figures, name)), name
    assert found["complete"] is True


def assert_interval(connection: duckdb.DuckDBPyConnection, figures: Figures, where: Scope) -> None:
    (found,) = ask(connection, acceptance.interval(where))
    assert (found["sequences"], found["alpha"]) == (figures.sequences, close(figures.alpha))
    if (
        figures.alpha is not None
        and figures.alpha_low is not None
        and figures.alpha_high is not None
        and 0 < figures.alpha < 1
    ):
        half = intervals.reach(found["n_effective"] - 1) * found["standard_error"]
        assert max(0.0, figures.alpha - half) == pytest.approx(figures.alpha_low, rel=1e-9, abs=1e-12)
        assert min(1.0, figures.alpha + half) == pytest.approx(figures.alpha_high, rel=1e-9, abs=1e-12)


@pytest.fixture(scope="module", params=["hostile", "schedule"])
def recorded(request: pytest.FixtureRequest) -> Iterator[Store]:
    with open_source(TRACES / f"{request.param}.jsonl.zst") as store:
        yield store


def moments_of(connection: duckdb.DuckDBPyConnection) -> list[float]:
    """The end of a step, a moment between steps, and the end of all."""
    times = [ts for (ts,) in connection.execute("SELECT DISTINCT ts FROM steps ORDER BY ts").fetchall()]
    return [times[len(times) // 3], times[len(times) // 2] + 0.0004, times[-1]]


def shown_at(connection: duckdb.DuckDBPyConnection, ts: float, place: int | None = None) -> list[Figures]:
    """What a replay shows at a moment; `place`: over the window of that number."""
    still = StillWindows(connection, ts, step_models(connection))
    if place is None:
        pool = still.total(ts)
        return [view.figures for view in still.buckets(ts)] + ([pool] if pool is not None else [])
    members: dict[BucketKey, list[int]] = {POOL: still._counts.buckets.tolist()}
    for number in still._seen:
        members.setdefault(BucketKey(*still._names[number][1:]), []).append(number)
    return [still._figures(key, np.array(numbers), place) for key, numbers in members.items()]


def test_every_bucket_of_a_replay_at_any_moment(recorded: Store) -> None:
    for ts in moments_of(recorded.connection):
        shown = shown_at(recorded.connection, ts)
        assert shown
        for figures in shown:
            assert_true(recorded.connection, figures, by_cells=False)


@pytest.mark.parametrize("place", [0, 1, 2], ids=["5 min", "1 h", "6 h"])
def test_cells_tell_the_same_as_rows_in_every_window(recorded: Store, place: int) -> None:
    ts = moments_of(recorded.connection)[1]
    for figures in shown_at(recorded.connection, ts, place):
        assert_true(recorded.connection, figures, by_cells=True)


def test_the_step_time_of_a_speedup(recorded: Store) -> None:
    (ts,) = moments_of(recorded.connection)[2:]
    still = StillWindows(recorded.connection, ts, {})
    pool = still._figures(POOL, still._counts.buckets, 1)
    sums = list(still._load_of(still._counts.buckets, 1).values())
    for by_cells in (False, True):
        found = ask(recorded.connection, work.step_time(scope_of(pool, by_cells)))
        for name, value in (
            ("decode_rows", sum(load.rows.sum() for load in sums)),
            ("emitted", sum(load.emitted.sum() for load in sums)),
            ("seconds_taken", sum(load.duration_ms.sum() for load in sums) / 1000),
        ):
            assert sum(line[name] for line in found) == close(float(value))


def test_the_rate_of_right_now_and_what_was_lost(recorded: Store) -> None:
    for ts in moments_of(recorded.connection):
        still = StillWindows(recorded.connection, ts, {})
        (now,) = ask(recorded.connection, work.tokens_now(ts))
        assert (now["tokens_per_second"] or 0.0) == close(still.tokens_per_second(ts))
        (out,) = ask(recorded.connection, missing.losses(ts))
        lost = losses(recorded.connection, ts)
        assert (out["gaps"], out["frames_lost"], out["quarantined"]) == lost[:3]


def test_what_each_k_brought_and_the_worst_sequences(recorded: Store) -> None:
    connection, ts = recorded.connection, moments_of(recorded.connection)[2]
    for figures in shown_at(connection, ts)[:-1]:
        members = members_of(connection, figures.key)
        recent = recent_rows(connection, members, {}, ts)
        if recent is None or recent.batch is None:
            continue
        where = Scope(key=figures.key, start=recent.since, end=recent.until)
        told = ask(connection, work.by_k(where))
        assert [(line["k_asked"], line["decode_rows"]) for line in told] == [(one.k, one.rows) for one in recent.by_k]
        assert [line["batch"] for line in told] == [close(one.batch) for one in recent.by_k]
        (rates,) = ask(connection, acceptance.rates(where))
        assert rates["conditional_acceptance"] == close(recent.conditional)
        worst = ask(connection, sequences.worst(where))
        assert [(line["sequence"], line["steps"], line["accepted"]) for line in worst] == [
            (one.name, one.steps, one.accepted) for one in recent.worst
        ]
        assert [line["alpha"] for line in worst] == [close(one.alpha) for one in recent.worst]


def test_an_export_without_old_rows_is_still_right_from_cells_and_says_what_rows_no_longer_tell(
    recorded: Store, tmp_path: Path
) -> None:
    from store.export import export

    connection, ts = recorded.connection, moments_of(recorded.connection)[2]
    pool, *buckets = shown_at(connection, ts, 1)
    (begun,) = connection.execute("SELECT min(ts) FROM steps").fetchall()[0]
    path = tmp_path / "late.duckdb"
    export(connection, path, since=max(begun + 20, ts - 15))
    with duckdb.connect(str(path), read_only=True) as late:
        (left,) = late.execute("SELECT min(ts) FROM steps").fetchall()[0]
        for figures in (pool, *buckets):
            assert_rates(late, figures, scope_of(figures, by_cells=True))
        (rows,) = ask(late, acceptance.rates(scope_of(pool, by_cells=False)))
        assert rows["complete"] is (left == begun)


@pytest.mark.parametrize("depth", [1, 2])
def test_acceptance_at_a_depth_as_an_alert_tells_it(recorded: Store, depth: int) -> None:
    connection = recorded.connection
    (last,) = connection.execute("SELECT max(cell) FROM sequence_rollup_10s").fetchall()[0]
    start, end = float(last - 120), float(last)
    names = "engine, workload, context, temperature, model_version"
    for engine, *key in connection.execute(f"SELECT DISTINCT {names} FROM buckets").fetchall():
        rows = connection.execute(
            f"""SELECT r.sequence, least(r.accepted, {depth}) FROM rows r JOIN steps s ON r.step = s.id
                WHERE bucket IN (SELECT id FROM buckets WHERE ({names}) = (?, ?, ?, ?, ?)) AND s.ts >= ? AND s.ts < ?
                AND r.cause <> 0 AND r.drafted >= {depth} AND NOT r.post_resume AND r.limit_term <> 5""",
            [engine, *key, start, end],
        ).fetchall()
        where = Scope(key=BucketKey(*key), start=start, end=end, engine=engine)
        (found,) = ask(connection, judged.at_depth(where, depth))
        assert found["n"] == len({sequence for sequence, _ in rows})
        expected = sum(accepted for _, accepted in rows) / (depth * len(rows)) if rows else None
        assert found["acceptance"] == close(expected)


def test_an_engine_of_which_only_counters_are_known() -> None:
    with builders.store_of([builders.engine()]) as store:
        ((run, version),) = store.connection.execute("SELECT id, model_version FROM engines").fetchall()
        for number in range(60):
            store.connection.execute(
                "INSERT INTO observations BY NAME SELECT ? AS engine_run, ? AS since, ? AS ts, ? AS drafts, "
                "? AS draft_tokens, ? AS accepted_tokens, []::UBIGINT[] AS accepted_per_position, "
                "9 AS generation_tokens",
                [run, builders.T0 + 5 * number, builders.T0 + 5 * number + 5, 3 + number, 4 * number + 1, number],
            )
        end = builders.T0 + 300
        (figures,) = observed_buckets(observed(store.connection, end - 100, end), ("model_version",))
        assert figures.window is not None
        (found,) = ask(store.connection, judged.observed(figures.window.start, figures.window.end, version))
        for name in ("steps", "drafted", "accepted", "emitted"):
            assert found[name] == getattr(figures, name)
        for name in ("pooled_acceptance", "mean_acceptance_length", "waste_ratio"):
            assert found[name] == close(getattr(figures, name))


NAMES = st.one_of(
    st.sampled_from(
        ["'; DROP TABLE rows; --", '"$(reboot)"', "a\\'b", "!!", "`id`", "line\nbreak", "\x1b[201~rm", "\u202egnirts",
         "客服" * 30, "x" * 200, "a  b", "%s {} ?", "naïve‍🙂"]
    ),
    st.text(min_size=1, max_size=30),
)  # fmt: skip


@given(name=NAMES)
@settings(max_examples=30, deadline=None)
def test_a_text_means_itself_and_nothing_to_a_shell(memory: duckdb.DuckDBPyConnection, name: str) -> None:
    written = literals.text(name)
    assert memory.execute(f"SELECT {written}").fetchall() == [(name,)]
    assert written.isprintable()
    assert not set(written) & set('"$`\\!')


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12))
@settings(max_examples=40, deadline=None)
def test_a_number_keeps_its_last_digit(memory: duckdb.DuckDBPyConnection, value: float) -> None:
    (found,) = memory.execute(f"SELECT ({literals.number(value)})::DOUBLE").fetchall()[0]
    assert found == value


@pytest.fixture(scope="module")
def memory() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


ROWS = st.lists(
    st.tuples(
        st.integers(0, 3), st.integers(0, 6), st.integers(0, 6), st.integers(0, 2),
        st.sampled_from(["static", "probe", "cap"]), st.floats(0.001, 900),
    ),
    min_size=1, max_size=40,
)  # fmt: skip


@given(rows=ROWS, names=st.lists(NAMES, min_size=4, max_size=4, unique=True))
@settings(max_examples=5, deadline=None)
def test_random_rows_of_hostile_workloads(rows: list[Any], names: list[str]) -> None:
    records: list[Any] = [builders.engine()]
    records += [builders.sequence(f"s{place}{other}", name) for place, name in enumerate(names) for other in range(3)]
    clock = builders.T0
    for number, (place, drafted, accepted, other, limit, pause) in enumerate(rows, 1):
        clock += pause
        row = builders.row(f"s{place}{other}", drafted, min(accepted, drafted), limit=limit)
        records.append(builders.step(number, [row], ts=clock))
    with builders.store_of(records) as store:
        for figures in shown_at(store.connection, clock):
            assert_true(store.connection, figures, by_cells=False)
            assert_true(store.connection, figures, by_cells=True)


def test_the_numbers_that_queries_repeat_are_the_store_s() -> None:
    assert scope.CALIBRATION == buckets.CALIBRATION
    assert scope.RATIO_UNIT == counts.RATIO_UNIT
    assert scope.PREFILL == counts.PREFILL
    assert scope.CELL_SECONDS == levels.CELL_SECONDS


def test_a_query_means_nothing_to_a_shell() -> None:
    key = BucketKey('"; rm -rf / #$(x)`y`\\!', "0-512", "0", "v\n2")
    queries = [
        make(Scope(key=key, start=builders.T0, end=builders.T0 + 300.25, by_cells=by_cells))
        for make in (acceptance.rates, acceptance.interval, acceptance.k_mix, work.step_time, missing.left_out)
        for by_cells in (False, True)
    ]
    queries += [deciding.executed("e'0\"", math.pi), judged.record(7)]
    assert not set("".join(queries)) & set('"$`\\!')
