"""Options that several commands share, and how they become a station's options."""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.core import ParameterSource

from console.cli.judging import floor
from console.cli.outcomes import BadInput

if TYPE_CHECKING:
    from console.cli.settings.reading import Settings
    from console.station.options import StationOptions
    from engine.records import PolicyMode

F = TypeVar("F", bound=Callable[..., Any])

_ENGINE: tuple[Callable[[Any], Any], ...] = (
    click.option("--model", default="bundled", show_default=True, help="Target: `bundled`, a folder, or a hub name."),
    click.option(
        "--drafter",
        default="auto",
        show_default=True,
        help="`bundled` (the head for the bundled model), `ngram`, `suffix`, `none`, or a drafter model. "
        "`auto`: `bundled` where the target is, else `ngram`.",
    ),
    click.option(
        "--method", default=None, help="eagle, eagle3, draft_model, custom_class … where the drafter does not tell."
    ),
    click.option(
        "--max-k",
        type=click.IntRange(0, 64),
        default=4,
        show_default=True,
        help="Longest draft the engine is started for.",
    ),
    click.option(
        "--max-num-seqs",
        type=click.IntRange(1),
        default=32,
        show_default=True,
        help="Sequences the engine runs at once.",
    ),
    click.option(
        "--max-model-len",
        type=click.IntRange(16),
        default=None,
        help="Longest context, tokens. Default: the model's own.",
    ),
    click.option(
        "--engine-arg",
        "engine_args",
        multiple=True,
        metavar="ARG",
        help="Passed on to vLLM; repeatable, e.g. --engine-arg=--dtype=float32.",
    ),
)

_SERVING: tuple[Callable[[Any], Any], ...] = (
    *_ENGINE,
    click.option(
        "--host",
        default="127.0.0.1",
        show_default=True,
        help="Address of the public port. Other than loopback only with --api-key.",
    ),
    click.option("--port", type=click.IntRange(1, 65535), default=None, help="The public port. Default: 8000."),
    click.option(
        "--metrics-port",
        type=click.IntRange(0, 65535),
        default=None,
        help="Port of specdeck's own /metrics on 127.0.0.1, 0 for none. Default: the one after the public port.",
    ),
    click.option(
        "--api-key", envvar="SPECDECK_API_KEY", default=None, help="Key that clients must send. Also SPECDECK_API_KEY."
    ),
    click.option(
        "--store",
        type=click.Path(dir_okay=False),
        default=None,
        help="The DuckDB file. Default: specdeck.duckdb in the data directory.",
    ),
    floor("Realised speedup of an engine below which it is an alert. Default: 1.5, of `demo` 1.0."),
    click.option(
        "--policy",
        metavar="MODE",
        default="adaptive",
        show_default=True,
        help="How the engine begins: `off`, `static:K`, `schedule:FILE-or-JSON`, `adaptive`, or `advise`, which only "
        "says what adaptive would do.",
    ),
    click.option(
        "--calibrate",
        type=click.FloatRange(0, 60),
        metavar="SECONDS",
        default=60.0,
        show_default=True,
        help="At most so long (0–60) an engine that first serves is measured with requests of our own in growing "
        "batches; the first request of a client ends it at once.",
    ),
    click.option("--no-calibration", is_flag=True, help="The same as --calibrate 0."),
    click.option(
        "--vanilla-engine",
        is_flag=True,
        help="Start a second engine (v0) with the same target and no drafter: it serves the vanilla lane, requests "
        "that disable speculation, and those with min_p or logit_bias, which vLLM refuses beside speculation. It needs "
        "the target's memory twice, and each engine gets half of the cores (on a CPU) or of a GPU's memory. Without "
        "it the vanilla lane is K = 0 in the same engine.",
    ),
    click.option("--no-engine", is_flag=True, help="Start no engine; listen to engines that you start yourself."),
)


def serving(function: F) -> F:
    """Add the options of everything that may start a station. Each may also come from the environment, as
    `SPECDECK_SERVE_MAX_K` and its like, and from the settings file."""
    added = functools.reduce(lambda wrapped, option: option(wrapped), reversed(_SERVING), function)
    for parameter in added.__click_params__[-len(_SERVING) :]:  # type: ignore[attr-defined]
        parameter.envvar = parameter.envvar or variable(parameter.name)
    return added


def variable(name: str) -> str:
    """The environment variable of an option."""
    return f"SPECDECK_SERVE_{name.upper()}"


def engine_options(function: F) -> F:
    """Add those that say which engine is started."""
    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(_ENGINE), function)


scraping = click.option(
    "--scrape",
    envvar="SPECDECK_SCRAPE",
    default=None,
    metavar="URL",
    help="Start no engine: observe the /metrics of a vLLM that specdeck does not run. Pooled figures only. Also "
    "SPECDECK_SCRAPE, for an address with a password in it.",
)
"""Of `serve` alone."""

_OBSERVING: Final = frozenset({"scrape", "store", "metrics_port", "no_engine"})
"""Options that mean something to a station that only observes."""


