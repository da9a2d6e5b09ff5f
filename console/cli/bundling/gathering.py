"""Gathers the parts of a bundle: of a file its records and figures; of a station all that it can tell."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import click

from console.cli import station as stations
from console.cli.bundling.gathered import Gathered
from console.cli.bundling.recording import take_live_records, take_records
from console.cli.bundling.station_found import FoundStation, find_station, private_to
from console.cli.outcomes import BadInput, say
from console.cli.sources import LIVE, opened
from console.cli.status_text import status_object
from console.feed.messages import Snapshot
from console.feed.protocol import ProcessesResult
from console.station.options import OWNED_ENGINE
from engine import doctor as doctors
from engine.places import data_dir
from store.bundle.contents import TRACE
from store.bundle.versions import versions
from store.redact.private import Private
from store.redact.secret_names import secret_values

_OUTPUT_ELSEWHERE: Final = (
    "`specdeck serve` writes to the terminal or service manager that runs it: add what stands there (journalctl)"
)
_ENGINE_ELSEWHERE: Final = "specdeck did not start the engine: its log is where you started it"
_NO_STATION: Final = "no station is running here; `specdeck bundle STORE` makes a bundle of a store's file"


def gather(source: str, folder: Path, seconds: float, *, doctor: bool) -> Gathered:
    """Everything that goes into the bundle, as it is. Files are made in `folder`."""
    if source == LIVE:
        return _gather_live(folder, seconds, doctor=doctor)
    gathered = Gathered("a file", Private.here(secret_values(os.environ)))  # its name is the operator's business
    with opened(source) as store:
        take_records(gathered, store, "a file", folder, seconds)
    gathered.take("versions.json", versions)
    return gathered


def _gather_live(folder: Path, seconds: float, *, doctor: bool) -> Gathered:
    station = find_station()
    subject = "the running station" if station.running else "a station that does not run any more"
    gathered = Gathered(subject, private_to(station))
    if station.running:
        take_live_records(gathered, folder, seconds)
    elif station.store is None:
        gathered.missing = dict.fromkeys((TRACE, "report.json"), _NO_STATION)
    else:
        try:
            with opened(station.store) as store:
                take_records(gathered, store, "live", folder, seconds)
        except click.ClickException as error:
            gathered.missing = dict.fromkeys((TRACE, "report.json"), error.format_message())
    _take_status(gathered, station)
    gathered.take("config.json", lambda: _config(station))
    gathered.take("versions.json", versions)
    if doctor:
        say("running the doctor, up to a minute (--no-doctor leaves it out)")
        gathered.take("doctor.json", _doctor_found)
    else:
        gathered.missing["doctor.json"] = "left out by --no-doctor"
    return gathered


def _take_status(gathered: Gathered, station: FoundStation) -> None:
    """Status and logs. Those of a station that ended are where it left them."""
    logs = data_dir() / "logs"
    station_log, engine_log = str(logs / "station.log"), str(logs / f"engine-{OWNED_ENGINE}.log")
    if station.running is None:
        gathered.missing["status.json"] = _NO_STATION
    else:
        processes: list[ProcessesResult] = []

        def status() -> dict[str, Any]:
            processes.append(stations.ask("processes", ProcessesResult))
            return status_object(stations.ask("snapshot", Snapshot), processes[0])

        gathered.take("status.json", status)
        station_log = station.running.log
        engine_log = (processes[0].engine_log or "") if processes else engine_log
    for name, path, why in (
        ("station.log", station_log, _OUTPUT_ELSEWHERE), ("engine.log", engine_log, _ENGINE_ELSEWHERE)
    ):  # fmt: skip
        if path:
            gathered.raw[name] = Path(path)
        else:
            gathered.missing[name] = why


def _config(station: FoundStation) -> dict[str, Any]:
    if station.options is not None:
        return {"options": station.options}
    if station.argv:
        return {"command": station.argv}
    raise BadInput("no station runs here, and none has left what it was started with")


def _doctor_found() -> list[dict[str, Any]]:
    return [check._asdict() for check in doctors.checks()]
