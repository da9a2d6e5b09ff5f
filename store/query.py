"""Ad-hoc SQL over a store: in a child process that can read one database, change nothing and open no other file."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import duckdb
import msgspec

from store.database import Store, StoreError
from store.ingest import Ingest
from store.source import is_database, take_in

MAX_ROWS: Final = 10_000
TIMEOUT_SECONDS: Final = 60.0
MEMORY_LIMIT: Final = "1GB"
MAX_ANSWER: Final = 64 << 20
"""Characters of an answer, as JSON."""

_LOCKED: Final[dict[str, str | bool | int | float | list[str]]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "memory_limit": MEMORY_LIMIT,
    "temp_directory": "",
}


class SqlError(StoreError):
    """The query failed: DuckDB's own words."""


class SqlResult(msgspec.Struct, frozen=True):
    columns: list[str]
    types: list[str]
    rows: list[list[Any]]
    truncated: bool
    """There were more rows than were asked for."""


class _Question(msgspec.Struct):
    path: str
    sql: str
    max_rows: int


class _Answer(msgspec.Struct):
    result: SqlResult | None = None
    error: str | None = None


def run_sql(
    source: str | Path, sql: str, *, max_rows: int = MAX_ROWS, timeout_seconds: float = TIMEOUT_SECONDS
) -> SqlResult:
    """Run `sql` on a store's file that nobody is writing (for a live one: an export of it), or on a trace.

    Raises:
        SqlError: the query failed, took too long, or asked for what it may not have.
        StoreError: the source can't be opened.
    """
    path = Path(source)
    if not path.is_file():
        raise StoreError(f"{path}: no such file")
    if is_database(path):
        Store.open(path, read_only=True).close()  # a busy or newer store is said here, in our words
        return _ask(path, sql, max_rows, timeout_seconds)
    with tempfile.TemporaryDirectory(prefix="specdeck-sql-") as folder:
        copy = Path(folder) / "trace.duckdb"
        with Store.open(copy) as store:
            take_in(path, Ingest(store))
        return _ask(copy, sql, max_rows, timeout_seconds)


def _ask(path: Path, sql: str, max_rows: int, timeout_seconds: float) -> SqlResult:
    question = msgspec.json.encode(_Question(str(path), sql, max_rows))
    try:
        # -P: the folder it is started from may hold a `store` of the operator's own.
        child = subprocess.run(
            [sys.executable, "-P", "-m", "store.query"], input=question, capture_output=True, timeout=timeout_seconds
        )
    except subprocess.TimeoutExpired:
        raise SqlError(f"the query took longer than {timeout_seconds:g} s and was stopped") from None
    try:
        answer = msgspec.json.decode(child.stdout, type=_Answer)
    except msgspec.DecodeError:
        tail = child.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise SqlError(f"the query ended its process (exit {child.returncode}): {' '.join(tail)}") from None
    if answer.result is None:
        raise SqlError(answer.error or "the query failed")
    return answer.result


def _answer(question: _Question) -> _Answer:
    try:
        connection = duckdb.connect(question.path, read_only=True, config=_LOCKED)
        connection.execute("SET lock_configuration = true")
        cursor = connection.execute(question.sql)
        description = cursor.description or []
        rows = cursor.fetchmany(question.max_rows + 1)
    except (duckdb.Error, UnicodeError) as error:
        return _Answer(error=str(error))
    return _Answer(
        SqlResult(
            columns=[column[0] for column in description],
            types=[str(column[1]) for column in description],
            rows=[[_plain(value) for value in row] for row in rows[: question.max_rows]],
            truncated=len(rows) > question.max_rows,
        )
    )


def _plain(value: Any) -> Any:
    """A value as JSON can say it; NaN and infinities, which it can't, as null."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if value is None or isinstance(value, str | int | bool):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value)


def main() -> None:
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=_Question)
    text = json.dumps(msgspec.to_builtins(_answer(question)))
    if len(text) > MAX_ANSWER:
        text = json.dumps({"error": f"the answer is larger than {MAX_ANSWER >> 20} MB: ask for less of it"})
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
