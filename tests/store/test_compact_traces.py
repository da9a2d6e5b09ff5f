"""The compact form holds what JSONL holds, is taken in alike, and says what is wrong with it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from pyarrow import parquet

import store.ingest
from engine.records import Record
from store import source
from store.database import Store
from store.ingest import Ingest
from store.source import take_in
from store.tables import TABLES
from store.trace import TraceError, TraceNotes, TraceWriter, file_records, jsonl, read_pieces, read_records, trace_info
from store.trace.compact_schema import FORMAT_KEY, SCHEMA
from store.trace.convert import convert
from tests.store.builders import engine, row, sequence, step
from tests.store.test_traces import RECORDS, write
from tests.store.trace_strategies import normalised, traces

FORMS = ["t.jsonl", "t.jsonl.zst", "t.parquet"]


@pytest.fixture(autouse=True, scope="module")
def little_at_once() -> Iterator[None]:
    """Blocks, row groups, digests and flushes of a few rows: their edges are what may go wrong."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl, "CHUNK_ROWS", 7)
        patch.setattr("store.trace.compact_writer.GROUP_ROWS", 5)
        patch.setattr(store.ingest, "DIGEST_ROWS", 6)
        patch.setattr(source, "FLUSH_ROWS", 9)
        yield


def test_the_compact_form_reads_as_it_was_written(tmp_path: Path) -> None:
    assert list(read_records(write(tmp_path / "t.parquet", RECORDS))) == RECORDS


@settings(max_examples=60, deadline=None)
@given(traces())
def test_jsonl_to_compact_and_back_is_the_same(tmp_path_factory: pytest.TempPathFactory, records: list[Record]) -> None:
    folder = tmp_path_factory.mktemp("there-and-back")
    convert(write(folder / "t.jsonl", records), folder / "t.parquet")
    convert(folder / "t.parquet", folder / "again.jsonl")
    assert (folder / "again.jsonl").read_bytes() == normalised(records)


