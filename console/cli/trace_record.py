"""`specdeck trace record`: what the running station sees from now on, as a trace."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from console.cli.outcomes import BadInput, say

if TYPE_CHECKING:
    from console.cli.recorded_text import RecordedText
    from engine.records import StateRecord

_STATE_SECONDS: Final = 60.0
_EXPORT_SECONDS: Final = 600.0
_LOOK_SECONDS: Final = 1.0
"""Less than the gateway keeps text without being asked for it."""
_BEGINNING: Final = 10_000
"""Records among which a state is looked for."""
_LONGEST: Final = 86_400.0
"""The station keeps steps for two days, less where the disk is short."""


@click.command(epilog="Example: specdeck trace record night.jsonl.zst --for 10m")
@click.argument("out", metavar="OUT")
@click.option(
    "--for", "span", default=None, metavar="TIME", help="End after 30s, 10m, 2h, at most 1d. Default: ctrl+c."
)
@click.option("--with-text", is_flag=True, help="Write prompts and answers into OUT, too: see above.")
@click.option("--detach", is_flag=True, help="Have the station do it and come back at once; `trace end` ends it.")
def record(out: str, span: str | None, with_text: bool, detach: bool) -> None:
    """Record the running station from now on into OUT (.jsonl, .jsonl.zst or .parquet), until ctrl+c or for a TIME.

    The trace begins with what the station's judge knows, at most half a minute ago, so that a replay judges like the
    station. Nothing is written before the end: killed earlier, this leaves nothing behind, and `specdeck export` has
    the records all the same.

    Prompts and answers are in it only with --with-text: those of requests that come in through the gateway meanwhile,
    found again by the request id of a sequence. Such a trace says so at its beginning, and only you can read it (mode
    0600). The text is in no store, no log, no export and no bundle; consoles show that it is being recorded, and the
    history keeps that it was. Killed, this ends within seconds, and the text is gone. `specdeck trace convert
    --without-text` takes it out again.

    With --detach the station records, as from its console, whatever becomes of this shell: consoles show it, a station
    that is started again takes it up, and `specdeck trace end` writes OUT.

    Prints the path that was written, with --detach that will be.
    """
    from console.cli.spans import parse_span
    from console.cli.station import ask
    from engine.records import StateRecord

    seconds = parse_span(span)
    if seconds is not None and seconds > _LONGEST:
        raise BadInput(f"--for {span}: at most 1d, since the station may have removed older steps by then")
    target = _target(out)
    if detach:
        _detached(target, seconds, with_text)
        return
    state = ask("trace_state", StateRecord, seconds=_STATE_SECONDS)
    texts = _begun_text(target) if with_text else None
    say(_begun(state, target, span))
    _wait(seconds, None if texts is None else texts.look)
    if texts is not None:
        texts.finish()
    say(f"writing {target.name}")
    knowing = _written(target, state, texts)
    if not knowing:
        say("the station removed older steps meanwhile: the trace begins later, without what the judge knew")
    click.echo(str(target))


def _detached(target: Path, seconds: float | None, with_text: bool) -> None:
    from console.cli.station import ask
    from console.feed.messages import RecordingView
    from console.feed.traces import RecordingBegin

    if with_text:
        raise BadInput("--with-text: prompts and answers are recorded only while this runs; leave out --detach")
    begun = ask("recording_begin", RecordingView, RecordingBegin(path=str(target), seconds=seconds))
    say("the station records; `specdeck trace end` ends it and writes the file")
    click.echo(begun.path)


def _begun_text(target: Path) -> RecordedText:
    from console.cli.recorded_text import RecordedText

    texts = RecordedText(target)
    texts.begin()
    say(
        "PROMPTS AND ANSWERS of requests that come in from now on are being recorded: they go into "
        f"{target}, which only you can read, and nowhere else"
    )
    return texts


def _written(target: Path, state: StateRecord, texts: RecordedText | None) -> bool:
    """Whether it begins with what the judge knew."""
    from console.cli.station import ask
    from console.feed.protocol import ExportParams

    if texts is None:
        ask("export", str, ExportParams(path=str(target), state=state), seconds=_EXPORT_SECONDS)
        return begins_knowing(target)
    counts = texts.beside(target)
    try:
        ask("export", str, ExportParams(path=str(counts), state=state), seconds=_EXPORT_SECONDS)
        texts.write(counts)
        return begins_knowing(counts)
    finally:
        counts.unlink(missing_ok=True)


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


def _wait(seconds: float | None, look: Callable[[], None] | None) -> None:
    """So long, or until ctrl+c: that is how a recording ends. `look` is called every second."""
    import time

    until = None if seconds is None else time.monotonic() + seconds
    with suppress(KeyboardInterrupt):
        if look is None and seconds is not None:
            time.sleep(seconds)
        while look is None and seconds is None:
            time.sleep(3600.0)
        while look is not None and (until is None or time.monotonic() < until):
            time.sleep(_LOOK_SECONDS if until is None else min(_LOOK_SECONDS, max(0.0, until - time.monotonic())))
            look()
