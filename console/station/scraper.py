"""Observes a vLLM that somebody else runs: reads its /metrics by the clock and hands on what was counted in between.

A look that fails loses nothing: counters go on, and the next look tells what was counted meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import httpx

from console.station.engines import LOST_AFTER_SECONDS
from console.station.events import Condition
from console.station.recorder import Note
from store.imports.errors import ImportFailed
from store.imports.observations import CounterDifferences, CounterSample, Observation
from store.imports.prometheus import parse_exposition

SCRAPE_SECONDS: Final = 10.0
TIMEOUT_SECONDS: Final = 5.0
"""For the whole answer, however it drips."""
MAX_BYTES: Final = 16 << 20
WINDOW_SECONDS: Final = 300.0
"""What the live figures are of."""
FORGET_AFTER_SECONDS: Final = 600.0
"""An engine that good answers no longer show is forgotten then."""
MAX_ENGINES: Final = 64
NAME_LIMIT: Final = 512
"""Characters in the name of an engine or model: both become labels and keys."""
NOTES_LIMIT: Final = 200
"""Notes of one station that are stored; a server that restarts without end must not fill the reports."""

LIMITS_OF_VIEW: Final = "observed by its /metrics: pooled counters only; no executed K, no buckets, no per-step α"


class BadSetting(ValueError):
    """What an operator gave can't be meant: says why. Never holds an address: there may be a password in it."""


class ScrapeFailed(Exception):
    """One look brought nothing: place and reason in one line."""


class Address(NamedTuple):
    """Where to ask. `shown` is what may be seen and stored: without credentials and query."""

    url: httpx.URL
    auth: httpx.BasicAuth | None
    shown: str


class Failing(NamedTuple):
    """The present stretch of failed looks: since when, and why the last one failed."""

    since: float
    reason: str


class Seen(NamedTuple):
    """An engine as the last good look showed it."""

    sample: CounterSample
    restarts: int


def read_address(text: str) -> Address:
    """The address to scrape; `/metrics` where no path is given.

    Raises:
        BadSetting: it is none that can be asked over HTTP.
    """
    example = "give one like http://127.0.0.1:8000/metrics"
    try:
        given = httpx.URL(text.strip())
        url = given.copy_with(username=None, password=None, fragment=None)
    except (httpx.InvalidURL, ValueError) as error:
        escaped = "/ ? # @ and : in a user or password are written %2F %3F %23 %40 %3A"
        raise BadSetting(f"the address can't be read: {example}; {escaped}") from error
    if url.scheme not in ("http", "https"):
        raise BadSetting(f"the address must begin with http:// or https://: {example}")
    if not url.raw_host:
        raise BadSetting(f"the address names no host: {example}")
    if url.port is not None and not 0 < url.port < 65536:
        raise BadSetting(f"the address has a port that can't be: {example}")
    auth = httpx.BasicAuth(given.username, given.password) if given.userinfo else None
    if url.path == "/":
        url = url.copy_with(path="/metrics")
    return Address(url, auth, str(url.copy_with(query=None)))


def scrape_seconds() -> float:
    """Seconds from look to look: SPECDECK_SCRAPE_SECONDS, else `SCRAPE_SECONDS`.

    Raises:
        BadSetting: not a number from 0.1 to 60.
    """
    text = os.environ.get("SPECDECK_SCRAPE_SECONDS")
    if not text:
        return SCRAPE_SECONDS
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 60:
        raise BadSetting(f"SPECDECK_SCRAPE_SECONDS={text[:20]!r}: give seconds from 0.1 to 60")
    return seconds


