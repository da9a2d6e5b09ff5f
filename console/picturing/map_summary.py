"""The operating map that holds, in the few words of a picture, and what of it is no longer so."""

from __future__ import annotations

from console.feed.messages import MapSummary
from engine.records import EngineRecord
from store.operating_map.fingerprint import differences
from store.operating_map.fingerprinting import fingerprint
from store.operating_map.records import OperatingMap


def stale(made: OperatingMap, record: EngineRecord | None, hardware: str | None) -> list[str]:
    """What is not as it was when the map was made. `record`: of the engine that serves, None for none; `hardware`:
    what it runs on, None where that isn't known: it is then taken to be the same."""
    if record is None:
        return []
    return differences(made.fingerprint, fingerprint(record, hardware or made.fingerprint.hardware))


def summary(made: OperatingMap, stale: list[str]) -> MapSummary:
    return MapSummary(id=made.id, ts=made.ts, plan=made.plan, stale=stale, schedule=made.schedule)
