"""Has the webhook told what is new about the alerts. Beside everything else: a webhook that hangs holds up nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from console.feed.messages import AlertView
from console.notices.limiter import Limiter, Message
from console.notices.settings import From, wanted
from console.notices.watch import AlertWatch
from console.station.webhook import NotDelivered, Webhook
from console.station.webhook_body import Measured, measured_of, webhook_body
from store.judge.alerts import Alert

LOOK_SECONDS: Final = 1.0
START_SECONDS: Final = 5.0
"""Before the first look: what a station finds as it starts may be over at once."""
GATHER_SECONDS: Final = 2.0
MOST_REMEMBERED: Final = 1000


class Notifying:
    """On the event loop. One message is under way at a time; what comes meanwhile is in the next, as far as there is
    room, and else counted in it.

    Args:
        alerts: all of the present picture.
        judged: the judge's, with what speaks for them.
        tell: takes the kind and the text of what an operator should hear of.
    """

    def __init__(
        self,
        webhook: Webhook,
        station: str,
        alerts: Callable[[], Sequence[AlertView]],
        judged: Callable[[], Iterable[Alert]],
        tell: Callable[[str, str], None],
        *,
        level: From = "warn",
        a_minute: int = 6,
        gather: float = GATHER_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._webhook = webhook
        self._station = station
        self._alerts = alerts
        self._judged = judged
        self._tell = tell
        self._level = level
        self._clock = clock
        self._watch = AlertWatch()
        self._limiter = Limiter(a_minute, gather=gather)
        self._measured: dict[int, Measured] = {}
        """By number of an alert of the judge: when its end is told the judge no longer has it."""
        self._sending: asyncio.Task[None] | None = None
        self._failing = False
        self._untold = 0

    async def run(self) -> None:
        """For ever. What still fires when a station begins is told, in one message."""
        await asyncio.sleep(START_SECONDS)
        try:
            while True:
                self.look()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            if self._sending is not None:
                self._sending.cancel()

    def look(self) -> None:
        """Take in the present alerts, and send what is due."""
        notices = self._watch.see(self._alerts(), time.time())
        self._remember({one.alert.id for one in notices if one.alert is not None and one.what != "over"})
        self._limiter.add((one for one in notices if wanted(self._level, one.severity)), self._clock())
        if self._sending is not None:
            if not self._sending.done():
                return
            sent, self._sending = self._sending, None
            sent.result()  # a fault of ours is logged by whoever keeps this running
        if (message := self._limiter.due(self._clock())) is not None:
            self._sending = asyncio.create_task(self._send(message))

    async def _send(self, message: Message) -> None:
        try:
            await self._webhook.deliver(webhook_body(message, self._station, time.time(), self._figures))
        except NotDelivered as error:
            self._give_up(message)
            if not self._failing:
                self._failing = True
                self._tell(
                    "webhook",
                    f"{self._webhook.shown}: alerts can't be told there: {error}. Tried again with the next alert; "
                    "this is said once until it works",
                )
        except Exception:
            self._give_up(message)
            raise
        else:
            if self._failing:
                self._failing = False
                self._tell("webhook", f"{self._webhook.shown} works again; {self._untold} notices did not get there")
                self._untold = 0

    def _give_up(self, message: Message) -> None:
        self._limiter.give_up(message.notices, more=message.left_out, more_critical=message.left_out_critical)
        self._untold += len(message.notices)

    def _remember(self, numbers: set[int | None]) -> None:
        if not numbers:
            return
        self._measured |= {alert.id: measured_of(alert) for alert in self._judged() if alert.id in numbers}
        for number in list(self._measured)[:-MOST_REMEMBERED]:
            del self._measured[number]

    def _figures(self, alert: AlertView) -> Measured:
        return self._measured.get(alert.id, (None, None)) if alert.id is not None else (None, None)
