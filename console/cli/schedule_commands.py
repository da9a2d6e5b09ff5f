"""`specdeck schedule check`, `show` and `convert`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from console.cli.outcomes import BadInput, say

if TYPE_CHECKING:
    from engine.schedule import Clamped, DraftSchedule
    from engine.schedule_file import Written

_source = click.argument("source", metavar="SCHEDULE")
_max_k = click.option(
    "--max-k",
    type=click.IntRange(0),
    default=None,
    help="The engine's start-up maximum: K above it is clamped. Default: as written.",
)


@click.command(epilog="Example: specdeck schedule check night.toml --max-k 4")
@_source
@_max_k
@click.option("--json", "as_json", is_flag=True, help="The schedule as it was read, and what was clamped, as JSON.")
def check(source: str, max_k: int | None, as_json: bool) -> None:
    """Say whether SCHEDULE is valid: exit code 2 and the wrong entry on stderr if not."""
    schedule = _read(source).schedule
    clamped = _clamped(schedule, max_k)
    if as_json:
        _print_json({"schedule": schedule, "clamped": clamped.entries})
        return
    _say_clamped(clamped, max_k)
    say("valid: K " + ", ".join(f"{entry.k} from {entry.first}" for entry in clamped.schedule))


@click.command(epilog="Example: specdeck schedule show '[[1,16,3],[32,128,2]]' --max-k 3 --at 20 --at 200 --json")
@_source
@_max_k
@click.option(
    "--at", "sizes", type=click.IntRange(1), multiple=True, metavar="N",
    help="K for N scheduled sequences; repeatable. Default: where K may change.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help='{"k": {N: K}, "clamped": [entries as written]}.')
def show(source: str, max_k: int | None, sizes: tuple[int, ...], as_json: bool) -> None:
    """K per batch size, as an engine that was started with --max-k executes SCHEDULE."""
    from engine.schedule import lookup

    clamped = _clamped(_read(source).schedule, max_k)
    asked = sizes or tuple(entry.first for entry in clamped.schedule)
    if as_json:
        _print_json({"k": {size: lookup(clamped.schedule, size) for size in asked}, "clamped": clamped.entries})
        return
    _say_clamped(clamped, max_k)
    if sizes:
        lines = [(str(size), lookup(clamped.schedule, size)) for size in sizes]
    else:
        lines = list(zip(_stretches(clamped.schedule), (entry.k for entry in clamped.schedule), strict=True))
    width = max(len("running"), *(len(size) for size, _ in lines))
    click.echo("\n".join([f"{'running':<{width}}  K", *(f"{size:<{width}}  {k}" for size, k in lines)]))


@click.command(epilog="Example: specdeck schedule convert '[[1,16,3],[32,128,2]]' > night.toml")
@_source
@click.option(
    "--to", "form", type=click.Choice(["json", "toml"]), default=None, help="Default: the form it is not written in."
)
def convert(source: str, form: str | None) -> None:
    """SCHEDULE in the other form: vLLM's JSON, or TOML."""
    from engine.schedule_file import to_json, to_toml

    found = _read(source)
    wanted = form or ("toml" if found.form == "json" else "json")
    click.echo(to_json(found.schedule) if wanted == "json" else to_toml(found.schedule).rstrip("\n"))


def _read(source: str) -> Written:
    """Raises BadInput, which names the file and the entry."""
    from engine.schedule import ScheduleError
    from engine.schedule_file import parse_text, read_schedule

    try:
        return parse_text(_stdin(), name="stdin") if source == "-" else read_schedule(source)
    except ScheduleError as error:
        raise BadInput(str(error)) from error


def _stdin() -> str:
    import sys

    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"stdin: is no text: {error}") from error


def _clamped(schedule: DraftSchedule, max_k: int | None) -> Clamped:
    from engine.schedule import Clamped, clamp

    return Clamped(schedule, ()) if max_k is None else clamp(schedule, max_k)


def _say_clamped(clamped: Clamped, max_k: int | None) -> None:
    for entry in clamped.entries:
        say(f"{list(entry)}: K {entry.k} is clamped to {max_k}")


def _stretches(schedule: DraftSchedule) -> list[str]:
    """Batch sizes over which each entry's K holds: up to the next entry, the last one without end."""
    following = [*(str(entry.first - 1) for entry in schedule[1:]), ""]
    return [f"{entry.first}-{last}" for entry, last in zip(schedule, following, strict=True)]


def _print_json(value: dict[str, Any]) -> None:
    import json

    click.echo(json.dumps(value))
