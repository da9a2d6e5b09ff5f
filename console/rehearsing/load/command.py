"""The command line of the load process: progress and the summary on stdout, one JSON object a line, trouble on stderr.

The API key comes by the environment (`SPECDECK_API_KEY`): a command line can be read by everybody on the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import resource
import signal
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from console.parent import when_parent_is_gone
from console.rehearsing.load.files import OutcomeFile, Unwritable, read_requests
from console.rehearsing.load.request import events
from console.rehearsing.load.sending import DRAIN_SECONDS, Sender
from console.rehearsing.load.target import Target, resolved, target
from console.rehearsing.load.told import LoadProgress, Told
from store.rehearsal.records import DrawnRequest

API_KEY: Final = "SPECDECK_API_KEY"
OK, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

_EXAMPLE: Final = (
    "example: python -m console.rehearsing.load requests.jsonl outcomes.jsonl --base-url http://127.0.0.1:8000/v1 "
    "--model NAME. It ends when its standard input does."
)


def main(arguments: list[str] | None = None) -> int:
    """Send a pass. Returns 0 when every request has its outcome, whatever it is, 1 when outcomes cannot be written, 2
    for bad input, 130 interrupted (or whoever started it is gone)."""
    options = _parser().parse_args(arguments)
    try:
        where, requests = target(options.base_url), read_requests(options.requests)
        if not 0 <= options.drain < math.inf:
            raise ValueError(f"--drain {options.drain}: must be seconds, not less than 0")
        with OutcomeFile(options.outcomes) as outcomes:
            asyncio.run(_send(where, requests, outcomes, options))
    except ValueError as error:
        return _say(str(error), BAD_INPUT)
    except Unwritable as error:
        return _say(f"outcomes are lost: {error}", FAILED)
    except (asyncio.CancelledError, BrokenPipeError):
        return INTERRUPTED
    return OK


async def _send(
    where: Target, requests: list[DrawnRequest], outcomes: OutcomeFile, options: argparse.Namespace
) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    when_parent_is_gone(lambda: _tell(loop, task.cancel))
    _allow_many_connections()
    api_key = os.environ.get(API_KEY) or None
    events(where, b"", api_key)  # says now what it would say at the first request
    sender = Sender(
        await resolved(where),
        outcomes.write,
        model=options.model,
        tag_prefix=options.tag_prefix,
        api_key=api_key,
        drain_seconds=options.drain,
    )
    progress = _ProgressLines()
    try:
        summary = await sender.send(requests, progress.tell)
    finally:
        progress.close()
    print(_line(summary), flush=True)


class _ProgressLines:
    """Nobody may read them for a while: then some are left out, and no request waits for that."""

    def __init__(self) -> None:
        self._may_block = stat.S_ISFIFO(os.fstat(1).st_mode)
        if self._may_block:
            os.set_blocking(1, False)

    def tell(self, progress: LoadProgress) -> None:
        """Raises BrokenPipeError: whoever reads them is gone."""
        try:
            os.write(1, f"{_line(progress)}\n".encode())  # whole or not at all: it is short
        except BlockingIOError:
            return

    def close(self) -> None:
        if self._may_block:
            os.set_blocking(1, True)


def _line(told: Told) -> str:
    return msgspec.json.encode(told).decode()


def _allow_many_connections() -> None:
    """As many as the machine lets us have: each request in flight is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _tell(loop: asyncio.AbstractEventLoop, what: Callable[[], object]) -> None:
    """From another thread; a loop that has ended has nothing to be told."""
    try:
        loop.call_soon_threadsafe(what)
    except RuntimeError:
        return


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m console.rehearsing.load", description=__doc__, epilog=_EXAMPLE)
    parser.add_argument("requests", type=Path, help="requests.jsonl of a pass")
    parser.add_argument("outcomes", type=Path, help="outcomes.jsonl, begun anew")
    parser.add_argument("--base-url", required=True, metavar="URL", help="OpenAI-compatible; /v1 if it has no path")
    parser.add_argument("--model", required=True, help="name to ask for")
    parser.add_argument("--tag-prefix", default="", metavar="TEXT", help="put before each workload in its tag")
    parser.add_argument(
        "--drain", type=float, default=DRAIN_SECONDS, metavar="S", help="wait for answers after the last request"
    )
    return parser


def _say(text: str, code: int) -> int:
    print(f"load: {text}", file=sys.stderr)
    return code
