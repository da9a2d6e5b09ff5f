"""When the balance is asked for again, and what the station said last."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from console.app.picture import Picture
from console.feed.client import Feed, FeedError
from console.feed.protocol import BalanceParams
from store.balance.records import Balance

ASK_SECONDS: Final = 2.0
"""From one question to the next, …"""
SHARE_OF_TIME: Final = 20.0
"""… and so many times as long as the last answer took: a long window of a busy engine is millions of rows."""
PATIENCE_SECONDS: Final = 30.0
LIVE_ROWS: Final = 20_000_000
"""Decode rows that are read for an answer at most."""
TOO_OLD: Final = "this station is of a version that can't tell; update it and start it anew"


class BalanceReader:
    """One for the line and the page, so that both together don't ask more often."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._next = 0.0
        self._open = False
        self._asked: tuple[str, float, float] | None = None
        self.answer: Balance | None = None
        self.trouble = ""
        """Why there is no newer answer."""

    @property
    def answered(self) -> bool:
        return self.answer is not None or bool(self.trouble)

    def due(self, picture: Picture, window: float) -> BalanceParams | None:
        """What to ask now, if anything; `read` is to follow. `window`: seconds back from the time that is shown."""
        snapshot = picture.snapshot
        if self._open or snapshot is None or picture.link.state != "connected" or picture.paused_since is not None:
            return None
        about = snapshot.station, snapshot.ts, window
        if self._monotonic() < self._next or (picture.replaying and about == self._asked):
            return None
        self._open, self._asked = True, about
        return BalanceParams(window=window, at=snapshot.ts, most_rows=LIVE_ROWS)

    async def read(self, feed: Feed, params: BalanceParams) -> None:
        began = self._monotonic()
        try:
            self.answer, self.trouble = await feed.request("balance", params, Balance, PATIENCE_SECONDS), ""
        except FeedError as error:
            self.trouble = TOO_OLD if error.code == "unknown_method" else error.message
        finally:
            now = self._monotonic()
            self._next = began + max(ASK_SECONDS, SHARE_OF_TIME * (now - began))
            self._open = False
