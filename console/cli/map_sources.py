"""SOURCE of `specdeck map`: the running station, a store, the folder of a rehearsal, or a map.json."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import click
import msgspec

from console.cli.outcomes import BadInput, CheckFailed
from console.cli.sources import LIVE, opened
from console.cli.station import ask, running_station
from console.feed.protocol import FingerprintParams, MapAnswer
from store.operating_map.fingerprint import Fingerprint, differences
from store.operating_map.records import OperatingMap


class Found(NamedTuple):
    """`stale`: what is not as it was when the map was made. `unchecked`: why that could not be told, a sentence."""

    map: OperatingMap
    stale: list[str]
    unchecked: str | None = None


def find(source: str) -> Found:
    """
    Raises:
        BadInput: no such source, or a broken one.
        CheckFailed: there is no map in it.
        Unreachable: no station runs, or somebody else holds the store.
    """
    if source == LIVE and not Path(source).exists():
        answer = ask("map_get", MapAnswer)
        if answer.map is None:
            raise CheckFailed("the station has no operating map yet: make one with `specdeck rehearse`")
        return Found(answer.map, answer.stale)
    return _held_against_what_runs(_from_file(source))


def _from_file(source: str) -> OperatingMap:
    path = Path(source)
    if not path.exists():
        raise BadInput(
            f"{source}: no such file; SOURCE is `live`, a .duckdb, the folder of a rehearsal or a map.json in it"
        )
    if path.is_dir():
        return _made(path)
    if path.suffix == ".json":
        return _decoded(path)
    from store.operating_map.keeping import last_map

    with opened(source) as store:
        found = last_map(store.connection)
    if found is None:
        raise CheckFailed(f"{source}: no operating map in it; `specdeck rehearse` makes one")
    return found


def _made(folder: Path) -> OperatingMap:
    """From the passes, which a map.json in the folder was made of too."""
    from store.operating_map.making import make_map
    from store.rehearsal.reading import RehearsalError

    try:
        return make_map(folder)
    except (RehearsalError, OSError) as error:
        raise BadInput(str(error)) from error


def _decoded(path: Path) -> OperatingMap:
    from store.operating_map.checking import MapError, check

    try:
        found = msgspec.json.decode(path.read_bytes(), type=OperatingMap)
        check(found)
        return found
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError, MapError) as error:
        raise BadInput(f"{path}: no operating map: {error}") from error


def _held_against_what_runs(found: OperatingMap) -> Found:
    if running_station() is None:
        return Found(found, [], "no station runs here: whether the map holds for your engine was not checked")
    try:
        now = ask("fingerprint", Fingerprint, FingerprintParams())
    except click.ClickException as error:
        return Found(found, [], f"whether the map holds for what runs was not checked: {error.message}")
    return Found(found, differences(found.fingerprint, now))
