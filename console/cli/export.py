"""`specdeck export`: a consistent copy, while recording goes on."""

from __future__ import annotations

import click

from console.cli.outcomes import BadInput, say

KINDS = ("duckdb", "jsonl", "compact", "parquet", "csv")
_EXPORT_SECONDS = 600.0


@click.command(epilog="Example: specdeck export night.jsonl.zst")
@click.argument("paths", nargs=-1, required=True, metavar="[SOURCE] OUT")
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    default=None,
    help="Where the name of OUT does not tell.",
)
def export(paths: tuple[str, ...], kind: str | None) -> None:
    """Write SOURCE (`live` by default) to OUT: .duckdb, a trace (.jsonl, .jsonl.zst, compact .parquet), .csv (one line
    a row), or, where OUT has no ending, a folder of Parquet files, one a table.

    A trace of a station that has removed its oldest steps begins unknowing: `specdeck trace record` and `cut` write one
    that begins with what the judge knew.

    Prints the path that was written.
    """
    from pathlib import Path

    if len(paths) > 2:
        raise BadInput(f"export takes [SOURCE] OUT, not {len(paths)} arguments")
    source, out = paths if len(paths) == 2 else ("live", paths[0])
    target = Path(out).absolute()
    if target.exists():
        raise BadInput(f"{out} is there already: choose another name or remove it")
    if not target.parent.is_dir():
        raise BadInput(f"{out}: there is no folder {target.parent}")
    _write(source, target, kind)
    say(f"exported {source}")
    click.echo(str(target))


def _write(source: str, target: object, kind: str | None) -> None:
    from pathlib import Path

    from console.cli.sources import LIVE, opened
    from console.cli.station import ask
    from console.feed.protocol import ExportParams
    from store.database import StoreError
    from store.export import export as export_store

    path = Path(str(target))
    if source == LIVE:
        ask("export", str, ExportParams(path=str(path), kind=kind), seconds=_EXPORT_SECONDS)  # type: ignore[arg-type]
        return
    with opened(source) as store:
        try:
            export_store(store.connection, path, kind)  # type: ignore[arg-type]  # one of KINDS
        except StoreError as error:
            raise BadInput(str(error)) from error
