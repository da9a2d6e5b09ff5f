"""The `state` record at the start of a recording or a cut: made from a judge, and put into another store."""

from __future__ import annotations

import duckdb
import msgspec

from engine.records import StateRecord
from store.judged_models import CountedBefore, started_runs
from store.judging import Judging
from store.levels import FINEST
from store.records import open_sequences
from store.sql import only_row
from store.state_records import EngineModel, EngineTimes, State, begin_with, packed_state, read_state


def make_state(judging: Judging, connection: duckdb.DuckDBPyConnection, ts: float) -> StateRecord:
    """What a judge knows now.

    Its `ts` is the moment that the judge has come to, a multiple of 10 s: whoever goes on from it needs every step that
    ended then or later, so a trace must begin there.

    Args:
        connection: to the judge's store.
        ts: Unix seconds; the judge must not have come further. `store.rollup.roll_up` to it, then `catch_up`, lets a
            judge come as near as it can.

    Raises:
        ValueError: the judge has come further than `ts`.
    """
    up_to = judging.up_to or _beginning(connection, ts)
    if up_to > ts:
        raise ValueError(f"the judge has come to {up_to}, past {ts}: what it knew then is gone")
    memory, models = judging.judge.state(), judging.models
    return StateRecord(up_to, packed_state(State(
        up_to=up_to,
        settings=judging.settings,
        judge=memory,
        in_force=[EngineModel(*runner, model) for runner, model in models.in_force(up_to).items()],
        times=[
            EngineTimes.of(runner, models.started(runner), CountedBefore(connection).to(runs, up_to))
            for runner, (_, runs) in started_runs(connection).items()
        ],
        sequences=open_sequences(connection, up_to),
    )))  # fmt: skip


def _beginning(connection: duckdb.DuckDBPyConnection, ts: float) -> float:
    """Nothing is judged yet: before the first step, or before `ts` without any."""
    (first,) = only_row(connection, "SELECT min(ts) FROM steps")
    return FINEST.floor(ts if first is None else min(ts, float(first)))


def restore_state(connection: duckdb.DuckDBPyConnection, record: StateRecord) -> None:
    """Let the judge of a store that holds nothing from before `record.ts` begin with what is in the record: its memory,
    its open alerts, the step times that it knew. Whoever takes a trace in needs not: `Judging` does it.

    Raises:
        ValueError: not such a record, or of another version.
    """
    connection.execute("INSERT INTO states VALUES (?, ?)", [record.ts, msgspec.json.encode(record.state).decode()])
    begin_with(connection, read_state(record))
