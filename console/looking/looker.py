"""Keeps what is known of trace files, and has the rest found out in a process beside it, a few files at a time."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from console.feed.traces import TraceLook, TracePlace, Traces, TracesParams
from console.looking.folders import Listing, listed, samples_folder, traces_folder

log = logging.getLogger(__name__)

AT_ONCE: Final = 20
"""Files that one process looks into: what is asked meanwhile comes next."""
SMALL_BYTES: Final[Mapping[str, int]] = {".jsonl": 30 << 20, ".zst": 4 << 20, ".parquet": 4 << 20, ".zip": 4 << 20}
"""Files that are read whole unasked: about a second of CPU each at most. A store is opened only when asked for."""
WANTED_BYTES: Final = 1 << 30
"""Larger ones are never read whole here."""
TOO_LARGE: Final = "too large to be read through here; `specdeck trace info` does"
UNWANTED_SECONDS: Final = 5.0
"""A large file that no console asked for in so long is read no further."""
REST_SECONDS: Final = 30.0
"""A file that keeps changing is looked into so often."""
PATIENCE_SECONDS: Final = 300.0
"""For one file."""
MOST_KNOWN: Final = 2000

Job = tuple[TraceLook, bool]
"""A file, and whether to read all of it."""


class Looker:
    """On an event loop. One process looks at a time; it is ended when nobody wants any more what it reads."""

    def __init__(
        self,
        command: Sequence[str] = (sys.executable, "-m", "console.looking"),
        samples: Callable[[], Path | None] = samples_folder,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._command = command
        self._samples = samples
        self._clock = clock
        self._known: dict[str, TraceLook | None] = {}
        """By path; None: no trace of specdeck's."""
        self._seen: dict[str, tuple[int, float]] = {}
        """Size and time of the file that is known."""
        self._looked_at: dict[str, float] = {}
        self._task: asyncio.Task[None] | None = None
        self._large: str | None = None
        """What is being read only since it was asked for."""
        self._asked_at: dict[str, float] = {}
        """When each such file was asked for last, by whatever console."""

    async def traces(self, params: TracesParams) -> Traces:
        """The files there are, with what is known by now. Asking sees to it that more will be."""
        listing = await asyncio.to_thread(listed, params.here, self._samples())
        jobs = self._jobs(listing.files, params.whole)
        self._see_to(jobs, params.whole)
        shown = [look for file in listing.files if (look := self._shown(file, params.whole)) is not None]
        places = self._places(listing)
        return Traces(traces=shown, places=places, folder=str(traces_folder()), looking=bool(jobs))

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _shown(self, file: TraceLook, whole: str | None) -> TraceLook | None:
        known = self._known.get(file.path, file)
        if known is None:
            return None
        look = replace(known, place=file.place, bytes=file.bytes, modified=file.modified)
        large = look.state == "begun" and look.path == whole and look.bytes > WANTED_BYTES
        return replace(look, notes=[*look.notes, TOO_LARGE]) if large else look

    def _places(self, listing: Listing) -> list[TracePlace]:
        foreign = [file.place for file in listing.files if self._known.get(file.path, file) is None]
        return [replace(one, left_out=one.left_out + foreign.count(one.place)) for one in listing.places]

    def _jobs(self, files: Iterable[TraceLook], whole: str | None) -> list[Job]:
        """First what nothing is known of, then what is asked for, then what is small."""
        fresh = [(file, False) for file in files if self._unread(file)]
        begun = [file for file in files if self._begun(file)]
        asked = [(file, True) for file in begun if file.path == whole and file.bytes <= WANTED_BYTES]
        small = [(file, True) for file in begun if file.path != whole and file.bytes <= _small(file.path)]
        return [*fresh, *asked, *small]

    def _unread(self, file: TraceLook) -> bool:
        if file.path not in self._seen:
            return True
        changed = self._seen[file.path] != (file.bytes, file.modified)
        return changed and self._clock() - self._looked_at[file.path] >= REST_SECONDS

    def _begun(self, file: TraceLook) -> bool:
        known = self._known.get(file.path)
        same = self._seen.get(file.path) == (file.bytes, file.modified)
        return known is not None and known.state == "begun" and same

    def _see_to(self, jobs: list[Job], whole: str | None) -> None:
        if whole is not None:
            self._asked_at[whole] = self._clock()
        large = self._large
        unwanted = large is not None and self._clock() - self._asked_at.get(large, 0.0) > UNWANTED_SECONDS
        if unwanted and self._task is not None:
            self._task.cancel()
        if jobs and (self._task is None or self._task.done()):
            if len(self._known) > MOST_KNOWN:
                self._known.clear()
                self._seen.clear()
                self._asked_at.clear()
            self._task = asyncio.create_task(self._look(jobs[:AT_ONCE]))

    async def _look(self, jobs: list[Job]) -> None:
        try:
            process = await self._start()
        except OSError as error:  # no process is to be had: asked again, with the next question
            log.warning("nothing looks into traces: %s", error)
            return
        assert process.stdin is not None
        try:
            process.stdin.write(msgspec.json.encode(jobs) + b"\n")
            for job in jobs:
                self._large = job[0].path if job[1] and job[0].bytes > _small(job[0].path) else None
                if not await self._take(process, job):
                    return
        finally:
            self._large = None
            process.stdin.close()
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _start(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={**os.environ, "PYTHONSAFEPATH": "1", "OMP_NUM_THREADS": "1"},
            cwd="/",  # neutral: nothing in the operator's directory may shadow ours
            limit=1 << 24,
        )

    async def _take(self, process: asyncio.subprocess.Process, job: Job) -> bool:
        """The answer about one file; False: there will be none any more."""
        assert process.stdout is not None
        file, whole = job
        try:
            line = await asyncio.wait_for(process.stdout.readline(), PATIENCE_SECONDS)
            found = msgspec.json.decode(line, type=TraceLook | None) if line else None
        except (TimeoutError, ValueError) as error:
            log.warning("looking into %s: %s", file.path, error or "no answer")
            line, found = b"", None
        if not line:
            found = replace(file, state="broken", reason="it can't be looked into: whatever reads it breaks off")
        elif found is not None and whole and (begun := self._known.get(file.path)) is not None:
            found = replace(found, text=found.text or begun.text)
        self._known[file.path] = found
        self._seen[file.path] = file.bytes, file.modified
        self._looked_at[file.path] = self._clock()
        return bool(line)


def _small(path: str) -> int:
    return SMALL_BYTES.get(os.path.splitext(path)[1], 0)
