"""What a rehearsal came to: worked out from its folder alone, written into it, and kept in a store."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click
import msgspec

from console.cli.outcomes import BadInput, say
from console.rehearsing.passes.folder import write_json
from store.operating_map.records import OperatingMap
from store.rehearsal.result_records import RehearsalResult

MAP: Final = "map.json"
REPORT: Final = "report.json"
MARKDOWN: Final = "report.md"


class Reported(msgspec.Struct, frozen=True):
    """What `--json` prints."""

    result: RehearsalResult
    map: OperatingMap


def report(folder: Path) -> Reported:
    """Work it out and write `map.json`, `report.json` and `report.md`.

    Raises:
        BadInput: the folder holds too little, is broken, or can't be written.
    """
    from console.cli.rehearse_text import markdown
    from store.operating_map.making import make_map
    from store.rehearsal.reading import RehearsalError
    from store.rehearsal.results import results

    try:
        found = Reported(results(folder), make_map(folder))
    except RehearsalError as error:
        raise BadInput(str(error)) from error
    try:
        write_json(folder / MAP, found.map)
        write_json(folder / REPORT, found)
        write_text(folder / MARKDOWN, markdown(found.result, found.map))
    except OSError as error:
        again = f"`specdeck rehearse --report {folder.name}` makes the report once there is room"
        raise BadInput(f"{folder} can't be written: {error.strerror or error}; {again}") from error
    return found


def write_text(path: Path, text: str) -> None:
    path.write_text(text if text.endswith("\n") else f"{text}\n", encoding="utf-8")


def checked_out(out: str | None) -> Path | None:
    """Where the Markdown goes: refused now rather than after an hour. Raises BadInput."""
    if out is None:
        return None
    path = Path(out).absolute()
    if not path.parent.is_dir():
        raise BadInput(f"--out {out}: there is no folder {path.parent}")
    return path


def show(reported: Reported, out: Path | None, as_json: bool) -> None:
    """On stdout, and as Markdown where that is asked for."""
    from console.cli.rehearse_text import markdown, table

    text = msgspec.json.encode(reported).decode() if as_json else "\n".join(table(reported.result, reported.map))
    click.echo(text)
    if out is None:
        return
    try:
        write_text(out, markdown(reported.result, reported.map))
    except OSError as error:
        raise BadInput(
            f"--out {out}: {error.strerror or error}; the report is in the rehearsal's folder too"
        ) from error
    say(f"report: {out}")


def keep_in_store(path: Path, map: OperatingMap) -> None:
    """Into the operator's store, which no station holds open. Says where it is, or why it is not."""
    import duckdb

    from store.database import Store, StoreError
    from store.operating_map.keeping import keep

    try:
        with Store.open(path) as store:
            keep(store.connection, map)
    except (StoreError, OSError, duckdb.Error) as error:
        say(f"the map is in the rehearsal's folder and not in the store: {error}")
    else:
        say(f"the map is kept in {path}")
