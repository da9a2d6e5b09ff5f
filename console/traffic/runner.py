"""Sends a plan: each request at its moment whatever became of the others, within a limit, and not at a dead server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from console.traffic.client import Outcome, Server
from console.traffic.plan import Planned, Profile, make_plan
from console.traffic.progress import Progress, Result, Tally
from console.traffic.speed import ROUNDS, probes, scale_of

MAX_IN_FLIGHT: Final = 14
"""Most requests at once at scale 1: beyond it a due request is shed and counted; a slow engine is not buried."""
PROGRESS_SECONDS: Final = 1.0
_DRAIN_SECONDS: Final = 60.0
_LONGEST_PAUSE: Final = 30.0


class ServerUnreachable(ConnectionError):
    """No server answered in time; says what was tried and what it said."""


async def run(
    profile: Profile,
    base_url: str,
    *,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    seed: int = 7,
    scale: float | None = None,
    model: str | None = None,
    api_key: str | None = None,
    stop: asyncio.Event | None = None,
    patience_seconds: float | None = 60.0,
    tag_prefix: str = "",
) -> Result:
    """Send a profile's traffic to `base_url` until it is over or `stop` is set.

    `scale` multiplies the profile's rates; None measures the server for a few seconds and fits them to it. Before that
    it waits up to `patience_seconds` for a server (None: for ever). Errors are counted, never raised. `tag_prefix` goes
    before the workloads' names in the tags that the server sees.

    Raises:
        ServerUnreachable: no usable server within `patience_seconds`.
    """
    server = Server(base_url, api_key)
    run = _Run(profile, server, on_progress, stop or asyncio.Event(), tag_prefix)
    try:
        return await run.whole(base_url, seed, scale, model, patience_seconds)
    finally:
        await server.close()


class _Run:
    """One run from the first look for a server to the last answer."""

    def __init__(
        self,
        profile: Profile,
        server: Server,
        on_progress: Callable[[Progress], None],
        stop: asyncio.Event,
        tag_prefix: str,
    ) -> None:
        self._profile = profile
        self._tag_prefix = tag_prefix
        self._server = server
        self._on_progress = on_progress
        self._stop = stop
        self._tally = Tally()
        self._tasks: set[asyncio.Task[None]] = set()
        self._pause = _Pause()
        self._clock = asyncio.get_running_loop().time
        self._began: float | None = None
        self._phase = "waiting for a server"
        self._limit = MAX_IN_FLIGHT

    async def whole(
        self, base_url: str, seed: int, scale: float | None, model: str | None, patience: float | None
    ) -> Result:
        started = self._clock()
        reporting = asyncio.create_task(self._report())
        try:
            model = await self._find_model(base_url, model, patience)
            if model is not None and scale is None:
                self._phase = "measuring"
                scale = await self._measured_scale(model)
            scale = 1.0 if scale is None else scale
            if model is not None and not self._stop.is_set():
                self._limit = max(MAX_IN_FLIGHT, round(MAX_IN_FLIGHT * scale))
                await self._send_plan(make_plan(self._profile, seed, scale), model)
                await self._drain()
        finally:
            await self._cancel_all()
            reporting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reporting  # an error of the callback comes out here
        self._phase = "over"
        self._on_progress(self._progress(0.0))
        return Result(
            profile=self._profile.name,
            seed=seed,
            scale=scale,
            seconds=self._clock() - started,
            interrupted=self._stop.is_set(),
            sent=self._tally.sent,
            done=self._tally.done,
            errors=dict(self._tally.errors),
            shed=dict(self._tally.shed),
            workloads=self._tally.workload_results(),
        )

    async def _find_model(self, base_url: str, model: str | None, patience: float | None) -> str | None:
        """The model to ask for, once the server answers; None when stopped before."""
        began = self._clock()
        while not self._stop.is_set():
            found = await self._server.first_model()
            if isinstance(found, str):
                self._pause.over()
                return model or found
            self._pause.server_is_down(found, self._clock(), self._clock())
            given_up = patience is not None and self._clock() - began > patience
            if given_up or not found.server_down:
                raise ServerUnreachable(f"{base_url}: {found.error}: {found.detail}")
            await self._sleep(min(2.0, self._pause.left(self._clock())))
        return None

    async def _measured_scale(self, model: str) -> float:
        """The server's speed in multiples of the reference."""
        best = 0.0
        for index in range(ROUNDS):
            if self._stop.is_set():
                break
            before, began = self._tally.output_tokens, self._clock()
            for probe in probes(index, began):
                self._start(probe, began, model)
            await self._wait_for(set(self._tasks))
            best = max(best, (self._tally.output_tokens - before) / (self._clock() - began))
        return scale_of(best)

    async def _send_plan(self, plan: list[Planned], model: str) -> None:
        self._began = began = self._clock()
        for request in plan:
            due = began + request.at
            self._phase = self._profile.phase_at(self._clock() - began)
            await self._sleep(due - self._clock())
            if self._stop.is_set():
                return
            self._phase = self._profile.phase_at(request.at)
            if self._pause.left(self._clock()) > 0:
                self._tally.shed["server down"] += 1
            elif self._tally.in_flight >= self._limit:
                self._tally.shed["in-flight limit"] += 1
            else:
                self._pause.try_once(self._clock())
                self._start(request, due, model)
        await self._sleep(began + self._profile.seconds - self._clock())

    def _start(self, request: Planned, due: float, model: str) -> None:
        self._tally.sent += 1
        task = asyncio.create_task(self._send(request, due, model))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, request: Planned, due: float, model: str) -> None:
        sent = self._clock()
        tagged = replace(request, workload=f"{self._tag_prefix}{request.workload}")
        outcome = await self._server.send(tagged, model)
        now = self._clock()
        self._tally.ended(request.workload, outcome, now - due)
        if outcome.server_down:
            self._pause.server_is_down(outcome, sent, now)
        elif outcome.error is None:
            self._pause.over()

    async def _drain(self) -> None:
        self._phase = "ending"
        await self._wait_for(set(self._tasks), _DRAIN_SECONDS)

    async def _wait_for(self, tasks: set[asyncio.Task[None]], seconds: float | None = None) -> None:
        """Until all are done, `seconds` are over, or the run is stopped."""
        if not tasks:
            return
        done = asyncio.create_task(asyncio.wait(tasks, timeout=seconds))
        stopped = asyncio.create_task(self._stop.wait())
        await asyncio.wait({done, stopped}, return_when=asyncio.FIRST_COMPLETED)
        done.cancel()
        stopped.cancel()

    async def _cancel_all(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if tasks:
            self._tally.errors["cancelled"] += len(tasks)

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but wake when the run is stopped."""
        if seconds > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), seconds)

    async def _report(self) -> None:
        before = self._tally.output_tokens
        while True:
            rate = (self._tally.output_tokens - before) / PROGRESS_SECONDS
            before = self._tally.output_tokens
            self._on_progress(self._progress(rate))
            await asyncio.sleep(PROGRESS_SECONDS)

    def _progress(self, tokens_per_second: float) -> Progress:
        now = self._clock()
        elapsed = 0.0 if self._began is None else now - self._began
        return Progress(
            phase=self._phase,
            seconds_left=max(0.0, self._profile.seconds - elapsed),
            sent=self._tally.sent,
            done=self._tally.done,
            in_flight=self._tally.in_flight,
            errors=dict(self._tally.errors),
            shed=dict(self._tally.shed),
            tokens_per_second=tokens_per_second,
            note=self._pause.note(now),
        )


class _Pause:
    """Holds requests back while the server is down: 1, 2, 4 … s, or as long as it asks; then one may try."""

    def __init__(self) -> None:
        self._since = 0.0
        self._until = 0.0
        self._seconds = 0.0
        self._why = ""

    def server_is_down(self, outcome: Outcome, sent: float, now: float) -> None:
        """A request sent at `sent` met no server."""
        if sent < self._since:
            return  # sent before this pause began: it says nothing new
        self._seconds = min(_LONGEST_PAUSE, max(1.0, 2 * self._seconds))
        self._since = now
        self._until = now + max(self._seconds, min(_LONGEST_PAUSE, outcome.retry_after or 0.0))
        self._why = f"{outcome.error}: {outcome.detail}"

    def try_once(self, now: float) -> None:
        """A request goes out after a pause: the next ones wait a second to see what becomes of it."""
        if self._seconds:
            self._until = now + 1.0

    def over(self) -> None:
        self._until = self._seconds = 0.0
        self._why = ""

    def left(self, now: float) -> float:
        return max(0.0, self._until - now)

    def note(self, now: float) -> str:
        if not self._why:
            return ""
        wait = self.left(now)
        return f"server down ({self._why}); trying again " + (f"in {wait:.0f} s" if wait else "with the next request")
