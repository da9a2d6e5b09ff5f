"""Serving the console to browsers: what may be asked for, the address to open, and an end that leaves nothing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import click
import msgspec

from console.cli.options import is_loopback
from console.cli.outcomes import BadInput, say
from console.cli.ports import holder_of
from console.cli.station import NOT_RUNNING, require_station, running_station
from console.parent import when_parent_is_gone
from console.web.access import Access, new_token
from console.web.options import TOKEN_VARIABLE, TokenError, read_token
from console.web.server import WebConsole

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
EVERYWHERE: Final = ("0.0.0.0", "::")


class Served(msgspec.Struct, frozen=True):
    """What `--json` prints. `url`: with the token where that was made here."""

    url: str
    read_only: bool
    sessions: int


def serve_browsers(
    *,
    host: str,
    port: int,
    write: bool,
    token_file: Path | None,
    no_token: bool,
    allow_host: tuple[str, ...],
    sessions: int,
    trace: Path | None,
    as_json: bool,
    with_parent: bool,
) -> None:
    """Serve until a signal; with `with_parent`, for a console that shows the address, until standard input ends.

    Raises:
        BadInput: options that exclude one another, a token that is none, or a port that can't be had.
        Unreachable: no station runs.
    """
    token, made = (new_token(), True) if with_parent else _token(token_file, no_token=no_token, host=host, write=write)
    if trace is None:
        require_station()
    elif write:
        raise BadInput("--write is for a station: a replay shows what was recorded and changes nothing")
    with _listener(host, port) as listener:
        port = listener.getsockname()[1]
        server = WebConsole(
            _console(trace, write=write),
            Access(token, _names(host, allow_host), cookie=f"specdeck_web_{port}"),
            sessions=sessions,
            title=f"specdeck · {trace.name if trace is not None else socket.gethostname()}",
            hindrance=_hindrance if trace is None else lambda: None,
        )
        url = f"http://{_shown(host)}:{port}/{f'?token={token}' if made else ''}"
        _announce(Served(url, not write, sessions), host=host, asked=token is not None, made=made, as_json=as_json)
        logging.basicConfig(level=logging.WARNING, format="web: %(message)s")
        with contextlib.redirect_stdout(sys.stderr):  # there textual-serve tells what a console said that broke
            asyncio.run(_run(server, listener, with_parent))
    say("no console is served any more")


def _token(file: Path | None, *, no_token: bool, host: str, write: bool) -> tuple[str | None, bool]:
    """The token to ask for, and whether it was made here."""
    try:
        given = read_token(file, os.environ.get(TOKEN_VARIABLE))
    except TokenError as error:
        raise BadInput(str(error)) from error
    if not no_token:
        return given or new_token(), given is None
    if file is not None:
        raise BadInput("--no-token and --token-file exclude one another")
    if not is_loopback(host):
        raise BadInput(f"--host {host} can be reached by others: a token is always asked for there")
    if write:
        raise BadInput("--write lets a browser change things: a token is always asked for then")
    return None, False


def _console(trace: Path | None, *, write: bool) -> list[str]:
    """The command that draws one console."""
    what = ["replay", str(trace.absolute())] if trace is not None else ["attach", *([] if write else ["--read-only"])]
    return [sys.executable, "-m", "console.cli", *what]


def _hindrance() -> str | None:
    return None if running_station() is not None else f"{NOT_RUNNING[0].upper()}{NOT_RUNNING[1:]}."


def _names(host: str, allowed: tuple[str, ...]) -> frozenset[str]:
    own = (socket.gethostname(), *allowed, *([] if host in EVERYWHERE else [host]))
    return frozenset(name.lower().rstrip(".") for name in own)


def _shown(host: str) -> str:
    """The host as it stands in an address that can be opened."""
    if host in EVERYWHERE:
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def _listener(host: str, port: int) -> socket.socket:
    """Raises BadInput: it can't be listened on there."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        holder = holder_of(host, port) if port and is_loopback(host) else None
        why = f"is taken by {holder.name}" if holder is not None else f"can't be had: {error.strerror or error}"
        raise BadInput(f"port {port} on {host} {why}; --port gives another, 0 any free one") from error


def _announce(served: Served, *, host: str, asked: bool, made: bool, as_json: bool) -> None:
    click.echo(msgspec.json.encode(served).decode() if as_json else served.url)
    sys.stdout.flush()
    may = "read-only; --write lets browsers change things" if served.read_only else "browsers may change things"
    say(f"the console is served there, {may}; ctrl+c ends it")
    if asked and not made:
        say("the page asks for the token that you gave")
    elif not asked:
        say("no token is asked for: every user of this machine can look")
    if not is_loopback(host):
        say("without TLS: whoever can read this network can read the token; `ssh -L` to a loopback port is safer")


async def _run(server: WebConsole, listener: socket.socket, with_parent: bool) -> None:
    loop, end = asyncio.get_running_loop(), asyncio.Event()
    for number in SIGNALS:
        loop.add_signal_handler(number, end.set)
    if with_parent:
        when_parent_is_gone(_on(loop, end.set))
    await server.serve_until(end, listener)


def _on(loop: asyncio.AbstractEventLoop, do: Callable[[], None]) -> Callable[[], None]:
    def call() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(do)

    return call
