"""The station that a bundle is of: the one that runs, or what the last one left; and what is private about it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

import psutil

from console.cli import station as stations
from console.cli.launcher import OPTIONS_FILE
from console.statefile import RunningStation, state_path
from console.station.options import OptionsError, StationOptions, read_options
from console.station.webhook_address import secret_parts
from engine.places import runtime_dir
from engine.process import ManagedProcess
from store.redact.private import Private
from store.redact.secret_names import secret_arguments, secret_values


class FoundStation(NamedTuple):
    running: RunningStation | None
    options: StationOptions | None
    """What a command in the background started it with."""
    argv: list[str]
    """Its command line; empty where it left none."""
    environ: dict[str, str]
    store: str | None


def find_station() -> FoundStation:
    left = ManagedProcess.recall(state_path(runtime_dir(), "station"))
    extra = left.extra if left is not None else {}
    options: StationOptions | None = None
    if not extra.get("foreground"):  # the options file is of one in the background
        with contextlib.suppress(OptionsError):
            options = read_options(runtime_dir() / OPTIONS_FILE)
    running = stations.running_station()
    environ: dict[str, str] = {}
    if running is not None:
        with contextlib.suppress(psutil.Error):
            environ = psutil.Process(running.pid).environ()
    store = extra.get("store") or (options.store if options is not None else None)
    return FoundStation(running, options, left.state.argv if left is not None else [], environ, store)


def private_to(station: FoundStation) -> Private:
    """What must not be told of it, its machine and its operator."""
    options = station.options
    arguments = [*station.argv, *(options.engine_args if options else ())]
    secrets = [*secret_values(os.environ), *secret_values(station.environ), *secret_arguments(arguments)]
    if options is None:
        return Private.here(secrets)
    if options.api_key:
        secrets.append(options.api_key)
    if options.webhook:
        secrets += secret_parts(options.webhook)
    return Private.here(secrets, _hosts(options), _model_paths(options))


def _hosts(options: StationOptions) -> list[str]:
    scraped = urlsplit(options.scrape).hostname if options.scrape else None
    return [options.host, *([scraped] if scraped else [])]


def _model_paths(options: StationOptions) -> Iterator[str]:
    """Folders as they were given, and as others may print them."""
    for model in (options.model, options.drafter):
        if "/" in model:
            whole = os.path.expanduser(model)
            yield from (model, whole, os.path.realpath(whole))
