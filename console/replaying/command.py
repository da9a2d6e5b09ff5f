"""The replay process's command line. `specdeck replay` starts it; by hand it is for trying things out."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from pathlib import Path
from typing import Final

import duckdb

from console.replaying.process import run
from engine.places import SOCKET_PATH_LIMIT, private_dir
from engine.sockets import Sockets
from store.database import StoreBusy, StoreError
from store.judge.settings import JudgeSettings

OK: Final = 0
BAD_INPUT: Final = 2
HELD: Final = 3

_EXAMPLE: Final = "example: python -m console.replaying night.jsonl.zst --sockets /run/user/1000/specdeck-replay"


def main(arguments: list[str] | None = None) -> int:
    """Replay until standard input ends, SIGTERM, or the feed's `stop`. Returns 0 then, 2 for what can't be read, 3 for
    a store that somebody holds; one line on stderr says what."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    try:
        sockets = _sockets(options.sockets)
        settings = None if options.speedup_floor is None else JudgeSettings(speedup_floor=options.speedup_floor)
        asyncio.run(run(options.trace, sockets, settings))
    except StoreBusy as error:
        return _say(error, HELD)
    except (StoreError, OSError, ValueError) as error:
        return _say(error, BAD_INPUT)
    except duckdb.Error as error:  # a store's file that was cut off or is damaged
        return _say(StoreError(f"{options.trace}: can't be read: {str(error).strip().splitlines()[0]}"), BAD_INPUT)
    return OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m console.replaying", description=__doc__, epilog=_EXAMPLE)
    parser.add_argument("trace", metavar="TRACE", type=Path, help="a trace, a bundle, or a .duckdb that nobody holds")
    parser.add_argument(
        "--sockets", required=True, metavar="DIR", type=Path, help="private directory for the feed's sockets"
    )
    parser.add_argument(
        "--speedup-floor", type=float, metavar="X", help="judge a trace by this floor of the realised speedup"
    )
    return parser


def _sockets(directory: Path) -> Sockets:
    """Raises ValueError for a path that is too long to bind."""
    sockets = Sockets(private_dir(directory.absolute()))
    longest = max(len(str(path)) for path in (sockets.feed, sockets.snapshots))
    if longest > SOCKET_PATH_LIMIT:
        raise ValueError(
            f"--sockets {directory}: the path is too long, sockets in it may have {SOCKET_PATH_LIMIT} bytes"
        )
    return sockets


def _say(error: Exception, code: int) -> int:
    print(f"replay: {error}", file=sys.stderr)
    return code
