"""`specdeck whatif`: what another policy would have done with recorded traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from console.cli.outcomes import BadInput

if TYPE_CHECKING:
    from engine.records import PolicyMode
    from store.whatif.figures import WhatIf


@click.command(epilog="Example: specdeck whatif night.jsonl.zst --policy static:2 --policy off --json")
@click.argument("trace", metavar="TRACE")
@click.option(
    "--policy", "policies", multiple=True, required=True, metavar="MODE",
    help="`off`, `static:K`, `schedule:FILE-or-JSON`, or `adaptive`, whose controller is simulated; repeatable.",
)  # fmt: skip
@click.option(
    "--from",
    "start",
    default=None,
    metavar="TIME",
    help="Only what came after: 18:00, +10m, Unix s.",
)
@click.option("--to", "end", default=None, metavar="TIME", help="Only what came up to then.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object; a list of them where --policy is repeated.")
def whatif(trace: str, policies: tuple[str, ...], start: str | None, end: str | None, as_json: bool) -> None:
    """What another policy would have done with the traffic of TRACE, a trace or a .duckdb.

    Walks the token positions that the record knows, step by step under the policy. What it can't know is filled in by
    the acceptance of its bucket, and bounded. The mode alone is asked for: cap, fallbacks and lanes that were in force
    take no part, what requests asked for themselves does.
    """
    modes = [_mode(text) for text in policies]
    answers = _answers(trace, modes, start, end)
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(answers[0] if len(answers) == 1 else answers).decode())
        return
    from console.cli.whatif_text import as_text

    click.echo("\n\n".join(as_text(answer) for answer in answers))


def _mode(text: str) -> PolicyMode:
    from engine.policy import PolicyError, parse_mode

    try:
        return parse_mode(text)
    except PolicyError as error:
        raise BadInput(f"--policy {error}") from error


def _answers(trace: str, modes: list[PolicyMode], start: str | None, end: str | None) -> list[WhatIf]:
    from pathlib import Path

    from console.cli.sources import LIVE, opened
    from console.cli.windows import parse_ends
    from store.report import recorded_span
    from store.whatif import what_if
    from store.whatif.figures import WhatIfError

    if trace == LIVE and not Path(trace).exists():
        raise BadInput("a what-if reads a file: write one from the running station with `specdeck export run.duckdb`")
    with opened(trace) as store:
        try:
            span = recorded_span(store.connection)
            bounds = parse_ends(start, end, None if span is None else (span.start, span.end))
            return what_if(store.connection, modes, bounds.start, bounds.end)
        except WhatIfError as error:
            raise BadInput(f"{trace}: {error}") from error
