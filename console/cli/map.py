"""`specdeck map`: the operating map, and what is made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from console.cli.outcomes import BadInput, CheckFailed, say

if TYPE_CHECKING:
    from console.cli.map_sources import Found


@click.command(epilog="Example: specdeck map --diff. For vLLM's own configuration: specdeck map --export vllm")
@click.argument("source", metavar="[SOURCE]", default="live")
@click.option(
    "--export", "form", type=click.Choice(["vllm", "toml"]), default=None,
    help="Its schedule alone: vllm for a --speculative-config, toml for `specdeck policy set schedule:FILE`.",
)  # fmt: skip
@click.option("--diff", is_flag=True, help="K by running sequences as the running station has it, and by the map.")
@click.option("--force", is_flag=True, help="Export it though it is stale.")
@click.option("--json", "as_json", is_flag=True, help='One JSON object: {"map": …, "stale": […]}, or the --diff.')
def map_(source: str, form: str | None, diff: bool, force: bool, as_json: bool) -> None:
    """The operating map of SOURCE: `live` (the running station, the default), a .duckdb, the folder of a rehearsal, or
    a map.json.

    For each workload, and for the mix of all, which arm serves best with so many sequences running, and what it gains.
    A map is stale where something runs that it was not made with; then --export refuses it (exit code 1).
    """
    if form is not None and (diff or as_json):
        raise BadInput("--export prints a schedule alone: leave out --diff and --json")
    from console.cli.map_sources import find

    found = find(source)
    if form is not None:
        _export(found, form, force)
    elif diff:
        _diff(found, as_json)
    else:
        _show(found, as_json)


def _show(found: Found, as_json: bool) -> None:
    if as_json:
        _print({"map": found.map, "stale": found.stale})
        return
    from console.cli.map_text import map_text
    from console.cli.rehearse_text_charts import gain_chart
    from console.cli.rehearse_text_table import terminal_width

    width = terminal_width()
    chart = gain_chart(found.map, width)
    click.echo("\n".join([*map_text(found.map, found.stale, width), *(["", *chart] if chart else [])]))
    if found.unchecked is not None:
        say(found.unchecked)


def _export(found: Found, form: str, force: bool) -> None:
    """Raises CheckFailed."""
    from console.cli.map_export import as_toml, as_vllm

    if found.map.schedule is None:
        raise CheckFailed(
            f"map {found.map.id} proposes no schedule: too little of the mix was measured; rehearse longer"
        )
    if found.stale:
        said = f"map {found.map.id} is stale: {'; '.join(found.stale)}"
        if not force:
            raise CheckFailed(f"{said}. Rehearse again with `specdeck rehearse`, or add --force")
        say(f"{said}; exported all the same")
    if found.unchecked is not None:
        say(found.unchecked)
    click.echo(as_vllm(found.map) if form == "vllm" else as_toml(found.map).rstrip("\n"))


def _diff(found: Found, as_json: bool) -> None:
    from console.cli.map_diff import differing, text
    from console.cli.map_text import stale_lines
    from console.cli.station import ask
    from console.feed.messages import Snapshot

    result = differing(found.map, ask("snapshot", Snapshot))
    if as_json:
        _print({"stale": found.stale, **result.as_object()})
        return
    click.echo("\n".join([*stale_lines(found.stale), *text(result, found.map)]))


def _print(value: dict[str, Any]) -> None:
    import msgspec

    click.echo(msgspec.json.encode(value).decode())
