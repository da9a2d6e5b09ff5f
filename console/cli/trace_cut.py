"""`specdeck trace cut`."""

from __future__ import annotations

import math

import click

from console.cli.outcomes import BadInput
from console.cli.trace_convert import print_result


@click.command(epilog="Example: specdeck trace cut run.jsonl.zst busy.parquet --from +10m --to +25m")
@click.argument("source", metavar="IN", type=click.Path(exists=True, dir_okay=False))
@click.argument("out", metavar="OUT", type=click.Path())
@click.option("--from", "start", default=None, metavar="TIME", help="From here on, taken back to whole 10 s.")
@click.option("--to", "end", default=None, metavar="TIME", help="Up to here.")
@click.option("--workload", default=None, metavar="TAG", help="Only rows of this workload, or `untagged`.")
@click.option("--context", default=None, metavar="BUCKET", help="Only rows of this context, e.g. 512-2048.")
@click.option("--temperature", default=None, metavar="BUCKET", help='Only rows of this temperature, e.g. "(0,0.5]".')
@click.option("--sequence", "sequences", multiple=True, metavar="NAME", help="Only rows of this sequence, or of these.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: path, bytes, records, notes.")
def cut(
    source: str, out: str, start: str | None, end: str | None, workload: str | None, context: str | None,
    temperature: str | None, sequences: tuple[str, ...], as_json: bool,
) -> None:  # fmt: skip
    """Write a part of the trace IN to OUT (.jsonl, .jsonl.zst, .parquet), such that it can be read alone.

    A TIME is Unix seconds, 2026-11-29T18:00, 18:00 or 18:00:30 (local time, the last one before the trace ends), +90s
    or +10m from its start, or -10m from its end.

    A cut by time keeps whole steps, the engines, sequences and controls that they need, and what the judge knew: it
    replays like that part of the whole.

    A cut by workload, context, temperature or sequence is for looking at acceptance, waste and K of what was chosen:
    steps keep their facts but lose the other rows, so that batch sizes, step times and speedups can't be told from it.
    Such a cut says so in its notes and begins without what the judge knew.

    Prints the path that was written.
    """
    from store.buckets import DEFAULT_EDGES
    from store.trace import TraceError
    from store.trace.chosen import Choice
    from store.trace.cut import cut as cut_trace

    _known("--context", context, DEFAULT_EDGES.context_labels())
    _known("--temperature", temperature, [*DEFAULT_EDGES.temperature_labels(), "unknown"])
    if not any((start, end, workload, context, temperature, sequences)):
        raise BadInput("nothing is chosen: give --from, --to, --workload, --context, --temperature or --sequence")
    try:
        since, until = _times(source, start, end)
        choice = Choice(
            start=since, end=until, workload=workload, context=context, temperature=temperature,
            sequences=frozenset(sequences),
        )  # fmt: skip
        result = cut_trace(source, out, choice)
    except TraceError as error:
        raise BadInput(str(error)) from error
    print_result(result, as_json=as_json)


def _times(source: str, start: str | None, end: str | None) -> tuple[float, float]:
    """Unix seconds, infinite where nothing was said. Raises BadInput and TraceError."""
    if start is None and end is None:
        return -math.inf, math.inf
    from console.cli.windows import parse_ends
    from store.trace.info import span_of

    since, until = parse_ends(start, end, span_of(source))
    return -math.inf if since is None else since, math.inf if until is None else until


def _known(option: str, label: str | None, labels: list[str]) -> None:
    if label is not None and label not in labels:
        raise BadInput(f"{option} {label}: is none of {', '.join(labels)}")
