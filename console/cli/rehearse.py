"""`specdeck rehearse`: traffic that tries the policy, and the operating map that comes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from console.cli.options import engine_options
from console.cli.outcomes import CHECK_FAILED, BadInput, say

if TYPE_CHECKING:
    from console.cli.rehearse_choice import Asked
    from store.rehearsal.records import FallbackVerdict

_LATEST: Final = "latest"


@click.command(epilog="Example: specdeck rehearse quick --out quick.md")
@click.argument("plan", required=False)
@click.option(
    "--resume", is_flag=False, flag_value=_LATEST, default=None, metavar="[ID]",
    help="Go on with one that was stopped; passes that came to their end are kept. Default: the latest.",
)  # fmt: skip
@click.option(
    "--report", "again", is_flag=False, flag_value=_LATEST, default=None, metavar="[ID]",
    help="Report one again, from its folder alone. Default: the latest.",
)  # fmt: skip
@click.option("--list", "listing", is_flag=True, help="Rehearsals that were made, and how far each came.")
@click.option("--show-plan", default=None, metavar="PLAN", help="Print a plan as TOML: a start for one of your own.")
@click.option("--dry-run", is_flag=True, help="Say passes, requests and time; start nothing.")
@click.option("--no-without", is_flag=True, help="Leave out the arm of an engine without speculation.")
@click.option("--out", type=click.Path(dir_okay=False), default=None, metavar="FILE.md", help="The report as Markdown.")
@click.option("--fallback-test", is_flag=True, help="Only try that K follows a schedule down to 0 and back.")
@click.option(
    "--schedule", default=None, metavar="SCHEDULE",
    help="Of --fallback-test: JSON, or a .json or .toml file; e.g. '[[1,2,4],[3,8,1],[9,32,0]]'; its last K must be 0. "
    "Default: three levels that the engine reaches.",
)  # fmt: skip
@click.option(
    "--api-key", envvar="SPECDECK_API_KEY", default=None, help="Of the running station's port. Also SPECDECK_API_KEY."
)
@click.option(
    "--store", type=click.Path(dir_okay=False), default=None,
    help="Where the map is kept if no station runs. Default: specdeck.duckdb in the data directory.",
)  # fmt: skip
@engine_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def rehearse(ctx: click.Context, /, plan: str | None, as_json: bool, **given: Any) -> None:
    """Try draft lengths under the traffic of PLAN, `quick` by default: `smoke` (2 minutes of traffic), `quick` (10),
    `full` (an hour), or a .toml file. Each arm of the plan meets the same requests at the same moments; what comes of
    it is a report and the operating map: which draft length helps under which load.

    On the running station if there is one: each arm then holds for all its clients, and the policy is given back
    afterwards (if this command is killed, within two minutes by the station). Else on a station of its own, with a
    store of its own, ended afterwards.

    --fallback-test alone puts a draft schedule in force on the running station, sends streaming requests, from one at
    once to many and back, and reads from the engine's steps whether each K came at most one step after the running
    sequences crossed. It takes about half a minute. It is also a part of every plan.

    Exit code 1 when the engine did not follow the fallback test, 3 when there is no engine to rehearse on or it was
    lost: what was measured is kept, and --resume goes on.
    """
    _check_one_thing(ctx)
    if given["schedule"] is not None and not given["fallback_test"]:
        raise BadInput("--schedule is for --fallback-test: a plan has its schedule from its own survey")
    if given["fallback_test"]:
        _fallback_test(ctx, given, as_json)
    elif given["listing"]:
        _list(as_json)
    elif given["show_plan"] is not None:
        _show_plan(given["show_plan"], as_json)
    elif given["dry_run"]:
        _dry_run(_asked(ctx, plan, given), as_json)
    elif given["again"] is not None:
        _report_again(ctx, given, as_json)
    else:
        _rehearse(ctx, _asked(ctx, plan, given), given, as_json)


_THINGS: Final = {
    "fallback_test": "--fallback-test", "listing": "--list", "show_plan": "--show-plan", "dry_run": "--dry-run",
    "again": "--report", "resume": "--resume",
}  # fmt: skip


def _check_one_thing(ctx: click.Context) -> None:
    """Raises BadInput."""
    things = [option for name, option in _THINGS.items() if ctx.params[name]]
    if len(things) > 1:
        raise BadInput(f"{' and '.join(things)} are different things: give one of them")
    if ctx.params["plan"] is not None and things not in ([], ["--dry-run"]):
        raise BadInput(f"{things[0]} takes no plan: leave out {ctx.params['plan']}")


def _asked(ctx: click.Context, plan: str | None, given: dict[str, Any]) -> Asked:
    from console.cli.rehearse_choice import Asked

    names = ("model", "drafter", "method", "max_k", "max_num_seqs", "max_model_len", "engine_args")
    typed = [
        parameter.opts[0]
        for parameter in ctx.command.params
        if parameter.name in names and ctx.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    ]
    engine = {name: given[name] for name in names}
    return Asked(plan or "quick", given["resume"], given["no_without"], given["api_key"], engine, typed)


def _rehearse(ctx: click.Context, asked: Asked, given: dict[str, Any], as_json: bool) -> None:
    from pathlib import Path

    from console.cli.rehearse_report import checked_out, keep_in_store, show
    from console.cli.rehearse_run import run
    from engine.places import data_dir

    out = checked_out(given["out"])
    store = Path(given["store"]).absolute() if given["store"] else data_dir() / "specdeck.duckdb"
    if not store.parent.is_dir():
        raise BadInput(f"--store {store}: there is no folder {store.parent}")
    ended = run(asked)
    if ended.own:
        keep_in_store(store, ended.reported.map)
    show(ended.reported, out, as_json)
    say(f"everything is in {ended.folder.path}")
    _exit_by_fallback(ctx, ended.folder.rehearsal().fallback)


def _report_again(ctx: click.Context, given: dict[str, Any], as_json: bool) -> None:
    from console.cli.rehearse_choice import rehearsals
    from console.cli.rehearse_report import checked_out, report, show
    from console.rehearsing.passes.folder import FolderError, find

    out = checked_out(given["out"])
    try:
        folder = find(rehearsals(), given["again"])
        rehearsal = folder.rehearsal()
    except FolderError as error:
        raise BadInput(str(error)) from error
    if rehearsal.ended is None:
        say(f"{folder.id} did not come to its end: this is of the passes that did (--resume {folder.id} goes on)")
    show(report(folder.path), out, as_json)
    _exit_by_fallback(ctx, rehearsal.fallback)


def _exit_by_fallback(ctx: click.Context, verdict: FallbackVerdict | None) -> None:
    if verdict is not None and not verdict.passed:
        for failure in verdict.failures:
            say(f"fallback test failed: {failure}")
        ctx.exit(CHECK_FAILED)


def _fallback_test(ctx: click.Context, given: dict[str, Any], as_json: bool) -> None:
    from console.cli.rehearse_fallback import lines, read, tested

    result = tested(read(given["schedule"]), given["api_key"])
    _echo(result) if as_json else click.echo("\n".join(lines(result)))
    if not result.passed:
        for failure in result.failures:
            say(f"failed: {failure}")
        ctx.exit(CHECK_FAILED)


def _list(as_json: bool) -> None:
    from console.cli.rehearse_list import listed, listed_lines

    found = listed()
    _echo(found) if as_json else click.echo("\n".join(listed_lines(found)))


def _show_plan(name: str, as_json: bool) -> None:
    from console.rehearsing.plans.reading import PlanError, read_plan
    from console.rehearsing.plans.writing import to_toml

    try:
        plan = read_plan(name)
    except PlanError as error:
        raise BadInput(str(error)) from error
    _echo(plan) if as_json else click.echo(to_toml(plan), nl=False)


def _dry_run(asked: Asked, as_json: bool) -> None:
    from console.cli.rehearse_list import dry_run, dry_run_lines

    found = dry_run(asked)
    _echo(found) if as_json else click.echo("\n".join(dry_run_lines(found)))


def _echo(value: Any) -> None:
    import msgspec

    click.echo(msgspec.json.encode(value).decode())