def observing_options(
    ctx: click.Context, address: str, *, store: str | None, metrics_port: int | None
) -> StationOptions:
    """Options of a station that observes the `/metrics` at `address`. The rest of the command line must be empty.

    Raises:
        BadInput: an address that can't be asked, or options of the engine and gateway that would not be started.
    """
    from console.cli.ports import DEFAULT_PORT
    from console.cli.settings.defaults import in_force
    from console.station.options import StationOptions
    from console.station.scrape_address import BadSetting, read_address, scrape_seconds

    unused = [parameter.opts[0] for parameter in ctx.command.params if _is_given(ctx, parameter.name or "")]
    if unused:
        raise BadInput(f"--scrape observes a vLLM that specdeck does not run: leave out {', '.join(unused)}")
    try:
        read_address(address)
        scrape_seconds()
    except BadSetting as error:
        raise BadInput(f"--scrape: {error}") from error
    metrics = DEFAULT_PORT + 1 if metrics_port is None else metrics_port
    return StationOptions(
        store=_store_path(store), metrics_port=metrics, scrape=address, engine=False, **_webhook(in_force())
    )  # fmt: skip


def _is_given(ctx: click.Context, name: str) -> bool:
    """Whether an option that has no place beside --scrape was typed. One from the environment was meant for others."""
    return name not in _OBSERVING and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE


def station_options(
    *,
    host: str,
    port: int | None,
    api_key: str | None,
    metrics_port: int | None,
    store: str | None,
    no_engine: bool,
    speedup_floor: float | None = None,
    free_port: bool = False,
    policy: str = "adaptive",
    calibrate: float = 60.0,
    no_calibration: bool = False,
    vanilla_engine: bool = False,
    **rest: Any,
) -> StationOptions:
    """Check what the command line gave and make a station's options of it.

    `free_port`: with no port asked for and 8000 taken, any free one will do.

    Raises:
        BadInput: a host that is open to others without a key, a port that is taken, no policy, or engines that can't be
            meant.
    """
    from console.cli.settings.defaults import in_force
    from console.station.options import StationOptions

    settings = in_force()
    if not is_loopback(host) and not api_key:
        raise BadInput(f"--host {host} can be reached by others: give --api-key, or stay on 127.0.0.1")
    mode = _mode(policy)
    path = _store_path(store)
    chosen = choose_port(host, port, free_port)
    if speedup_floor is not None:
        rest["speedup_floor"] = speedup_floor
    rest["engine_args"] = list(rest["engine_args"])
    metrics = (chosen + 1) % 65536 if metrics_port is None else metrics_port
    options = StationOptions(
        store=path,
        host=host,
        port=chosen,
        api_key=api_key,
        metrics_port=metrics,
        engine=not no_engine,
        policy=mode,
        calibrate=0.0 if no_calibration else calibrate,
        vanilla_engine=vanilla_engine,
        deciding=settings.deciding,
        **_webhook(settings),
        **rest,
    )
    _check_engine(options)
    return options


def _webhook(settings: Settings) -> dict[str, Any]:
    """Where the station posts alerts to. Raises BadInput."""
    from console.cli.settings.notifying import notify_settings

    notify = notify_settings(settings)
    return {
        "webhook": notify.webhook, "webhook_from": notify.webhook_from, "webhook_a_minute": notify.a_minute,
    }  # fmt: skip


def _mode(text: str) -> PolicyMode:
    """The policy as typed. Raises BadInput."""
    from engine.policy import PolicyError, parse_mode

    try:
        return parse_mode(text)
    except PolicyError as error:
        raise BadInput(f"--policy: {error}") from error


def _store_path(store: str | None) -> str:
    """The store's file, absolute. Raises BadInput."""
    from pathlib import Path

    from engine.places import data_dir

    path = Path(store).absolute() if store else data_dir() / "specdeck.duckdb"
    if not path.parent.is_dir():
        raise BadInput(f"--store {path}: there is no folder {path.parent}")
    return str(path)


def _check_engine(options: StationOptions) -> None:
    """Refuse now what the engine would refuse in minutes. Raises BadInput."""
    from engine.launch import SpecError, preflight
    from engine.models import ModelError

    if not options.engine:
        if options.vanilla_engine:
            raise BadInput("--vanilla-engine stands beside an engine that specdeck starts: leave out --no-engine")
        return
    if options.vanilla_engine and "none" in (options.drafter.strip(), options.method):
        raise BadInput("--vanilla-engine: the engine itself is without speculation; leave it out, or give a --drafter")
    try:
        preflight(options.engine_spec())
        if options.vanilla_engine:
            preflight(options.vanilla_spec())
    except (SpecError, ModelError) as error:
        raise BadInput(str(error)) from error


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def choose_port(host: str, port: int | None, free_port: bool) -> int:
    """The port to listen on. A gateway that a station left serving may hold it: that is ours, to be adopted."""
    from console.cli.ports import DEFAULT_PORT, free, holder_of

    wanted = DEFAULT_PORT if port is None else port
    who = holder_of(host, wanted)
    if who is None:
        return wanted
    if who.ours:
        return wanted
    if port is None and free_port:
        return free(host)
    raise BadInput(f"port {wanted} on {host} is taken by {who.name}: end it, or give another with --port")
