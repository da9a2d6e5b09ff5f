"""The policy as it stood at a moment, folded from the records of what was done."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from console.feed.messages import UnconfirmedView, WorkloadView
from console.picturing.unconfirmed import base_of, confirmed, settled, to_confirm, with_workload
from engine.policy import PolicyState, WorkloadPolicy
from engine.records import ControlRecord, PolicyMode
from store.control_history import SCORE

EVERY: Final = 200
_PLAIN: Final = WorkloadPolicy()


class Said(NamedTuple):
    """The last decision about a workload."""

    ts: float
    action: str
    why: str | None
    acted: bool


class PolicyThen:
    """`state` is None until somebody has set a policy; `version` 0 until then."""

    def __init__(self, before: PolicyThen | None = None) -> None:
        self.state: PolicyState | None = None if before is None else before.state
        self._said: dict[str, Said] = {} if before is None else dict(before._said)

    def follow(self, record: ControlRecord, configured: PolicyMode) -> None:
        """What holds after `record`. `configured`: the engine's, until a record says which mode holds."""
        if record.workload is not None and record.action != SCORE:
            self._said[record.workload] = Said(record.ts, record.action, record.why, record.policy is not None)
        before = self.state or PolicyState(0, configured)
        after = self._after(before, record)
        if after is None:
            return
        version = record.policy if record.policy is not None else before.version
        self.state = replace(settled(before, after), version=version)

    def workloads(self, running: dict[str, int]) -> list[WorkloadView]:
        """Every workload of which anything holds or is known, by name. `running`: sequences of each."""
        state = self.state
        own = state.workloads if state is not None else {}
        return [self._view(name, own.get(name, _PLAIN), running) for name in sorted({*own, *self._said, *running})]

    def unconfirmed(self) -> UnconfirmedView | None:
        state = self.state
        if state is None or state.confirm_by is None or state.revert is None:
            return None
        base = state.revert
        return UnconfirmedView(
            confirm_by=state.confirm_by, reverts_to=base.policy, cap=base.cap, fallback=base.fallback
        )

    def _view(self, name: str, own: WorkloadPolicy, running: dict[str, int]) -> WorkloadView:
        mode, said = (self.state.policy if self.state is not None else None), self._said.get(name)
        acting = mode is not None and (mode.mode != "adaptive" or mode.act is not False)
        fallback = own.fallback and acting
        return WorkloadView(
            name=name,
            lane=own.lane,
            k=own.k if mode is not None and mode.mode == "adaptive" else None,
            fallback=fallback,
            since=said.ts if fallback and said is not None and said.action == "fallback" else None,
            running=running.get(name, 0),
            advice=said.why if said is not None and not acting and not said.acted else None,
            why=None if said is None else said.why,
        )

    @staticmethod
    def _after(before: PolicyState, record: ControlRecord) -> PolicyState | None:
        """`before` with what the record says holds since; None where that is nothing of the policy."""
        if record.action == "confirm":
            return confirmed(before)
        if record.policy is None and record.action not in ("mode", "cap", "fallback"):
            return None
        after = _put(before, record.workload, record.after or {})
        by = (record.numbers or {}).get("confirm_by")
        if after is None or not isinstance(by, int | float):
            return after
        return to_confirm(before, after, by) if base_of(after) != base_of(before) or before.revert is None else after


def _put(state: PolicyState, workload: str | None, after: dict[str, Any]) -> PolicyState | None:
    """A record of another making may hold anything: what can't be meant changes nothing."""
    try:
        if workload is not None:
            own = msgspec.convert(after, WorkloadPolicy)
            return replace(state, workloads=with_workload(state.workloads, workload, own))
        if "mode" in after:
            return replace(state, policy=msgspec.convert(after, PolicyMode))
        if isinstance(after.get("policy"), dict):
            return replace(msgspec.convert(after, PolicyState), version=state.version)
        if "cap" in after:
            return replace(state, cap=msgspec.convert(after["cap"], int | None))
        if "fallback" in after:
            return replace(state, fallback=msgspec.convert(after["fallback"], bool))
    except msgspec.ValidationError:
        return None
    return None


class PolicyHistory:
    """The policy at any moment: what held is kept every so many records, so that going anywhere follows few of them."""

    def __init__(self, controls: Sequence[ControlRecord], configured: PolicyMode) -> None:
        self._controls = controls
        self._configured = configured
        self._kept = [PolicyThen()]
        for start in range(0, len(controls) - EVERY + 1, EVERY):
            self._kept.append(self._followed(self._kept[-1], start, start + EVERY))

    def at(self, ts: float) -> PolicyThen:
        """What held at `ts`, Unix seconds."""
        stop = bisect_right(self._controls, ts, key=attrgetter("ts"))
        return self._followed(self._kept[stop // EVERY], stop // EVERY * EVERY, stop)

    def _followed(self, before: PolicyThen, start: int, stop: int) -> PolicyThen:
        found = PolicyThen(before)
        for record in self._controls[start:stop]:
            found.follow(record, self._configured)
        return found
