"""What is in a `state` record, and how the judge of a store that was recorded after it begins with it."""

from __future__ import annotations

import hashlib
import logging
from base64 import b64decode, b64encode
from typing import Any, Final

import duckdb
import msgspec
import numpy as np
import numpy.typing as npt
import zstandard

from engine.records import StateRecord
from engine.step_time.model import StepModel
from store.alerts import write_changes
from store.judge.alerts import Changes
from store.judge.arrays import packed, unpacked
from store.judge.memory import read_memory
from store.judge.settings import JudgeSettings
from store.judge_kept import pack
from store.judged_models import KnownBefore, started_runs
from store.levels import COARSEST
from store.load import Runner
from store.sql import first_row, only_row
from store.step_times import Counted, write_counted

log = logging.getLogger(__name__)

VERSION: Final = 1
LARGEST: Final = 1 << 28
"""Bytes of a state before it is packed; a record that claims more is none."""
_LEVEL: Final = 9


class EngineModel(msgspec.Struct):
    engine: str
    model_version: str
    model: StepModel


class EngineTimes(msgspec.Struct):
    engine: str
    model_version: str
    started: float
    """Its first start, Unix seconds."""
    columns: list[npt.NDArray[np.integer]]
    """Those of `Counted`, each in as few bytes as it needs."""

    @classmethod
    def of(cls, runner: Runner, started: float, counted: Counted) -> EngineTimes:
        return cls(*runner, started, [_narrow(column) for column in counted.T])

    def counted(self) -> Counted:
        """
        Raises:
            ValueError: no step times.
        """
        return np.stack([column.astype(np.int64) for column in self.columns], axis=1)


def _narrow(column: npt.NDArray[np.int64]) -> npt.NDArray[np.integer]:
    if not len(column):
        return column
    kinds = (np.min_scalar_type(int(edge)) for edge in (column.min(), column.max()))
    return column.astype(np.result_type(*kinds))


class State(msgspec.Struct, kw_only=True):
    """All that a judge knows at a moment."""

    up_to: float
    """Cells before it are judged, Unix seconds, a multiple of 10."""
    settings: JudgeSettings
    judge: dict[str, Any]
    """`Judge.state`."""
    in_force: list[EngineModel]
    """The models by which cells are judged until they are made anew: some know less than `times`."""
    times: list[EngineTimes]
    """Of all steps before `up_to`."""
    sequences: dict[int, tuple[str, str]]
    """Those that go on: their number in `judge` → engine and name in the trace."""

    def known(self) -> KnownBefore:
        return KnownBefore(
            self.up_to,
            {Runner(one.engine, one.model_version): one.model for one in self.in_force},
            {Runner(one.engine, one.model_version): one.started for one in self.times},
        )


def packed_state(state: State) -> dict[str, Any]:
    """As a record holds it: zstd inside of base64, with a digest."""
    data = zstandard.ZstdCompressor(level=_LEVEL).compress(msgspec.json.encode(packed(state)))
    return {"version": VERSION, "sha256": hashlib.sha256(data).hexdigest(), "zstd": b64encode(data).decode()}


def read_state(record: StateRecord) -> State:
    """
    Raises:
        ValueError: not such a record, or of another version.
    """
    version, data = record.state.get("version"), record.state.get("zstd")
    if version != VERSION:
        raise ValueError(f"it has version {version!r}, this specdeck reads {VERSION}")
    if not isinstance(data, str):
        raise ValueError("nothing is in it")
    raw = b64decode(data, validate=True)
    if hashlib.sha256(raw).hexdigest() != record.state.get("sha256"):
        raise ValueError("it is damaged")
    try:
        if not 0 <= zstandard.frame_content_size(raw) <= LARGEST:
            raise ValueError("it says that it is too large")
        state = unpacked(msgspec.json.decode(zstandard.ZstdDecompressor().decompress(raw)), State)
    except zstandard.ZstdError as error:
        raise ValueError(f"it can't be unpacked: {error}") from error
    read_memory(state.judge, renumbered=False)
    return state


def found_state(connection: duckdb.DuckDBPyConnection) -> State | None:
    """The state that a store's records begin with; None where there is none, where steps from before it are there, or
    where it can't be read, which a note then says."""
    found = first_row(connection, "SELECT ts, state FROM states ORDER BY ts")
    if found is None:
        return None
    try:
        state = read_state(StateRecord(float(found[0]), msgspec.json.decode(found[1])))
    except (ValueError, TypeError) as error:
        _note(connection, f"the state at the start of this record can't be used, it is judged unknowing: {error}")
        return None
    (first,) = only_row(connection, "SELECT min(ts) FROM steps")
    return None if first is not None and first < state.up_to else state


def begin_with(connection: duckdb.DuckDBPyConnection, state: State) -> None:
    """Write into the tables what a judge of this store goes on with.

    Raises:
        duckdb.Error: it can't be written; nothing was.
    """
    memory = read_memory(state.judge, renumbered=True, numbers=_going_on(connection, state))
    open_alerts = [alert for alert in memory.book.alerts.values() if alert.active]
    runs = started_runs(connection)
    # As hours that are over: all of them ended before any step that is here.
    hour = COARSEST.floor(state.up_to) - COARSEST.seconds
    connection.execute("BEGIN")
    try:
        connection.execute("DELETE FROM judge")
        connection.execute("INSERT INTO judge VALUES (?, ?)", [state.up_to, pack(packed(memory))])
        write_changes(connection, Changes(open_alerts, []))
        for one in state.times:
            if (known := runs.get(Runner(one.engine, one.model_version))) is not None:
                write_counted(connection, known[1][0], hour, one.counted())
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _going_on(connection: duckdb.DuckDBPyConnection, state: State) -> dict[int, int]:
    """Sequences of the state that are here, too: their number there → here."""
    here = {
        (engine, name): number
        for number, engine, name in connection.execute(
            "SELECT q.id, engine, name FROM sequences q JOIN engines e ON engine_run = e.id ORDER BY q.id"
        ).fetchall()
    }
    return {number: here[named] for number, named in state.sequences.items() if named in here}


def _note(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    if first_row(connection, "FROM notes WHERE text = ?", [text]) is None:
        log.warning("%s", text)
        connection.execute("INSERT INTO notes VALUES (?, NULL, NULL)", [text])
