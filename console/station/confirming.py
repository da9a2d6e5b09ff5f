"""Takes back a change that was to be confirmed and wasn't: at its deadline, or at once when it makes serving slower."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from console.feed.messages import UnconfirmedView
from console.picturing.action_names import REVERT
from console.picturing.unconfirmed import reverted
from console.station.before_after import BeforeAfter
from console.station.engines import KnownEngine
from console.station.policy_answer import operators_part
from console.station.policy_changes import AUTOMATIC, PolicyChanges
from console.station.slowdown import Comparison
from engine.frames import Announcement, Frame
from engine.policy import PolicyState

LOOK_SECONDS: Final = 0.5
_LOANS: Final = frozenset({"rehearsal", "drill"})
"""Who changes the policy for moments, to try it: that it makes serving slower then is no reason to end the trial."""
ACTOR: Final = "station"


class Confirming:
    """On the event loop. `now`: the wall clock, Unix seconds."""

    def __init__(self, changes: PolicyChanges, now: Callable[[], float] = time.time) -> None:
        self._changes = changes
        self._now = now
        self._asked: float | None = None
        """Seconds that the present change was given, None where a station before this one gave them."""
        self._taken_back: tuple[str, int] | None = None
        """An engine that took the change back by itself, and the version that it says this of."""
        self._rates = BeforeAfter(changes.state.version, waits=changes.state.revert is not None)
        changes.listeners.append(self._changed)

    def take(self, known: KnownEngine, message: Frame | Announcement) -> None:
        """What an engine said, as it comes."""
        if isinstance(message, Frame):
            if message.step is not None:
                self._rates.take(message.engine, message.boot, message.step)
        elif message.reverted is not None:
            self._taken_back = message.record.engine, message.policy

    async def run(self) -> None:
        """For ever."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Take an unconfirmed change back if its time is over or it makes serving slower."""
        state = self._changes.state
        if state.revert is None:
            return
        late = self._late(state)
        if late is not None:
            await self._revert(state, late, None)
            return
        found = None if self._lent() else self._rates.slower()
        if found is not None:
            await self._revert(state, _fell(found), found._asdict())

    def view(self) -> UnconfirmedView | None:
        state = self._changes.state
        base = state.revert
        if base is None or state.confirm_by is None:
            return None
        return UnconfirmedView(
            confirm_by=state.confirm_by, reverts_to=base.policy, cap=base.cap, fallback=base.fallback
        )

    def _lent(self) -> bool:
        """Whether a loan made what waits. What adaptive does under it by itself is part of the trial."""
        made = [done.actor for done in self._changes.recent if done.actor not in AUTOMATIC]
        return bool(made) and made[-1] in _LOANS

    async def _revert(self, state: PolicyState, why: str, numbers: dict[str, Any] | None) -> None:
        await self._changes.make(
            reverted(state),
            actor=ACTOR,
            action=REVERT,
            why=why,
            numbers=numbers,
            unchoose=not self._changes.base_chosen,
        )

    def _late(self, state: PolicyState) -> str | None:
        """Why it is too late to confirm; None while it isn't."""
        engine, version = self._taken_back or ("", -1)
        alone = version == state.version
        over = state.confirm_by is not None and self._now() >= state.confirm_by
        if not over and not alone:
            return None
        if self._asked is not None:
            text = f"not confirmed within {_span(self._asked)}"
        else:
            text = f"not confirmed by {_moment(state.confirm_by or self._now())}"
        return f"{text}; {engine} had taken it back by itself" if alone else text

    def _changed(self, before: PolicyState, after: PolicyState) -> None:
        if after.confirm_by != before.confirm_by:
            self._asked = None if after.confirm_by is None else after.confirm_by - self._now()
        if after.revert is None:
            if before.revert is not None or operators_part(before) != operators_part(after):
                self._rates.begin(after.version)
        elif before.revert is None:
            self._rates.wait(after.version)
        elif _other_drafts(before, after):
            self._rates.wait_anew(after.version)


def _other_drafts(before: PolicyState, after: PolicyState) -> bool:
    """Whether the operator's part of it differs, but for the deadline."""
    return operators_part(before)[:-1] != operators_part(after)[:-1]


def _fell(found: Comparison) -> str:
    fall, least, most = (100 * (1 - ratio) for ratio in (found.ratio, found.high, found.low))
    return f"tokens/s fell by {fall:.0f} % ({least:.0f}–{most:.0f} %) at batch {found.batch:.0f}"


def _span(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 60} min" if whole >= 60 and whole % 60 == 0 else f"{whole} s"


def _moment(ts: float) -> str:
    return datetime.fromtimestamp(ts).astimezone().strftime("%H:%M:%S")
