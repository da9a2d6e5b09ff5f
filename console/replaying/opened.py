"""What a replay plays: a store opened for reading, or a trace that is taken into a store of its own meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import duckdb

from console.replaying.loading import Loading
from console.replaying.working_folder import working_folder
from store.database import MEMORY_LIMIT, Store, StoreError
from store.gather import rows_ever
from store.judge.settings import JudgeSettings
from store.source import is_database

_STORE: Final = "trace.duckdb"


class Opened:
    """`path`: what was opened; `store`: what is read. `loading` is None where the store was there already."""

    def __init__(self, path: Path, store: Store, loading: Loading | None) -> None:
        self.path = path
        self.store = store
        self.loading = loading
        self.bytes = path.stat().st_size
        self._rows = rows_ever(store.connection) if loading is None else 0

    @property
    def complete(self) -> bool:
        return self.loading is None or self.loading.complete

    @property
    def share(self) -> float:
        return 1.0 if self.loading is None else self.loading.share

    @property
    def error(self) -> str | None:
        """Why a part of it can't be shown."""
        return None if self.loading is None else self.loading.error

    @property
    def rows(self) -> int:
        return self._rows if self.loading is None else self.loading.rows

    @contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection of one's own, for one question."""
        cursor = self.store.connection.cursor()
        try:
            yield cursor
        finally:
            cursor.close()


@contextmanager
def opened(path: Path, settings: JudgeSettings | None, changed: Callable[[], None]) -> Iterator[Opened]:
    """A trace or a store, for as long as the block runs; nothing is left behind of what was made for it.

    Args:
        settings: to judge a trace by; None: as it says itself, else the defaults. A store was judged before.
        changed: called from another thread whenever there is more of a trace, or all.

    Raises:
        StoreError: no such file, or a store that is held, newer, older or none.
    """
    if not path.exists():
        raise StoreError(f"{path}: no such file")
    if path.is_file() and is_database(path):
        with Store.open(path, create=False, read_only=True) as store:
            store.connection.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
            yield Opened(path, store, None)
        return
    with working_folder() as folder, Store.open(folder / _STORE) as store:
        loading = Loading(path, store, settings, changed)
        loading.start()
        try:
            yield Opened(path, store, loading)
        finally:
            loading.stop()