class Scraper:
    """One address, looked at for ever, on the event loop; what takes long is done beside it.

    Args:
        put: takes what is to be stored. Must not block.
        tell: takes the kind and the text of what an operator should hear of.
        every: seconds from look to look.
    """

    def __init__(
        self,
        address: Address,
        put: Callable[[Observation | Note], None],
        tell: Callable[[str, str], None],
        every: float = SCRAPE_SECONDS,
    ) -> None:
        self.shown = address.shown
        self.failing: Failing | None = None
        self.engines: dict[str, Seen] = {}
        self._address = address
        self._put = put
        self._tell = tell
        self._every = every
        self._differences = CounterDifferences()
        self._recent: deque[Observation] = deque()
        self._notes = 0

    async def run(self) -> None:
        """For ever."""
        async with self.client() as client:
            due = time.monotonic()
            while True:
                await self.look(client)
                due = max(due + self._every, time.monotonic())
                await asyncio.sleep(due - time.monotonic())

    def client(self) -> httpx.AsyncClient:
        """A connection for each look: one kept open would fail once after every restart of the server. No proxies: what
        is observed is near, and an address on this machine must not go through one."""
        secure = self._address.url.scheme == "https"
        return httpx.AsyncClient(
            auth=self._address.auth,
            headers={"Accept": "text/plain", "Accept-Encoding": "identity", "User-Agent": "specdeck"},
            limits=httpx.Limits(max_keepalive_connections=0),
            timeout=None,
            trust_env=False,
            verify=httpx.create_ssl_context() if secure else False,  # heeds SSL_CERT_FILE
        )

    async def look(self, client: httpx.AsyncClient) -> None:
        """Ask once. A failure is kept and told, not raised."""
        try:
            samples = await self._samples(client)
        except ScrapeFailed as error:
            self._failed(str(error), time.time())
        else:
            self._took(samples)

    def recent(self, now: float) -> list[Observation]:
        """What was counted in stretches that ended in the last `WINDOW_SECONDS`."""
        return [observation for observation in self._recent if observation.ts > now - WINDOW_SECONDS]

    def lost(self, seen: Seen, now: float) -> bool:
        """Whether nothing has been heard of an engine for more than two looks."""
        return now - seen.sample.ts > max(LOST_AFTER_SECONDS, 2.5 * self._every)

    def trouble(self, seen: Seen, now: float) -> str | None:
        """Why an engine can't be seen now, if it can't."""
        if self.failing is not None:
            return self.failing.reason
        return f"no longer in what {self.shown} answers" if self.lost(seen, now) else None

    def conditions(self, now: float) -> list[Condition]:
        """What is wrong now. One look that failed is a warning; it is grave once no engine was seen for longer."""
        if self.failing is not None:
            grave = all(self.lost(seen, now) for seen in self.engines.values())
            return [Condition("scrape", "engine_down", "critical" if grave else "warn", self.failing.reason)]
        return [
            Condition(f"down {engine}", "engine_down", "critical", f"engine {engine}: {self.trouble(seen, now)}")
            for engine, seen in self.engines.items()
            if self.lost(seen, now)
        ]

    async def _samples(self, client: httpx.AsyncClient) -> Sequence[CounterSample]:
        body = await self._fetch(client)
        try:
            samples = await asyncio.to_thread(parse_exposition, body, self.shown, time.time())
        except ImportFailed as error:
            raise ScrapeFailed(str(error)) from error
        engines = len(self.engines.keys() | {sample.engine for sample in samples})
        if engines > MAX_ENGINES:
            raise ScrapeFailed(f"{self.shown}: {engines} engines: at most {MAX_ENGINES} of one server are observed")
        longest = max(max(len(sample.engine), len(sample.model or "")) for sample in samples)
        if longest > NAME_LIMIT:
            raise ScrapeFailed(f"{self.shown}: an engine or model with a name of {longest} characters")
        return samples

    async def _fetch(self, client: httpx.AsyncClient) -> bytes:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS), client.stream("GET", self._address.url) as response:
                if response.status_code != httpx.codes.OK:
                    raise ScrapeFailed(f"{self.shown}: {_refusal(response.status_code)}")
                body = bytearray()
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > MAX_BYTES:
                        raise ScrapeFailed(f"{self.shown}: the answer is larger than {MAX_BYTES:,} bytes")
                return bytes(body)
        except TimeoutError as error:
            raise ScrapeFailed(f"{self.shown}: no whole answer within {TIMEOUT_SECONDS:g} s") from error
        except httpx.HTTPError as error:
            raise ScrapeFailed(f"{self.shown}: {_reason(error)}") from error

    def _failed(self, reason: str, now: float) -> None:
        if self.failing is None:
            self._tell("scrape", f"{reason}; tried again every {self._every:g} s")
        self.failing = Failing(self.failing.since if self.failing is not None else now, reason)

    def _took(self, samples: Sequence[CounterSample]) -> None:
        now = samples[0].ts
        if self.failing is not None:
            self._tell("scrape", f"{self.shown} answers again, after {max(0.0, now - self.failing.since):.0f} s")
            self.failing = None
        for sample in samples:
            if sample.engine not in self.engines:
                self._meet(sample)
        found = self._differences.take(samples)
        for note in found.notes:
            self._note(note)
        for observation in found.observations:
            self._put(observation)
        self._recent.extend(found.observations)
        while self._recent and self._recent[0].ts <= now - WINDOW_SECONDS:
            self._recent.popleft()
        self._remember(samples, {observation.engine for observation in found.observations if observation.restarted})

    def _remember(self, samples: Sequence[CounterSample], restarted: set[str]) -> None:
        for sample in samples:
            before = self.engines.get(sample.engine)
            restarts = (before.restarts if before is not None else 0) + (sample.engine in restarted)
            self.engines[sample.engine] = Seen(sample, restarts)
        for engine, seen in list(self.engines.items()):
            if samples[0].ts - seen.sample.ts > FORGET_AFTER_SECONDS:
                del self.engines[engine]
                self._tell("scrape", f"{engine} is no longer in what {self.shown} answers: forgotten")

    def _meet(self, sample: CounterSample) -> None:
        self._tell("scrape", f"{sample.engine} at {self.shown} is {LIMITS_OF_VIEW}")
        if not sample.speculative:
            self._note(f"{sample.engine} shows no draft counters: it runs without speculation")

    def _note(self, text: str) -> None:
        self._tell("scrape", text)
        self._notes += 1
        if self._notes <= NOTES_LIMIT:
            self._put(Note(text))
        elif self._notes == NOTES_LIMIT + 1:
            self._put(Note(f"what else there is to note of {self.shown} is in the station's log only"))


def _refusal(status: int) -> str:
    """An answer that is no 200, with what to do about it."""
    answer = f"answers {status} {httpx.codes.get_reason_phrase(status)}".rstrip()
    if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        return f"{answer}: put user and password into the address, as in http://user:password@host/metrics"
    if httpx.codes.is_redirect(status):
        return f"{answer}: give the address that it redirects to"
    return f"{answer}: give the address under which vLLM serves its /metrics"


def _reason(error: BaseException) -> str:
    """What the system said, from under the layers that wrap it; else the error's own first line."""
    said = None
    layer: BaseException | None = error
    while layer is not None:
        if isinstance(layer, OSError) and layer.strerror:
            own_text = isinstance(layer, ssl.SSLError | socket.gaierror) or not layer.errno
            said = layer.strerror if own_text else os.strerror(layer.errno or 0)
        layer = layer.exceptions[-1] if isinstance(layer, BaseExceptionGroup) else layer.__cause__ or layer.__context__
    text = said or next(iter(str(error).splitlines()), "") or type(error).__name__
    return f"can't be read: {text[:200]}"
