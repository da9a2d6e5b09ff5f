"""What is to be remembered for the next start, until it is in the store: of each name the newest."""

from __future__ import annotations

import logging

import duckdb

from store.kept import keep

log = logging.getLogger(__name__)


class Keeping:
    """On the recorder's thread. What can't be written waits for the next `write`: recording goes on."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._waiting: dict[str, bytes] = {}
        self._failing = False

    def put(self, name: str, value: bytes) -> None:
        self._waiting[name] = value

    def write(self) -> None:
        """Keep what waits. A failure is told once, however often it is tried."""
        for name in list(self._waiting):
            try:
                keep(self._connection, name, self._waiting[name])
            except duckdb.Error as error:
                if not self._failing:
                    log.warning("%s could not be kept for the next start, it is tried again: %s", name, error)
                self._failing = True
                return
            del self._waiting[name]
        self._failing = False
