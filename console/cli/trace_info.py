"""`specdeck trace info`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from console.cli.figures_text import printable
from console.cli.outcomes import BadInput

if TYPE_CHECKING:
    from store.trace import TraceInfo


@click.command(epilog="Example: specdeck trace info run.jsonl.zst --json")
@click.argument("path", metavar="TRACE", type=click.Path(exists=True, dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="One JSON object, times as Unix seconds.")
def info(path: str, as_json: bool) -> None:
    """What a trace holds: engines, span of time, counts of records, warnings."""
    from pathlib import Path

    import msgspec

    from store.trace import TraceError, trace_info

    try:
        found = trace_info(Path(path))
    except TraceError as error:
        raise BadInput(str(error)) from error
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
        return
    click.echo("\n".join(_lines(found)))


def _lines(found: TraceInfo) -> list[str]:
    from store.trace.texts import of_so_many

    packed = " compressed" if found.compressed else ""
    span = (found.end or 0.0) - (found.start or 0.0)
    lines = [
        f"{found.path}: {found.bytes / 1e6:.2f} MB{packed}, {span:.0f} s of recording",
        f"{found.steps} steps, {found.rows} rows, {found.sequences} sequences, {found.frames_lost} frames lost",
        "records    " + ", ".join(f"{count} {kind}" for kind, count in found.records.items()),
        "workloads  " + ", ".join(f"{printable(tag)} {count}" for tag, count in found.workloads.items()),
    ]
    for engine in found.engines:
        name = f"{engine.target} · {engine.drafter} · {engine.method}, K up to {engine.max_k}"
        lines.append(f"engine {engine.engine:<3} {name}, vLLM {engine.vllm} {engine.device}")
    if found.texts:
        lines.append(f"holds the text of {of_so_many(found.texts)}: prompts and answers can be read in it")
    return lines + [printable(note, 1000) for note in found.notes]
