"""Runs the load process of a pass and tells how it stands."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import IO, Final

import msgspec

from console.rehearsing.load.command import API_KEY
from console.rehearsing.load.sending import DRAIN_SECONDS
from console.rehearsing.load.target import with_version
from console.rehearsing.load.told import LoadProgress, LoadSummary, Told
from console.traffic.client import Server

__all__ = ["LoadFailed", "LoadProgress", "LoadSummary", "send"]

GRACE_SECONDS: Final = 5.0
"""For the process to end by itself once it was told to."""


class LoadFailed(Exception):
    """The requests of a pass could not be sent, or not all: says why."""


async def send(
    requests: Path,
    outcomes: Path,
    *,
    base_url: str,
    api_key: str | None,
    model: str | None,
    tag_prefix: str,
    on_progress: Callable[[LoadProgress], None],
    drain_seconds: float = DRAIN_SECONDS,
) -> LoadSummary:
    """Send `requests` (lines of `DrawnRequest`) open-loop; when it returns, each has one line in `outcomes`.

    Cancelled, the process is ended: requests in flight are closed, and `outcomes` has them as `cancelled`. The same
    happens by itself when this process dies.

    Args:
        base_url: with `/v1`, or without a path.
        model: None: the first that is served.
        tag_prefix: put before each workload in the tag of its requests.
        drain_seconds: after the last request; what is unanswered then is a `timeout`.

    Raises:
        LoadFailed: no server, no such requests, or the process ended before all was sent.
    """
    if model is None:
        model = await _first_model(base_url, api_key)
    argv = [str(requests.absolute()), str(outcomes.absolute()), "--base-url", base_url, "--model", model]
    argv += [f"--tag-prefix={tag_prefix}", f"--drain={drain_seconds}"]
    summary: LoadSummary | None = None
    with tempfile.TemporaryFile() as words:
        async with _process(argv, api_key, outcomes.absolute().parent, words) as process:
            async for told in _told(process):
                if isinstance(told, LoadSummary):
                    summary = told
                else:
                    on_progress(told)
            code = await process.wait()
        if summary is None or code != 0:
            raise LoadFailed(_why(code, words))
    return summary


async def _first_model(base_url: str, api_key: str | None) -> str:
    server = Server(with_version(base_url), api_key)
    try:
        found = await server.first_model()
    finally:
        await server.close()
    if isinstance(found, str):
        return found
    raise LoadFailed(f"{base_url}: {found.error}: {found.detail}")


@contextlib.asynccontextmanager
async def _process(
    arguments: list[str], api_key: str | None, folder: Path, words: IO[bytes]
) -> AsyncIterator[asyncio.subprocess.Process]:
    """The load process for as long as the block runs, whatever way it is left."""
    env = {name: value for name, value in os.environ.items() if name != API_KEY} | {"PYTHONSAFEPATH": "1"}
    if api_key is not None:
        env[API_KEY] = api_key
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "console.rehearsing.load", *arguments),
            env=env,
            cwd=folder,  # neutral: nothing in the operator's directory may shadow ours
            stdin=asyncio.subprocess.PIPE,  # ends with us, even if nothing of ours gets to run
            stdout=asyncio.subprocess.PIPE,
            stderr=words,
            start_new_session=True,  # ctrl+c in the terminal is ours
        )
    except OSError as error:
        raise LoadFailed(f"the load process cannot be started in {folder}: {error.strerror}") from error
    try:
        yield process
    finally:
        await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(GRACE_SECONDS):
            await process.wait()
    except TimeoutError:
        pass
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _told(process: asyncio.subprocess.Process) -> AsyncIterator[Told]:
    assert process.stdout is not None
    decode = msgspec.json.Decoder(Told).decode
    async for line in process.stdout:
        yield decode(line)


def _why(code: int, words: IO[bytes]) -> str:
    words.seek(0)
    said = [line.strip() for line in words.read().decode(errors="replace").splitlines() if line.strip()]
    if said:
        return said[-1].removeprefix("load: ")
    ended = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}, without a word"
    return f"the load process {ended}"
