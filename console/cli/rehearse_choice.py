"""What is rehearsed, and on which engine: everything that can be refused is refused here, before an engine starts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from console.cli.leftovers import living
from console.cli.options import station_options
from console.cli.outcomes import BadInput, Unreachable, say
from console.cli.ports import free
from console.cli.station import running_station
from console.cli.stop import end_everything
from console.rehearsing.passes.folder import FolderError, RehearsalFolder, find, new_id
from console.rehearsing.plans.built_in import BUILT_IN
from console.rehearsing.plans.checking import check_engine
from console.rehearsing.plans.reading import PlanError, read_plan
from console.statefile import RunningStation
from console.station.options import OptionsError, StationOptions, read_options, write_options
from engine.launch import BUNDLED_CONTEXT
from engine.models import is_bundled
from engine.places import data_dir
from store.rehearsal.plan import ADAPTIVE, WITHOUT, Plan

OPTIONS: Final = "station.json"
"""In the folder: what the station of a rehearsal on an engine of its own is started with."""

_LOOPBACK: Final = "127.0.0.1"
_WITHOUT_NOTE: Final = "the arm `without` was left out: the rehearsal ran on the station's own engine"


class Asked(NamedTuple):
    """As typed. `engine`: the options of the engine; `typed`: their names, of those that were given."""

    plan: str
    resume: str | None
    no_without: bool
    api_key: str | None
    engine: Mapping[str, Any]
    typed: list[str]


class Subject(NamedTuple):
    """What is rehearsed, and where that is kept."""

    folder: RehearsalFolder
    plan: Plan
    host: str | None
    """That a rehearsal which is resumed was begun on; None for a new one."""


class Ground(NamedTuple):
    """`own`: what a station of its own is started with; None for the one that runs."""

    plan: Plan
    notes: list[str]
    own: StationOptions | None


def rehearsals() -> Path:
    return data_dir().absolute() / "rehearsals"


def subject(asked: Asked) -> Subject:
    """Raises BadInput: no such plan or rehearsal."""
    try:
        if asked.resume is None:
            plan = read_plan(asked.plan)
            return Subject(_new(plan), plan, None)
        folder = find(rehearsals(), asked.resume)
        rehearsal = folder.rehearsal()
    except (PlanError, FolderError) as error:
        raise BadInput(str(error)) from error
    if asked.typed:
        raise BadInput(f"--resume goes on with the engine as it was: leave out {', '.join(asked.typed)}")
    return Subject(folder, rehearsal.plan, rehearsal.host)


def ground(asked: Asked, on: Subject) -> Ground:
    """The engine to rehearse on. What a killed rehearsal has left running is ended.

    Raises:
        BadInput: the plan can't be run on it, or options that mean nothing there.
        Unreachable: the engine that there is can't be had.
    """
    station = _station()
    if station is not None:
        return _on_station(asked, on, station)
    if on.host == "station":
        raise Unreachable(f"{on.folder.id} was begun on a running station, and none runs here: start it first")
    if left := living():
        roles = ", ".join(f"{role} (pid {pid})" for role, pid in left.items())
        raise Unreachable(
            f"no station runs here, but {roles} still does: `specdeck serve` takes it up, `specdeck stop` ends it"
        )
    return _on_its_own(asked, on)


def _station() -> RunningStation | None:
    """The one that runs, unless it is what a killed rehearsal has left."""
    station = running_station()
    if station is None or not Path(station.info.store).is_relative_to(rehearsals()):
        return station
    say("a rehearsal that was killed has left its station running")
    end_everything()
    return None


def _on_station(asked: Asked, on: Subject, station: RunningStation) -> Ground:
    where = f"a station runs here (pid {station.pid})"
    if on.host == "own":
        raise BadInput(f"{on.folder.id} was begun on an engine of its own, and {where}: `specdeck stop` first")
    if asked.typed:
        raise BadInput(f"{where}, and its engine is rehearsed on as it is: leave out {', '.join(asked.typed)}")
    plan, notes = on.plan, []
    if WITHOUT in plan.arms:
        if not asked.no_without and plan != BUILT_IN.get(plan.name):
            raise BadInput(
                f"the arm `without` needs an engine of its own, and {where}: give --no-without, or `specdeck stop` "
                "first"
            )
        plan, notes = _left_out(plan), [_WITHOUT_NOTE]
        say(_WITHOUT_NOTE)
    return Ground(plan, notes, None)


def _on_its_own(asked: Asked, on: Subject) -> Ground:
    kept = on.folder.path / OPTIONS
    if on.host is not None:
        try:
            return Ground(on.plan, [], read_options(kept))
        except OptionsError as error:
            raise BadInput(f"what its station was started with is not known any more: {error}") from error
    plan = _left_out(on.plan) if asked.no_without and WITHOUT in on.plan.arms else on.plan
    drafting = [arm for arm in plan.arms if arm != WITHOUT]
    options = station_options(
        **asked.engine, host=_LOOPBACK, port=free(_LOOPBACK), api_key=None, metrics_port=0, store=None, no_engine=False,
        policy="adaptive", calibrate=60.0 if ADAPTIVE in drafting else 0.0,
    )  # fmt: skip
    options = replace(options, webhook=None)  # what fires on a stand of trial is no operator's business
    spec = options.engine_spec()
    drafts = spec.drafter != "none"
    context = options.max_model_len or (BUNDLED_CONTEXT if is_bundled(options.model) else None)
    try:
        check_engine(plan, max_k=options.max_k, max_num_seqs=options.max_num_seqs, max_model_len=context, drafts=drafts)
    except PlanError as error:
        raise BadInput(f"plan {plan.name}: {error}") from error
    return Ground(plan, [], _base(options) if drafts else options)


def _base(options: StationOptions) -> StationOptions:
    """Between its passes it drafts its maximum: so it is warm for every arm."""
    from engine.records import PolicyMode

    return replace(options, policy=PolicyMode(mode="static", k=options.max_k))


def remember(on: Subject, where: Ground) -> None:
    """What a station of its own is started with, so that it can be resumed."""
    if where.own is not None and on.host is None:
        on.folder.path.mkdir(parents=True, exist_ok=True)
        write_options(where.own, on.folder.path / OPTIONS)


def _left_out(plan: Plan) -> Plan:
    arms = tuple(arm for arm in plan.arms if arm != WITHOUT)
    if not arms:
        raise BadInput(f"plan {plan.name}: without the arm `without` there is nothing to rehearse")
    return replace(plan, arms=arms)


def _new(plan: Plan) -> RehearsalFolder:
    base, now = rehearsals(), time.time()
    while (base / new_id(plan.name, now)).exists():
        now += 1.0
    return RehearsalFolder(base / new_id(plan.name, now))
