"""`specdeck trace record`: what the running station sees from now on, as a trace."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from console.cli.outcomes import BadInput, say

if TYPE_CHECKING:
    from engine.records import StateRecord

_STATE_SECONDS: Final = 60.0
_EXPORT_SECONDS: Final = 600.0
_BEGINNING: Final = 10_000
"""Records among which a state is looked for."""
_LONGEST: Final = 86_400.0
"""The station keeps steps for two days, less where the disk is short."""


@click.command(epilog="Example: specdeck trace record night.jsonl.zst --for 10m")
@click.argument("out", metavar="OUT")
@click.option(
    "--for", "span", default=None, metavar="TIME", help="End after 30s, 10m, 2h, at most 1d. Default: ctrl+c."
)
def record(out: str, span: str | None) -> None:
    """Record the running station from now on into OUT (.jsonl, .jsonl.zst or .parquet), until ctrl+c or for a TIME.

    The trace begins with what the station's judge knows, at most half a minute ago, so that a replay judges like the
    station. Prompts and answers are never in it. Nothing is written before the end: killed earlier, this leaves nothing
    behind, and `specdeck export` has the records all the same.

    Prints the path that was written.
    """
    from console.cli.spans import parse_span
    from console.cli.station import ask
    from console.feed.protocol import ExportParams
    from engine.records import StateRecord

    seconds = parse_span(span)
    if seconds is not None and seconds > _LONGEST:
        raise BadInput(f"--for {span}: at most 1d, since the station may have removed older steps by then")
    target = _target(out)
    state = ask("trace_state", StateRecord, seconds=_STATE_SECONDS)
    say(_begun(state, target, span))
    _wait(seconds)
    say(f"writing {target.name}")
    ask("export", str, ExportParams(path=str(target), state=state), seconds=_EXPORT_SECONDS)
    if not begins_knowing(target):
        say("the station removed older steps meanwhile: the trace begins later, without what the judge knew")
    click.echo(str(target))


def _target(out: str) -> Path:
    target = Path(out).absolute()
    if not target.name.endswith((".jsonl", ".jsonl.zst", ".parquet")):
        raise BadInput(f"{out}: a recording is a trace; name it .jsonl, .jsonl.zst or .parquet")
    if target.exists():
        raise BadInput(f"{out} is there already: choose another name or remove it")
    if not target.parent.is_dir():
        raise BadInput(f"{out}: there is no folder {target.parent}")
    return target


def begins_knowing(trace: Path) -> bool:
    """Whether a recording begins with a state record: engines, controls and sequences in force may stand before it."""
    from itertools import islice

    from engine.records import StateRecord
    from store.trace import file_records

    return any(isinstance(record, StateRecord) for record in islice(file_records(trace), _BEGINNING))


def _begun(state: StateRecord, target: Path, span: str | None) -> str:
    from datetime import datetime

    began = datetime.fromtimestamp(state.ts).astimezone().strftime("%H:%M:%S")
    return f"recording to {target.name} since {began}; ctrl+c ends it" + (f", or {span}" if span else "")


def _wait(seconds: float | None) -> None:
    """So long, or until ctrl+c: that is how a recording ends."""
    import time

    with suppress(KeyboardInterrupt):
        if seconds is not None:
            time.sleep(seconds)
        while seconds is None:
            time.sleep(3600.0)
