"""What of a policy lapses by itself, when the station that sent it no longer speaks.

An unconfirmed raise reverts at its deadline. After a minute without a station adaptive's own K drops out, since nobody
judges it any more; mode, cap, lanes, fallbacks stay, and all is back when a station speaks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from engine.policy.state import PolicyState

SILENCE_SECONDS: Final = 60.0
"""A station that has sent nothing for so long is gone: it sends the policy every second."""


class Standing(NamedTuple):
    """The policy that holds, under the version of the state that was sent."""

    state: PolicyState
    reverted: bool
    """Its deadline passed unconfirmed."""
    orphaned: bool
    """No station speaks: adaptive's own K is left out."""


def standing(state: PolicyState, now: float, silence: float) -> Standing:
    """What stands of `state` at `now` (Unix seconds), `silence` seconds after a station last spoke."""
    reverted = state.confirm_by is not None and state.revert is not None and now >= state.confirm_by
    if reverted:
        before = state.revert
        assert before is not None
        state = PolicyState(state.version, before.policy, before.cap, before.fallback, before.workloads)
    orphaned = silence >= SILENCE_SECONDS
    if orphaned:
        kept = {name: msgspec.structs.replace(own, k=None) for name, own in state.workloads.items()}
        state = msgspec.structs.replace(state, workloads=kept)
    return Standing(state, reverted, orphaned)


class LapsingPolicy:
    """The last state heard, and what stands of it. Used by one thread; its facts may be read from any.

    Args:
        state: what holds before a station speaks.
        apply: takes the state that stands, whenever it becomes another.
        now: the wall clock, Unix seconds.
        steady: a clock that nobody sets, seconds.
    """

    def __init__(
        self,
        state: PolicyState,
        apply: Callable[[PolicyState], None],
        now: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sent = self._applied = state
        self._apply = apply
        self._now = now
        self._steady = steady
        self._heard: float | None = None
        self._said = (False, False)
        self.reverted: float | None = None
        """Since when an unconfirmed raise is taken back, Unix seconds."""
        self.orphaned: float | None = None
        """Since when adaptive's own K is left out because no station speaks, Unix seconds."""

    def hear(self, state: PolicyState) -> None:
        """A station has sent `state` (validated), the same as before or another."""
        self._sent = state
        self._heard = self._steady()
        self._settle()

    def look(self) -> bool:
        """See whether time has taken anything back; to be called twice a second.

        Returns:
            Whether something lapsed or came back since the last look.
        """
        self._settle()
        said, self._said = self._said, (self.reverted is not None, self.orphaned is not None)
        return said != self._said

    def _settle(self) -> None:
        now = self._now()
        silence = 0.0 if self._heard is None else self._steady() - self._heard
        stands = standing(self._sent, now, silence)
        self.reverted = self._sent.confirm_by if stands.reverted else None
        self.orphaned = None if not stands.orphaned else now if self.orphaned is None else self.orphaned
        if stands.state != self._applied:
            self._apply(stands.state)
            self._applied = stands.state
