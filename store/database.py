"""Opening the DuckDB file: exclusively, in a schema this version knows, migrated after a copy where it is older."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import Final, Self

import duckdb

from store import schema
from store.migrations import NoMigration, migrate
from store.sql import first_row

MEMORY_LIMIT: Final = "1GB"
"""Of DuckDB, which takes four fifths of the machine's unless told: the engine beside it needs them. Larger queries go
through the disk."""

IN_MEMORY_BYTES: Final = 2 << 20
"""A trace of at most so many bytes is taken into memory: a file takes longer to make."""


class StoreError(Exception):
    """The store can't be used: names the file and what to do."""


class StoreBusy(StoreError):
    """Another process, or another opening in this one, has the file. `pid` where DuckDB tells."""

    def __init__(self, message: str, pid: int | None = None) -> None:
        super().__init__(message)
        self.pid = pid


class NewerSchema(StoreError):
    """The file was written by a newer specdeck."""


class Store:
    """An open store. Only one process can have a file open for writing (DuckDB's own lock)."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path | None, *, read_only: bool = False) -> None:
        self.connection = connection
        self._cursors: list[duckdb.DuckDBPyConnection] = []
        self.path = path
        self.read_only = read_only
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @classmethod
    def open(cls, path: str | Path, *, create: bool = True, read_only: bool = False) -> Self:
        """Open `path`, replaying what a killed process had committed.

        Raises:
            StoreBusy: somebody else has it open.
            NewerSchema: a newer specdeck wrote it.
            StoreError: it is missing (with `create` off or `read_only`), no store, or can't be read.
        """
        path = Path(path)
        if not path.exists() and (read_only or not create):
            raise StoreError(f"{path}: no such store")
        connection = _connect(path, read_only=read_only)
        try:
            version = _version(connection, path)
            if version is None:
                _initialise(connection)
            elif version > schema.SCHEMA_VERSION:
                raise NewerSchema(
                    f"{path}: schema {version} was written by a newer specdeck; this one knows "
                    f"{schema.SCHEMA_VERSION}. Update specdeck, or choose another store."
                )
            elif version < schema.SCHEMA_VERSION:
                connection = _migrated(connection, path, version, read_only=read_only)
        except BaseException:
            connection.close()
            raise
        return cls(connection, path, read_only=read_only)

    @classmethod
    def memory(cls) -> Self:
        """A store that lives as long as the process, e.g. for a trace."""
        connection = duckdb.connect(":memory:")
        _initialise(connection, comments=False)  # nobody else opens it
        return cls(connection, None)

    @classmethod
    def for_trace(cls, path: str | Path) -> Self:
        """A store to take a trace into, gone when it is closed. For a large trace it is on disk: memory stays flat."""
        try:
            small = Path(path).stat().st_size <= IN_MEMORY_BYTES
        except OSError:  # whoever reads it will say so
            small = True
        if small:
            return cls.memory()
        folder = tempfile.TemporaryDirectory(prefix="specdeck-trace-")
        store = cls.open(Path(folder.name) / "trace.duckdb")
        store._folder = folder
        return store

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A connection of one's own to the same database; closed with the store."""
        cursor = self.connection.cursor()
        self._cursors.append(cursor)
        return cursor

    def size(self) -> int:
        """Bytes on disk, write-ahead log included."""
        if self.path is None:
            return 0
        files = (self.path, self.path.with_name(self.path.name + ".wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def close(self) -> None:
        for connection in (*self._cursors, self.connection):
            with contextlib.suppress(duckdb.Error):
                connection.close()
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _migrated(
    connection: duckdb.DuckDBPyConnection, path: Path, version: int, *, read_only: bool
) -> duckdb.DuckDBPyConnection:
    if read_only:
        raise StoreError(f"{path}: schema {version} is older than this specdeck's; start a station on it to migrate it")
    connection.execute("CHECKPOINT")
    connection.close()
    copy = path.with_name(f"{path.name}.schema{version}")
    partial = copy.with_name(copy.name + ".partial")
    shutil.copy2(path, partial)
    os.replace(partial, copy)
    connection = _connect(path, read_only=False)
    try:
        migrate(connection, version, schema.SCHEMA_VERSION)
    except NoMigration as error:
        raise StoreError(f"{path}: {error}; the untouched copy is {copy}") from error
    except duckdb.Error as error:
        raise StoreError(f"{path}: migration from schema {version} failed: {error}; the copy is {copy}") from error
    return connection


def _connect(path: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    try:
        connection = duckdb.connect(str(path), read_only=read_only)
        if not read_only:
            connection.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
        return connection
    except duckdb.ConnectionException as error:
        raise StoreBusy(f"{path}: already open in this process", os.getpid()) from error
    except duckdb.IOException as error:
        text = str(error)
        if "lock" in text:
            found = re.search(r"PID (\d+)", text)
            pid = int(found.group(1)) if found else None
            holder = f"process {pid}" if pid is not None else "another process"
            raise StoreBusy(
                f"{path}: held by {holder}; `specdeck attach` connects to a running station, "
                "`specdeck stop` ends it, or choose another store",
                pid,
            ) from error
        raise StoreError(f"{path}: can't be opened as a store: {_first_line(text)}") from error
    except duckdb.Error as error:
        raise StoreError(f"{path}: can't be opened as a store: {_first_line(str(error))}") from error


def _version(connection: duckdb.DuckDBPyConnection, path: Path) -> int | None:
    """The schema version of the file; None for an empty one.

    Raises:
        StoreError: a DuckDB database of somebody else's.
    """
    tables = {row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    if not tables:
        return None
    found = None
    if "meta" in tables:
        with contextlib.suppress(duckdb.Error):
            found = first_row(connection, "SELECT schema_version FROM meta")
    if found is None:
        raise StoreError(f"{path}: a DuckDB database, but no specdeck store (no schema version in it)")
    return int(found[0])


def _initialise(connection: duckdb.DuckDBPyConnection, *, comments: bool = True) -> None:
    connection.execute("BEGIN")
    schema.create(connection, comments=comments)
    connection.execute(
        "INSERT INTO meta VALUES (?, ?, ?)", [schema.SCHEMA_VERSION, duckdb.__version__, round(time.time(), 6)]
    )
    connection.execute("COMMIT")


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else "unknown reason"
