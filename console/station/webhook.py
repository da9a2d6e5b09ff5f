"""Posts one body to the webhook, again after growing pauses where that may help. Nothing it says holds the address."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import httpx

from console.station.webhook_address import WebhookAddress

PAUSES: Final = (1.0, 5.0, 20.0, 60.0)
"""Seconds before each further try."""
TRY_SECONDS: Final = 10.0
"""For one try, whatever the other end does."""

_AGAIN: Final = frozenset({408, 425, 429})


class NotDelivered(Exception):
    """Says why, in words. `again`: another try may help."""

    def __init__(self, why: str, *, again: bool) -> None:
        super().__init__(why)
        self.again = again


class Webhook:
    """One at a time, on the event loop. `shown`: what may be seen of the address."""

    def __init__(
        self, address: WebhookAddress, *, pauses: Sequence[float] = PAUSES, try_seconds: float = TRY_SECONDS
    ) -> None:
        self.shown = address.shown
        self._address = address
        self._pauses = pauses
        self._try_seconds = try_seconds

    async def deliver(self, body: bytes) -> None:
        """Raises NotDelivered: after the last try, or where no other would help."""
        for pause in (*self._pauses, None):
            try:
                return await self._try(body)
            except NotDelivered as error:
                if pause is None or not error.again:
                    raise
            await asyncio.sleep(pause)

    async def _try(self, body: bytes) -> None:
        try:
            async with asyncio.timeout(self._try_seconds):
                status = await self._post(body)
        except TimeoutError as error:
            raise NotDelivered(f"no answer within {self._try_seconds:g} s", again=True) from error
        except httpx.TransportError as error:
            raise NotDelivered(f"it can't be reached ({type(error).__name__})", again=True) from error
        except Exception as error:  # whatever it says may hold the address
            raise NotDelivered(f"it can't be asked ({type(error).__name__})", again=False) from error
        if 300 <= status < 400:
            raise NotDelivered(f"it answers {status}, a redirect: set the address that it leads to", again=False)
        if not 200 <= status < 300:
            raise NotDelivered(f"it answers {status}", again=status >= 500 or status in _AGAIN)

    async def _post(self, body: bytes) -> int:
        """The status; the answer's body is not waited for."""
        headers = {"Content-Type": "application/json", "User-Agent": "specdeck"}
        client = await asyncio.to_thread(self._client)  # certificates are read from disk
        async with client, client.stream("POST", self._address.url, content=body, headers=headers) as answer:
            return answer.status_code

    def _client(self) -> httpx.AsyncClient:
        """One for each try: a kept connection would fail once after every restart of the other end."""
        return httpx.AsyncClient(
            auth=self._address.auth,
            timeout=None,  # the whole try has its time
            follow_redirects=False,
            trust_env=not self._address.is_near,
        )
