"""`specdeck drill`: force each way out on a live station, and certify that it works."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from console.cli.outcomes import CHECK_FAILED, BadInput, CheckFailed, Unreachable, say

if TYPE_CHECKING:
    from console.feed.certificate import Certificate

_FOR_ALL = "--all tries the cap, the operator's fallback and mode off: for a few seconds nobody speculates"


@click.command(epilog="Example: specdeck drill --json. Everything, also what touches all clients: specdeck drill --all")
@click.option("--all", "for_all", is_flag=True, help="Also cap 0, the operator's fallback and mode off: for everybody.")
@click.option("--yes", is_flag=True, help="Do not ask before --all.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=None, metavar="DIR",
    help="Where the certificate is filed. Default: certificates in the data directory.",
)  # fmt: skip
@click.option("--api-key", envvar="SPECDECK_API_KEY", default=None, help="Of the public port. Also SPECDECK_API_KEY.")
@click.option("--json", "as_json", is_flag=True, help="The certificate as JSON.")
@click.pass_context
def drill(ctx: click.Context, for_all: bool, yes: bool, out: Path | None, api_key: str | None, as_json: bool) -> None:
    """Try the ways out of speculation on the running station, on requests of workload `drill`.

    The hint `disable_speculation` (header, body, vllm_xargs) and the vanilla lane, each with a request beside it that
    must go on drafting; what was executed is read from the recorded rows. Other clients' requests are left alone, and
    the policy is put back as it was. The certificate is filed, kept in the station's history and shown on the Policy
    screen; it is stale once another model serves.

    Exit code 1 when a way out does not work or nothing can be proved now, 3 when no station or no engine serves.
    """
    from console.cli.station import require_station

    require_station()
    if for_all and not yes:
        _ask_first()
    certificate = _drilled(for_all, api_key)
    _file(certificate, out)
    _keep(certificate)
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(certificate).decode())
    else:
        for way in certificate.ways:
            click.echo(f"{way.way:<18} {'ok' if way.passed else 'FAILED':<7} {way.text}")
    if not certificate.passed:
        failed = ", ".join(way.way for way in certificate.ways if not way.passed)
        say(f"failed: {failed}")
        ctx.exit(CHECK_FAILED)


def _ask_first() -> None:
    if not sys.stdin.isatty():
        raise BadInput(f"{_FOR_ALL}; say --yes")
    if not click.confirm(f"{_FOR_ALL}. Go on?", err=True):
        raise BadInput("nothing was tried")


def _drilled(for_all: bool, api_key: str | None) -> Certificate:
    from console.feed.client import FeedClient, FeedError
    from console.rehearsing.client import NotServed
    from console.rehearsing.drill import NotProvable, drill
    from console.rehearsing.found import NothingToTry
    from console.rehearsing.interrupts import run_to_its_end
    from console.rehearsing.trying import RowsMissing
    from engine.sockets import sockets

    async def done() -> Certificate:
        async with FeedClient(sockets().feed, sockets().snapshots, actor="drill") as feed:
            return await drill(feed, for_all, api_key, say)

    try:
        return run_to_its_end(done(), say)
    except (NothingToTry, FeedError) as error:
        raise Unreachable(str(error)) from error
    except (NotProvable, NotServed, RowsMissing) as error:
        raise CheckFailed(str(error)) from error


def _file(certificate: Certificate, out: Path | None) -> None:
    from console.rehearsing.filing import file_certificate
    from engine.places import data_dir

    folder = out or data_dir() / "certificates"
    try:
        say(f"certificate: {file_certificate(certificate, folder)}")
    except OSError as error:
        say(f"the certificate could not be filed in {folder}: {error.strerror or error}; --out names another folder")


def _keep(certificate: Certificate) -> None:
    """Have the station remember it."""
    import msgspec

    from console.cli.station import ask
    from console.feed.messages import CertificateView
    from console.feed.protocol import DrillDone

    try:
        ask("drill_done", CertificateView, DrillDone(certificate=msgspec.to_builtins(certificate)))
    except click.ClickException as error:
        say(f"the station did not take the certificate, so its screens do not show it: {error.message}")
