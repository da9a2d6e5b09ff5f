"""SQL of one's own: what it may cost, what it can't reach, and what a snapshot of a live store leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from store.database import Store
from store.export import ExportError, export
from store.figures import Figures
from store.ingest import Ingest
from store.query import SqlError, run_sql
from store.report import report
from tests.store.builders import T0, engine, finish, row, sequence, step, store_of, trace_of

HOURS = 3


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sql") / "e.duckdb"
    with store_of(trace_of([row("a")] * 30)) as store:
        export(store.connection, path)
    return path


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("SELECT 1; ATTACH '{folder}/made.duckdb'", id="second statement"),
        pytest.param("ATTACH ':memory:' AS m", id="memory"),
        pytest.param("FROM read_blob('{folder}/secret')", id="blob"),
        pytest.param("FROM sniff_csv('{folder}/secret')", id="sniff"),
        pytest.param("SELECT getenv('HOME')", id="getenv"),
        pytest.param("PRAGMA profiling_output='{folder}/made.json'", id="pragma"),
        pytest.param("CALL enable_logging(storage='file', storage_path='{folder}/made')", id="logging"),
        pytest.param("PRAGMA memory_limit='100GB'", id="memory limit"),
        pytest.param("RESET memory_limit", id="reset"),
        pytest.param("CREATE SECRET made (TYPE S3)", id="secret"),
    ],
)
def test_no_statement_reaches_out_of_the_database_or_loosens_its_bounds(
    exported: Path, tmp_path: Path, sql: str
) -> None:
    (tmp_path / "secret").write_text("a\nhunter2\n")
    with pytest.raises(SqlError) as refused:
        run_sql(exported, sql.format(folder=tmp_path))
    assert "hunter2" not in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


def test_what_an_answer_may_cost_is_bounded(exported: Path) -> None:
    many = run_sql(exported, "FROM range(1000000000)")
    assert (len(many.rows), many.truncated) == (10_000, True)
    with pytest.raises(SqlError, match="Out of Memory"):
        run_sql(exported, "CREATE TEMP TABLE mine AS FROM range(1000000000)")
    with pytest.raises(SqlError, match="larger than 64 MB"):
        run_sql(exported, "SELECT repeat('x', 70000000)")


@pytest.fixture
def recorded() -> Iterator[Store]:
    """Three hours of a step every 20 s, a sequence every hour, the last cells not rolled up yet."""
    store = Store.memory()
    ingest = Ingest(store)
    ingest.record(engine())
    for hour in range(HOURS):
        name, began = f"s{hour}", T0 + hour * 3600
        ingest.record(sequence(name, ts=began))
        for number in range(1, 181):
            ingest.record(step(number + hour * 180, [row(name, a=number % 5)], ts=began + number * 20))
        ingest.record(finish(name, began + 3601))
    ingest.flush()
    yield store
    store.close()


def figures_of(store: Store) -> list[Figures]:
    """Without what goes by the start of the record, which is known to a cell where its rows are gone."""
    return [replace(one, tokens_per_second=None, window=None) for one in report(store.connection, source="x").buckets]


def counted(path: Path) -> list[int]:
    query = "SELECT (SELECT count(*) FROM rows), (SELECT count(*) FROM steps), (SELECT count(*) FROM sequences)"
    return run_sql(path, query).rows[0]


def test_a_snapshot_leaves_out_single_rows_that_are_older_and_no_figure(recorded: Store, tmp_path: Path) -> None:
    end = T0 + HOURS * 3600
    export(recorded.connection, tmp_path / "full.duckdb")
    export(recorded.connection, tmp_path / "recent.duckdb", since=end - 3590)
    assert counted(tmp_path / "full.duckdb") == [540, 540, 3]
    assert counted(tmp_path / "recent.duckdb") == [180, 180, 2], "the one before finished within the hour"
    with Store.open(tmp_path / "recent.duckdb", read_only=True) as copy:
        assert figures_of(copy) == figures_of(recorded)


def test_a_snapshot_keeps_what_is_not_rolled_up_however_old_it_is(recorded: Store, tmp_path: Path) -> None:
    export(recorded.connection, tmp_path / "recent.duckdb", since=T0 + 1e6)
    rows, steps, _ = counted(tmp_path / "recent.duckdb")
    assert 0 < rows == steps <= 3
    with Store.open(tmp_path / "recent.duckdb", read_only=True) as copy:
        assert figures_of(copy) == figures_of(recorded)


def test_a_folder_of_parquet_has_no_beginning(recorded: Store, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"\.duckdb"):
        export(recorded.connection, tmp_path / "folder", since=T0)
