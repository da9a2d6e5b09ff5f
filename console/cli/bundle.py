"""`specdeck bundle`: one redacted file for a bug report."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from console.cli.outcomes import BadInput, say

if TYPE_CHECKING:
    from pathlib import Path


@click.command(epilog="Example: specdeck bundle --hours 0.5")
@click.argument("source", default="live")
@click.argument("out", required=False)
@click.option("--hours", type=float, default=1.0, show_default=True, help="How much of the end of the recording.")
@click.option("--no-doctor", is_flag=True, help="Leave out what `specdeck doctor` finds: it takes up to a minute.")
@click.option("--keep-tags", is_flag=True, help="Keep workload tags; otherwise they become tag-1, tag-2 and so on.")
def bundle(source: str, out: str | None, hours: float, no_doctor: bool, keep_tags: bool) -> None:
    """Write the ZIP to send with a bug report: the last hour's records, figures, configuration, versions, logs, doctor.

    SOURCE is `live` (the running station, the default), a .duckdb or a trace; of files there are no logs and no doctor.
    OUT is specdeck-bundle-DATE-TIME.zip in this folder by default. Keys, names of people and machines, addresses,
    request ids and workload tags are taken out. `replay`, `report`, `alerts` and `trace info` open the ZIP as it is.
    Prints the path that was written.
    """
    import tempfile
    from pathlib import Path

    from console.cli.bundling.gathering import gather
    from console.cli.bundling.writing import write

    if not 0 < hours < float("inf"):
        raise BadInput(f"--hours {hours:g}: give a number above 0, as in 0.5")
    made = time.time()
    source, target = _places(source, out, made)
    try:
        # Beside OUT: there is room there, and a station that runs as a service may not share our /tmp.
        with tempfile.TemporaryDirectory(prefix=".specdeck-bundle-", dir=target.parent) as folder:
            gathered = gather(source, Path(folder), hours * 3600, doctor=not no_doctor)
            sizes = write(gathered, target, Path(folder), hours, made, keep_tags)
    except OSError as error:
        raise BadInput(f"{target}: can't be written: {error.strerror or error}") from error
    for name, size in sizes.items():
        say(f"{name:<16} {size / 1000:>10,.1f} kB")
    for name, why in gathered.missing.items():
        say(f"{name:<16} missing: {why}")
    for doubt in gathered.doubts:
        say(doubt)
    say(
        f"wrote {target}, {target.stat().st_size / 1000:,.1f} kB. It was redacted by rules, which can miss something: "
        "read it before you send it (its README.txt says what is in it)"
    )
    click.echo(str(target))


def _places(source: str, out: str | None, made: float) -> tuple[str, Path]:
    """SOURCE and the file to write. A single name of a ZIP that is not there can only be OUT."""
    from pathlib import Path

    from console.cli.sources import LIVE

    if out is None and source.endswith(".zip") and not Path(source).exists():
        source, out = LIVE, source
    name = time.strftime("specdeck-bundle-%Y%m%d-%H%M%S.zip", time.localtime(made))
    target = Path(out or name).absolute()
    if target.is_dir():
        target /= name
    if target.exists():
        raise BadInput(f"{target} is there already: choose another name or remove it")
    if not target.parent.is_dir():
        raise BadInput(f"{target}: there is no folder {target.parent}")
    return source, target
