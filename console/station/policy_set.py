"""Sets the policy as a console asks for it: checked, published, recorded."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from console.feed.protocol import PolicyResult, PolicySet
from console.feed.server import FeedError
from console.picturing.unconfirmed import to_confirm, with_workload
from console.station.policy_answer import check_seen, controlled, result
from engine.hints import parse_workload
from engine.policy import PolicyError, PolicyState, WorkloadPolicy
from store.buckets import OTHER, UNATTRIBUTED

if TYPE_CHECKING:
    from console.station.station import Station

LONGEST_CONFIRM_SECONDS: Final = 86400.0
MOST_WORKLOADS: Final = 4096
"""As many as a gateway takes."""


async def policy_set(station: Station, params: PolicySet, actor: str) -> PolicyResult:
    """Make another policy the station's and send it out. Raises FeedError where that can't be."""
    control = controlled(station)
    check_seen(control.book, params.expect)
    before = control.changes.state
    wanted = _wanted(before, params)
    if params.confirm is not None:
        if not 0 < params.confirm <= LONGEST_CONFIRM_SECONDS:
            longest = f"{LONGEST_CONFIRM_SECONDS:.0f}"
            raise FeedError("bad_params", f"confirm: must be above 0 and at most {longest} s, not {params.confirm:g}")
        wanted = to_confirm(before, wanted, time.time() + params.confirm)
    try:
        return result(await control.changes.make(wanted, actor=actor, why=params.why))
    except PolicyError as error:
        raise FeedError("bad_params", str(error)) from error


def _wanted(before: PolicyState, params: PolicySet) -> PolicyState:
    changes: dict[str, Any] = {}
    if params.policy is not None:
        changes["policy"] = params.policy
    if params.cap is not msgspec.UNSET:
        changes["cap"] = params.cap
    if params.fallback is not None:
        changes["fallback"] = params.fallback
    workloads = before.workloads
    for name, lane in params.lanes.items():
        _check_workload(name)
        own = workloads.get(name, WorkloadPolicy())
        workloads = with_workload(workloads, name, msgspec.structs.replace(own, lane=lane))
    if len(workloads) > MOST_WORKLOADS:
        raise FeedError("bad_params", f"lanes: more than {MOST_WORKLOADS} workloads can't have one of their own")
    return msgspec.structs.replace(before, workloads=workloads, **changes)


def _check_workload(name: str) -> None:
    if parse_workload(name) != name:
        raise FeedError("bad_params", f"lanes: {name!r} can be no request's tag: see how the Live screen names it")
    if name in (OTHER, UNATTRIBUTED):
        raise FeedError("bad_params", f"lanes: {name!r} gathers many workloads: name one that requests are tagged with")
