"""`specdeck import`: records of others into a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from console.cli.outcomes import BadInput, Unreachable, say

if TYPE_CHECKING:
    from store.importing import Kind

KINDS = ("vllm-response", "prometheus", "vllm-log")


@click.command("import", epilog="Example: specdeck import prometheus dumps/*.txt --into night.duckdb")
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("--into", required=True, metavar="STORE", help="A .duckdb that no station records into; made if missing.")
@click.option(
    "--at",
    multiple=True,
    metavar="TIME",
    help="When each Prometheus dump was read, in the order of FILES. Default: the time in its name.",
)
@click.option(
    "--year", type=int, default=None, help="Of each log's first line: vLLM writes none. Default: by the file."
)
@click.option("--json", "as_json", is_flag=True, help="What was taken in, as JSON.")
def import_(
    kind: Kind, files: tuple[str, ...], into: str, at: tuple[str, ...], year: int | None, as_json: bool
) -> None:
    """Take records of others into STORE; `specdeck report STORE` then shows their figures.

    \b
    vllm-response  answers of vLLM with --per-request-spec-decode-metrics detailed (JSON or JSONL)
    prometheus     dumps of vLLM's /metrics
    vllm-log       vLLM's log
    """
    from pathlib import Path

    import msgspec

    from console.cli.spans import parse_time
    from store.database import Store, StoreBusy, StoreError
    from store.importing import import_files
    from store.imports.errors import ImportFailed
    from store.ingest import Ingest

    times = [parse_time(text) for text in at]
    try:
        with Store.open(into) as store:
            result = import_files(
                Ingest(store),
                kind,
                [Path(file) for file in files],
                at=[time for time in times if time is not None],
                year=year,
            )
    except StoreBusy as error:
        raise Unreachable(str(error)) from error
    except (ImportFailed, StoreError) as error:
        raise BadInput(str(error)) from error
    for note in result.notes:
        say(note)
    if as_json:
        click.echo(msgspec.json.encode(result).decode())
    else:
        click.echo(into)
