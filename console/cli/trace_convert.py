"""`specdeck trace convert`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from console.cli.outcomes import BadInput, Unreachable, say

if TYPE_CHECKING:
    from store.trace.convert import Converted


@click.command(epilog="Example: specdeck trace convert run.jsonl.zst run.parquet")
@click.argument("source", metavar="IN", type=click.Path(exists=True, dir_okay=False))
@click.argument("out", metavar="OUT", type=click.Path())
@click.option("--without-text", is_flag=True, help="Leave out prompts and answers, where IN holds any.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: path, bytes, records, notes.")
def convert(source: str, out: str, without_text: bool, as_json: bool) -> None:
    """Write the trace IN in the form that OUT is named for: .jsonl, .jsonl.zst, or .parquet, which is the compact form.

    Between these nothing is lost: the records stay as they are, in the order of the file. IN may also be a bundle or a
    .duckdb that nobody is writing; OUT may be a .duckdb, judged to its end. OUT must not be there yet, and gets its
    name when it is complete.

    Prompts and answers, of a trace that was recorded `--with-text`, go along into a trace, which then only you can
    read (mode 0600); never into a .duckdb.

    Prints the path that was written.
    """
    import duckdb

    from store.database import StoreBusy, StoreError
    from store.trace.convert import convert as convert_trace

    try:
        result = convert_trace(source, out, text=not without_text)
    except StoreBusy as error:
        raise Unreachable(str(error)) from error
    except StoreError as error:
        raise BadInput(str(error)) from error
    except duckdb.IOException as error:
        raise BadInput(f"{source}: damaged or cut off: {str(error).strip().splitlines()[0]}") from error
    print_result(result, as_json=as_json)


def print_result(result: Converted, *, as_json: bool) -> None:
    """What was written, on stdout; what is to be known of it, on stderr."""
    import msgspec

    for note in result.notes:
        say(note)
    records = f"{result.records} records, " if result.records else ""
    say(f"{records}{result.bytes / 1e6:.2f} MB")
    click.echo(msgspec.json.encode(result).decode() if as_json else result.path)
