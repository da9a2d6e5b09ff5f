"""Whether the operating map that holds is of the engines that run, as the judge takes it: at each start of an engine
and at each new map.

The hardware is compared where the engine's record names it. Engines without a drafter take no schedule and have no
map; further ranks of a data-parallel engine are the first one's.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

import duckdb
import msgspec

from engine.records import EngineRecord
from store.judge.inputs import MapHolds, MapStale
from store.moments import started_engines
from store.operating_map.fingerprint import Fingerprint, differences
from store.operating_map.fingerprinting import fingerprint
from store.operating_map.keeping import MAP


class _Kept(msgspec.Struct, frozen=True):
    """Of a map what is asked here."""

    id: str
    fingerprint: Fingerprint


class _Since(NamedTuple):
    ts: float
    kept: _Kept


def map_events(
    connection: duckdb.DuckDBPyConnection, start: float, stop: float
) -> Iterator[tuple[float, MapStale | MapHolds]]:
    """What came of it in [start, stop), Unix seconds."""
    starts = _starts(connection, start, stop)
    (put,) = connection.execute(
        "SELECT count(*) FROM controls WHERE action = ? AND ts >= ? AND ts < ?", [MAP, start, stop]
    ).fetchall()[0]
    if not starts and not put:
        return
    maps = _maps(connection, stop)
    for ts, record in starts:
        known = {one.record.engine for one in started_engines(connection, ts)}
        if (held := _held(maps, ts)) is not None and (event := _judged(held, record, ts, known)):
            yield ts, event
    for since in maps:
        if since.ts >= start:
            engines = [one.record for one in started_engines(connection, since.ts)]
            known = {record.engine for record in engines}
            for record in engines:
                if event := _judged(since.kept, record, since.ts, known):
                    yield since.ts, event


def _judged(kept: _Kept, record: EngineRecord, ts: float, known: set[str]) -> MapStale | MapHolds | None:
    if record.engine.rpartition("-")[0] in known:
        return None
    if record.max_k == 0:
        return MapHolds(record.engine, ts)
    found = differences(kept.fingerprint, fingerprint(record, record.hardware or kept.fingerprint.hardware))
    return MapStale(record.engine, ts, kept.id, "; ".join(found)) if found else MapHolds(record.engine, ts)


def _held(maps: list[_Since], ts: float) -> _Kept | None:
    """The map that held at a moment."""
    place = bisect_right(maps, ts, key=attrgetter("ts"))
    return maps[place - 1].kept if place else None


def _starts(connection: duckdb.DuckDBPyConnection, start: float, stop: float) -> list[tuple[float, EngineRecord]]:
    rows = connection.execute(
        "SELECT ts, record FROM engines WHERE ts >= ? AND ts < ? ORDER BY ts, id", [start, stop]
    ).fetchall()
    return [(float(ts), msgspec.json.decode(text, type=EngineRecord)) for ts, text in rows]


def _maps(connection: duckdb.DuckDBPyConnection, stop: float) -> list[_Since]:
    """Every map before `stop` that can be read, in the order of time."""
    rows = connection.execute(
        "SELECT ts, numbers FROM controls WHERE action = ? AND numbers IS NOT NULL AND ts < ? ORDER BY ts, rowid",
        [MAP, stop],
    ).fetchall()
    found = []
    for ts, text in rows:
        try:
            found.append(_Since(float(ts), msgspec.json.decode(text, type=_Kept)))
        except msgspec.DecodeError:
            continue  # a record of another making may hold anything
    return found
