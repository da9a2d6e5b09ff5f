"""`specdeck bundle`: one redacted file for a bug report."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from console.cli.outcomes import BadInput, Unreachable, say

if TYPE_CHECKING:
    from pathlib import Path

    from console.feed.protocol import ProcessesResult
    from console.statefile import RunningStation
    from console.station.options import StationOptions
    from store.database import Store
    from store.figures import Report
    from store.redact import Private, Redactor

_EXPORT_SECONDS = 600.0
_REPORT_SECONDS = 120.0
_OUTPUT_ELSEWHERE = (
    "`specdeck serve` writes to the terminal or service manager that runs it: add what stands there (journalctl)"
)
_ENGINE_ELSEWHERE = "specdeck did not start the engine: its log is where you started it"
_TAGS_UNKNOWN = "Workload tags of before this stretch could not be looked up: a log or a reason may name one."
_NO_STATION = "no station is running here; `specdeck bundle STORE` makes a bundle of a store's file"


@click.command(epilog="Example: specdeck bundle --hours 0.5")
@click.argument("source", default="live")
@click.argument("out", required=False)
@click.option("--hours", type=float, default=1.0, show_default=True, help="How much of the end of the recording.")
@click.option("--no-doctor", is_flag=True, help="Leave out what `specdeck doctor` finds: it takes up to a minute.")
@click.option("--keep-tags", is_flag=True, help="Keep workload tags; otherwise they become tag-1, tag-2 and so on.")
def bundle(source: str, out: str | None, hours: float, no_doctor: bool, keep_tags: bool) -> None:
    """Write the ZIP to send with a bug report: the last hour's records, figures, configuration, versions, logs, doctor.

    SOURCE is `live` (the running station, the default), a .duckdb or a trace; of files there are no logs and no doctor.
    OUT is specdeck-bundle-DATE-TIME.zip in this folder by default. Keys, names of people and machines, addresses,
    request ids and workload tags are taken out. `replay`, `report`, `alerts` and `trace info` open the ZIP as it is.
    Prints the path that was written.
    """
    import tempfile
    from pathlib import Path

    if not 0 < hours < float("inf"):
        raise BadInput(f"--hours {hours:g}: give a number above 0, as in 0.5")
    made = time.time()
    source, target = _places(source, out, made)
    try:
        # Beside OUT: there is room there, and a station that runs as a service may not share our /tmp.
        with tempfile.TemporaryDirectory(prefix=".specdeck-bundle-", dir=target.parent) as folder:
            gathered = _gather(source, Path(folder), hours * 3600, doctor=not no_doctor)
            sizes = _write(gathered, target, Path(folder), hours, made, keep_tags)
    except OSError as error:
        raise BadInput(f"{target}: can't be written: {error.strerror or error}") from error
    for name, size in sizes.items():
        say(f"{name:<16} {size / 1000:>10,.1f} kB")
    for name, why in gathered.missing.items():
        say(f"{name:<16} missing: {why}")
    for doubt in gathered.doubts:
        say(doubt)
    say(
        f"wrote {target}, {target.stat().st_size / 1000:,.1f} kB. It was redacted by rules, which can miss something: "
        "read it before you send it (its README.txt says what is in it)"
    )
    click.echo(str(target))


class _Gathered:
    """Parts as they are, and why others could not be had."""

    def __init__(self, subject: str, private: Private) -> None:
        self.subject = subject
        self.private = private
        self.raw: dict[str, Any] = {}
        """Files (of records and logs) as paths, all else as values."""
        self.missing: dict[str, str] = {}
        self.names: list[Any] = []
        """No parts: what else names workload tags that texts may mention."""
        self.doubts: list[str] = []

    def take(self, name: str, have: Callable[[], Any]) -> None:
        from store.database import StoreError

        try:
            self.raw[name] = have()
        except click.ClickException as error:
            self.missing[name] = error.format_message()
        except (StoreError, OSError) as error:
            self.missing[name] = str(error)
        except Exception as error:  # a bundle is made when things are broken: of whatever is not
            self.missing[name] = f"{type(error).__name__}: {error}"


class _Station(NamedTuple):
    """The station that runs, or what the last one left."""

    running: RunningStation | None
    options: StationOptions | None
    """What a command in the background started it with."""
    argv: list[str]
    """Its command line; empty where it left none."""
    environ: dict[str, str]
    store: str | None


def _places(source: str, out: str | None, made: float) -> tuple[str, Path]:
    """SOURCE and the file to write. A single name of a ZIP that is not there can only be OUT."""
    from pathlib import Path

    from console.cli.sources import LIVE

    if out is None and source.endswith(".zip") and not Path(source).exists():
        source, out = LIVE, source
    name = time.strftime("specdeck-bundle-%Y%m%d-%H%M%S.zip", time.localtime(made))
    target = Path(out or name).absolute()
    if target.is_dir():
        target /= name
    if target.exists():
        raise BadInput(f"{target} is there already: choose another name or remove it")
    if not target.parent.is_dir():
        raise BadInput(f"{target}: there is no folder {target.parent}")
    return source, target


def _gather(source: str, folder: Path, seconds: float, *, doctor: bool) -> _Gathered:
    from console.cli.sources import LIVE, opened
    from store.bundle import versions
    from store.redact import Private, secret_values

    if source == LIVE:
        return _gather_live(folder, seconds, doctor=doctor)
    gathered = _Gathered("a file", Private.here(secret_values(os.environ)))  # its name is the operator's business
    with opened(source) as store:
        _take_records(gathered, store, "a file", folder, seconds)
    gathered.take("versions.json", versions)
    return gathered


def _gather_live(folder: Path, seconds: float, *, doctor: bool) -> _Gathered:
    from console.cli.sources import opened
    from store.bundle import TRACE, versions

    station = _station()
    subject = "the running station" if station.running else "a station that does not run any more"
    gathered = _Gathered(subject, _private(station))
    if station.running:
        _take_live_records(gathered, folder, seconds)
    elif station.store is None:
        gathered.missing = dict.fromkeys((TRACE, "report.json"), _NO_STATION)
    else:
        try:
            with opened(station.store) as store:
                _take_records(gathered, store, "live", folder, seconds)
        except click.ClickException as error:
            gathered.missing = dict.fromkeys((TRACE, "report.json"), error.format_message())
    _take_status(gathered, station)
    gathered.take("config.json", lambda: _config(station))
    gathered.take("versions.json", versions)
    if doctor:
        say("running the doctor, up to a minute (--no-doctor leaves it out)")
        gathered.take("doctor.json", _doctor)
    else:
        gathered.missing["doctor.json"] = "left out by --no-doctor"
    return gathered


def _take_records(gathered: _Gathered, store: Store, name: str, folder: Path, seconds: float) -> None:
    from store.bundle import TRACE
    from store.export import export
    from store.report import report

    def exported() -> Path:
        raw = folder / "records.jsonl.zst"
        export(store.connection, raw, since=_since(gathered, seconds))
        return raw

    gathered.take("report.json", lambda: report(store.connection, source=name, window=seconds))
    gathered.take(TRACE, exported)
    tags = store.connection.execute("SELECT DISTINCT workload FROM buckets ORDER BY workload").fetchall()
    gathered.names.append({"workload": [tag for (tag,) in tags]})


def _take_live_records(gathered: _Gathered, folder: Path, seconds: float) -> None:
    from console.cli.station import ask
    from console.feed.protocol import ExportParams, ReportParams
    from store.bundle import TRACE
    from store.figures import Report

    def exported() -> Path:
        raw = folder / "records.jsonl.zst"
        params = ExportParams(path=str(raw), kind="jsonl", since=_since(gathered, seconds))
        ask("export", str, params, seconds=_EXPORT_SECONDS)
        if not raw.exists():
            raise Unreachable(f"the station wrote them where this command can't see them: {raw}; choose another OUT")
        return raw

    gathered.take("report.json", lambda: ask("report", Report, ReportParams(window=seconds), seconds=_REPORT_SECONDS))
    gathered.take(TRACE, exported)
    try:
        gathered.names.append(ask("report", Report, ReportParams(by=["workload"]), seconds=_REPORT_SECONDS))
    except Exception as error:  # as in `take`
        gathered.doubts.append(f"{_TAGS_UNKNOWN} ({error})")


def _since(gathered: _Gathered, seconds: float) -> float | None:
    """Where the stretch of the report begins, Unix seconds; None where there is no step at all."""
    report: Report | None = gathered.raw.get("report.json")
    if report is None:
        return time.time() - seconds
    return None if report.window is None else report.window.end - seconds


def _take_status(gathered: _Gathered, station: _Station) -> None:
    """Status and logs. Those of a station that ended are where it left them."""
    from pathlib import Path

    from console.cli.station import ask
    from console.cli.status_text import status_object
    from console.feed.messages import Snapshot
    from console.feed.protocol import ProcessesResult
    from console.station.options import OWNED_ENGINE
    from engine.places import data_dir

    logs = data_dir() / "logs"
    station_log, engine_log = str(logs / "station.log"), str(logs / f"engine-{OWNED_ENGINE}.log")
    if station.running is None:
        gathered.missing["status.json"] = _NO_STATION
    else:
        processes: list[ProcessesResult] = []

        def status() -> dict[str, Any]:
            processes.append(ask("processes", ProcessesResult))
            return status_object(ask("snapshot", Snapshot), processes[0])

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


def _station() -> _Station:
    import psutil

    from console.cli.launcher import OPTIONS_FILE
    from console.cli.station import running_station
    from console.statefile import state_path
    from console.station.options import OptionsError, read_options
    from engine.places import runtime_dir
    from engine.process import ManagedProcess

    left = ManagedProcess.recall(state_path(runtime_dir(), "station"))
    extra = left.extra if left is not None else {}
    options: StationOptions | None = None
    if not extra.get("foreground"):  # the options file is of one in the background
        with contextlib.suppress(OptionsError):
            options = read_options(runtime_dir() / OPTIONS_FILE)
    running = running_station()
    environ: dict[str, str] = {}
    if running is not None:
        with contextlib.suppress(psutil.Error):
            environ = psutil.Process(running.pid).environ()
    store = extra.get("store") or (options.store if options is not None else None)
    return _Station(running, options, left.state.argv if left is not None else [], environ, store)


def _private(station: _Station) -> Private:
    from store.redact import Private, secret_arguments, secret_values

    options = station.options
    arguments = [*station.argv, *(options.engine_args if options else ())]
    secrets = [*secret_values(os.environ), *secret_values(station.environ), *secret_arguments(arguments)]
    if options is None:
        return Private.here(secrets)
    if options.api_key:
        secrets.append(options.api_key)
    return Private.here(secrets, _hosts(options), _model_paths(options))


def _hosts(options: StationOptions) -> list[str]:
    from urllib.parse import urlsplit

    scraped = urlsplit(options.scrape).hostname if options.scrape else None
    return [options.host, *([scraped] if scraped else [])]


def _model_paths(options: StationOptions) -> Iterator[str]:
    """Folders as they were given, and as others may print them."""
    for model in (options.model, options.drafter):
        if "/" in model:
            whole = os.path.expanduser(model)
            yield from (model, whole, os.path.realpath(whole))


def _config(station: _Station) -> dict[str, Any]:
    if station.options is not None:
        return {"options": station.options}
    if station.argv:
        return {"command": station.argv}
    raise BadInput("no station runs here, and none has left what it was started with")


def _doctor() -> list[dict[str, Any]]:
    from engine.doctor import checks

    return [check._asdict() for check in checks()]


def _write(
    gathered: _Gathered, target: Path, folder: Path, hours: float, made: float, keep_tags: bool
) -> dict[str, int]:
    """Redact what was gathered, and write it."""
    from store.bundle import Bundle, BundleError, write_bundle
    from store.redact import Redactor

    redactor = Redactor(gathered.private, keep_tags=keep_tags)
    redacted = _redacted(gathered, redactor, folder)
    gathered.missing = {name: redactor.text(why) for name, why in redacted.missing.items()}
    gathered.doubts = [redactor.text(doubt) for doubt in gathered.doubts]
    subject = f"{redactor.text(gathered.subject)}: the last {hours:g} h of the recording"
    try:
        made_of = Bundle(subject, redacted.raw, gathered.missing, keep_tags, tuple(gathered.doubts))
        return write_bundle(made_of, target, made)
    except BundleError as error:
        raise BadInput(str(error)) from error


def _redacted(gathered: _Gathered, redactor: Redactor, folder: Path) -> _Gathered:
    """The same parts as they go into the bundle. All are learnt from before the first is redacted."""
    from functools import partial
    from pathlib import Path

    import msgspec

    from store.bundle import TRACE, json_part, learn_trace, log_part, redact_trace
    from store.database import StoreError

    done = _Gathered(gathered.subject, gathered.private)
    done.missing = dict(gathered.missing)
    for value in gathered.raw.values():
        if not isinstance(value, Path):
            redactor.learn(msgspec.to_builtins(value))
    if TRACE in gathered.raw:
        with contextlib.suppress(StoreError):  # said where it is redacted
            learn_trace(gathered.raw[TRACE], redactor)
    for names in gathered.names:
        redactor.learn(names)
    for name, value in gathered.raw.items():
        if name == TRACE:
            done.take(name, partial(redact_trace, value, folder / TRACE, redactor))
        else:
            done.take(name, partial(log_part if isinstance(value, Path) else json_part, value, redactor))
    return done
