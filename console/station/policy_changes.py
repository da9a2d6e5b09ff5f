"""Every change of the policy goes through here, whoever makes it: checked, kept, published, recorded, told."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from console.picturing.policy_words import told
from console.picturing.unconfirmed import base_of, settled
from console.station.policy import PolicyBook, PolicyPublisher
from engine.policy import PolicyState, WorkloadPolicy, policy_diff
from engine.records import ControlRecord

Record = Callable[[ControlRecord], None]
Tell = Callable[[str, str], None]


AUTOMATIC: Final = frozenset({"adaptive", "station"})
"""Actors whose changes do not make the policy that of engines which somebody else started."""

CHOSE: Final = "chose"
"""Among the numbers of the change that first chose a mode: until then engines of others went by their own."""

RECENT: Final = 512
"""Records held in memory: the way back must not depend on a disk that has space."""


class Changed(NamedTuple):
    """One thing that a change changed, as a control record has it."""

    action: str
    workload: str | None
    before: dict[str, Any]
    after: dict[str, Any]


class PolicyChanges:
    """On the event loop. `listeners` hear of every change, after it was published."""

    def __init__(self, book: PolicyBook, publisher: PolicyPublisher, record: Record, tell: Tell) -> None:
        self._book = book
        self._publisher = publisher
        self._record = record
        self._tell = tell
        self.listeners: list[Callable[[PolicyState, PolicyState], None]] = []
        self.recent: deque[ControlRecord] = deque(maxlen=RECENT)
        """What this station recorded of its changes, oldest first."""

    @property
    def state(self) -> PolicyState:
        return self._book.state

    @property
    def base_chosen(self) -> bool:
        """Whether a mode was chosen before the change that waits to be confirmed."""
        return self._book.base_chosen

    async def make(
        self,
        wanted: PolicyState,
        *,
        actor: str,
        action: str | None = None,
        why: str | None = None,
        numbers: dict[str, Any] | None = None,
        unchoose: bool = False,
    ) -> PolicyState:
        """Make `wanted` the policy under the next version; the state that holds since.

        What it says of workloads also becomes what an earlier change falls back to that still waits to be confirmed.

        Args:
            action: the name of what is done, where the changed field's own says too little.
            numbers: what it was decided by.
            unchoose: it takes back that a mode was chosen at all: engines of others go by their own again.

        Raises:
            PolicyError: no scheduler could execute it; nothing has changed.
        """
        before = self._book.state
        only_confirms = base_of(before) == base_of(wanted) and before.confirm_by != wanted.confirm_by
        chosen, was_chosen = actor not in AUTOMATIC and not only_confirms, self._book.chosen
        after = self._book.change(settled(before, wanted), chosen=chosen, unchoose=unchoose)
        if after.confirm_by is not None and after.confirm_by != before.confirm_by:
            numbers = {**(numbers or {}), "confirm_by": after.confirm_by}
        if self._book.chosen and not was_chosen:
            numbers = {**(numbers or {}), CHOSE: True}
        now = time.time()
        for one in changed(before, after):
            control = ControlRecord(
                now, actor, action or one.action, one.workload, one.before, one.after, after.version, why, numbers
            )
            self.recent.append(control)
            self._record(control)
        await self._publisher.send_all()
        self._tell("control", f"{actor}: {told(before, after)}{f' ({why})' if why else ''}, policy {after.version}")
        for listener in self.listeners:
            listener(before, after)
        return after


def changed(before: PolicyState, after: PolicyState) -> Iterator[Changed]:
    """What differs: the mode by itself (as in the trace format), other fields under their name, and each workload.
    Where nothing does: until when it is to be confirmed, else the mode, which was then chosen anew."""
    found = [*_fields(before, after), *_workloads(before, after)]
    if not found:
        dates = before.confirm_by, after.confirm_by
        if dates[0] != dates[1]:
            found = [Changed("confirm_by", None, {"confirm_by": dates[0]}, {"confirm_by": dates[1]})]
        else:
            found = [Changed("mode", None, *_plain(before.policy, after.policy))]
    yield from found


def _fields(before: PolicyState, after: PolicyState) -> Iterator[Changed]:
    diff = policy_diff(before, after)
    if "policy" in diff:
        yield Changed("mode", None, *_plain(*diff["policy"]))
    for name in ("cap", "fallback"):
        if name in diff:
            old, new = diff[name]
            yield Changed(name, None, {name: old}, {name: new})


def _workloads(before: PolicyState, after: PolicyState) -> Iterator[Changed]:
    for name in sorted({*before.workloads, *after.workloads}):
        old, new = (state.workloads.get(name, _PLAIN) for state in (before, after))
        if old != new:
            yield Changed(_action(old, new), name, *_plain(old, new))


def _plain(old: msgspec.Struct, new: msgspec.Struct) -> tuple[dict[str, Any], dict[str, Any]]:
    return msgspec.to_builtins(old), msgspec.to_builtins(new)


def _action(old: WorkloadPolicy, new: WorkloadPolicy) -> str:
    if old.lane != new.lane:
        return "lane"
    if old.fallback != new.fallback:
        return "fallback" if new.fallback else "recover"
    return "k"


_PLAIN: Final = WorkloadPolicy()