def test_unknown_fields_are_left_out_of_the_compact_form_which_says_so(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes(normalised(RECORDS).replace(b'"step":', b'"mood":1,"step":'))
    note = "unknown field step.mood ignored on 3 lines"
    assert convert(tmp_path / "t.jsonl", tmp_path / "t.parquet").notes == [note]
    assert trace_info(tmp_path / "t.parquet").notes == [note]
    assert list(file_records(tmp_path / "t.parquet")) == RECORDS


@settings(max_examples=12, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(traces())
def test_every_form_is_taken_in_as_record_by_record(
    tmp_path_factory: pytest.TempPathFactory, records: list[Record]
) -> None:
    folder = tmp_path_factory.mktemp("taken-in")
    expected = tables(one_by_one, write(folder / "t.jsonl", records))
    assert tables(at_once, folder / "t.jsonl") == expected
    assert tables(at_once, write(folder / "t.parquet", records)) == expected
    assert tables(paced, folder / "t.parquet") == expected


def one_by_one(path: Path, ingest: Ingest) -> list[float]:
    """What `take_in` does, in the plainest way; the moments at which all before was stored."""
    due = clock = float("-inf")
    flushed = []
    for record in read_records(path):
        ingest.record(record)
        clock = max(clock, record.ts)
        if ingest.buffered_rows >= source.FLUSH_ROWS or clock >= due:
            ingest.flush()
            due = clock + source.FLUSH_RECORD_SECONDS
            flushed.append(clock)
    ingest.close()
    return [*flushed, clock]


def at_once(path: Path, ingest: Ingest) -> list[float]:
    flushed: list[float] = []
    take_in(path, ingest, flushed=flushed.append)
    return flushed


def paced(path: Path, ingest: Ingest) -> list[float]:
    """One record at a time, each told of before it is taken in."""
    flushed: list[float] = []
    told: list[float] = []
    take_in(path, ingest, pace=told.append, flushed=flushed.append)
    assert told == [record.ts for record in read_records(path)]
    return flushed


def tables(fill: Callable[[Path, Ingest], list[float]], path: Path) -> dict[str, list[tuple[object, ...]]]:
    """What is stored. Buckets and sequences by what they are: their numbers are in the order in which they were met,
    which within a block is that of its engines."""
    with Store.memory() as made:
        flushed: list[tuple[object, ...]] = [(ts,) for ts in fill(path, Ingest(made))]
        known = {
            "bucket": {one[0]: one[1:] for one in made.connection.execute("FROM buckets").fetchall()},
            "sequence": {one[0]: one[1:3] for one in made.connection.execute("FROM sequences").fetchall()},
        }
        return {"flushed": flushed} | {
            name: _by_what_they_are(name, made.connection.execute(f"FROM {name}"), known)
            for name in TABLES
            if name not in ("meta", "notes")
        }


def _by_what_they_are(
    name: str, result: duckdb.DuckDBPyConnection, known: dict[str, dict[object, tuple[object, ...]]]
) -> list[tuple[object, ...]]:
    numbered = {"buckets": {"id": "bucket"}, "sequences": {"id": "sequence"}}.get(name, {one: one for one in known})
    kinds = [known.get(numbered.get(column[0], "")) for column in result.description]
    stored = (
        tuple(one if kind is None else kind.get(one, one) for one, kind in zip(row, kinds, strict=True))
        for row in result.fetchall()
    )
    return sorted(stored, key=repr)


def test_others_can_read_the_compact_form(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", RECORDS)
    query = f"SELECT seq, drafted FROM (SELECT ts, unnest(seq) AS seq, unnest(drafted) AS drafted FROM '{path}')"
    assert duckdb.sql(query).fetchall() == [("a", 4), ("b", 0), ("a", 4), ("b", 2), ("z", 1), ("a", 0)]


@pytest.mark.parametrize("name", FORMS)
def test_a_trace_cut_off_or_changed_anywhere_opens_or_says_why(tmp_path: Path, name: str) -> None:
    whole = write(tmp_path / name, RECORDS).read_bytes()
    path = tmp_path / f"damaged-{name}"
    rng = random.Random(3)
    for number in range(150):
        damaged = bytearray(whole[: rng.randrange(len(whole))] if number % 2 else whole)
        for _ in range(number % 4 if damaged else 0):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        path.write_bytes(damaged)
        assert told(lambda: read_records(path)) == told(lambda: one_each(path))


def told(read: Callable[[], Iterator[Record]]) -> tuple[bytes, str | None]:
    """What can be read, and what the error says."""
    records: list[Record] = []
    try:
        records.extend(read())
    except TraceError as error:
        return normalised(records), str(error)
    return normalised(records), None


def one_each(path: Path) -> Iterator[Record]:
    for piece in read_pieces(path):
        if isinstance(piece, tuple):
            yield from (piece.block.record(place) for place in range(piece.start, piece.stop))
        else:
            yield piece


def test_a_compact_trace_without_its_end_says_so(tmp_path: Path) -> None:
    whole = write(tmp_path / "t.parquet", RECORDS).read_bytes()
    for length in (4, 100, len(whole) - 1):
        (tmp_path / "cut.parquet").write_bytes(whole[:length])
        with pytest.raises(TraceError, match=r"cut\.parquet: a Parquet file that can't be read: .*cut off or damaged"):
            list(read_records(tmp_path / "cut.parquet"))


def test_a_parquet_file_of_others_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "others.parquet"
    parquet.write_table(pa.table({"x": [1]}), path)
    with pytest.raises(TraceError, match=r"others\.parquet: a Parquet file, but no trace of specdeck's"):
        list(read_records(path))


def test_a_newer_compact_form_and_a_changed_one_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    newer = SCHEMA.with_metadata({FORMAT_KEY: b"2"})
    parquet.write_table(newer.empty_table(), path)
    with pytest.raises(TraceError, match="form 2; this specdeck reads up to 1"):
        list(read_records(path))
    changed = SCHEMA.remove(SCHEMA.get_field_index("drafted")).with_metadata({FORMAT_KEY: b"1"})
    parquet.write_table(changed.empty_table(), path)
    with pytest.raises(TraceError, match="no column drafted"):
        list(read_records(path))


@pytest.mark.parametrize(
    ("column", "value", "what"),
    [
        ("limit", [["wish"]], "column limit is 'wish'; known are off, hint"),
        ("drafted", [[1, 2]], "column drafted has another number of rows than seq"),
        ("accepted", [[None]], "column accepted is empty in a row"),
        ("cause", [None], "column cause is empty where there is a step"),
        ("running", [None], "column running is empty"),
        ("ts", [float("nan")], "column ts is no number"),
    ],
)
def test_a_wrong_column_is_named(tmp_path: Path, column: str, value: list[object], what: str) -> None:
    path = write(tmp_path / "t.parquet", [step(1, [row("a")])])
    field = SCHEMA.field(column)
    table = parquet.read_table(path).set_column(SCHEMA.get_field_index(column), field, pa.array(value, field.type))
    parquet.write_table(table.replace_schema_metadata({FORMAT_KEY: b"1"}), path)
    with pytest.raises(TraceError, match=what):
        list(read_records(path))


def test_a_compact_trace_without_an_engine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"t\.parquet:2: a step before any engine record"):
        list(read_records(write(tmp_path / "t.parquet", [RECORDS[1], step(1, [row()])])))


def test_info_says_the_same_of_every_form(tmp_path: Path) -> None:
    found = [trace_info(write(tmp_path / name, RECORDS)) for name in FORMS]
    facts = {(one.steps, one.rows, one.sequences, one.start, one.end, one.frames_lost) for one in found}
    assert len(facts) == 1
    assert [one.compressed for one in found] == [False, True, True]


def test_a_broken_line_ends_a_quick_read_after_what_came_before(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t.jsonl") as writer:
        writer.write(engine())
        writer.write(sequence("a"))
    with (tmp_path / "t.jsonl").open("ab") as file:
        file.write(b'{"type":"step"}\n')
    found: list[object] = []
    with pytest.raises(TraceError, match=r"t\.jsonl:3: step record"):
        found.extend(read_pieces(tmp_path / "t.jsonl", TraceNotes()))
