"""What an operator does about an alert: acknowledge, snooze, accept the new level."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from console.feed.protocol import LONGEST_SNOOZE_SECONDS, AlertAct
from console.feed.server import FeedError
from engine.records import ControlRecord
from store.judge.alerts import Alert
from store.judge.book import UnknownAlert
from store.judge.judge import Judge
from store.judge.reports import AlertReport, reported

if TYPE_CHECKING:
    from console.station.station import Station


class Refused(Exception):
    """The judge can't do that: says why."""


def acted(judge: Judge, params: AlertAct, actor: str, now: float) -> Alert:
    """Let the judge have the operator's word.

    Raises:
        UnknownAlert: there is no such alert.
        Refused: nothing is known of the level that should be accepted.
    """
    if params.act == "acknowledge":
        return judge.acknowledge(params.id, actor, now)
    if params.act == "snooze":
        if not 0 < params.seconds <= LONGEST_SNOOZE_SECONDS:
            raise Refused(f"alert {params.id}: it can be snoozed for up to {LONGEST_SNOOZE_SECONDS:.0f} s")
        return judge.snooze(params.id, now + params.seconds)
    if not judge.accept_alert(params.id, now):
        raise Refused(f"alert {params.id}: only the level of an acceptance alert can be accepted, once it is known")
    return judge.alert(params.id)


async def alert_act(station: Station, params: AlertAct, actor: str) -> AlertReport:
    """Raises FeedError where there is no such alert, or where its level can't be accepted."""
    now = time.time()
    answer = station.recorder.tell_judge(lambda judge: acted(judge, params, actor, now))
    try:
        alert = await asyncio.wrap_future(answer)
    except (UnknownAlert, Refused) as error:
        raise FeedError("bad_params", str(error)) from error
    station.recorder.put(ControlRecord(ts=now, actor=actor, action=f"alert_{params.act}", after={"alert": params.id}))
    assert isinstance(alert, Alert)
    return reported(alert)
