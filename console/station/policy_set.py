"""Sets the policy as a console asks for it: checked, published, recorded."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from console.feed.protocol import PolicyResult, PolicySet
from console.feed.server import FeedError
from engine.policy import PolicyError, PolicyState, policy_diff
from engine.records import ControlRecord

if TYPE_CHECKING:
    from console.station.station import Station

OBSERVES_ONLY: Final = "this station only observes: its engine's policy is set where that was started"


async def policy_set(station: Station, params: PolicySet, actor: str) -> PolicyResult:
    """Make another policy the station's and send it out. Raises FeedError where that can't be."""
    if station.control is None:
        raise FeedError("bad_params", OBSERVES_ONLY)
    book = station.control.book
    before = book.state
    if params.expect is not None and params.expect != before.version:
        raise FeedError(
            "refused",
            f"the policy is at version {before.version} by now, not {params.expect}: look again, then decide",
        )
    wanted = _changed(before, params)
    try:
        after = book.change(wanted)
    except PolicyError as error:
        raise FeedError("bad_params", str(error)) from error
    await station.control.publisher.send_all()
    _remember(station, before, after, actor, params.why)
    return PolicyResult(after.version, after.policy)


def _remember(station: Station, before: PolicyState, after: PolicyState, actor: str, why: str | None) -> None:
    diff = policy_diff(before, after)
    action = "mode" if "policy" in diff else next(iter(diff), "mode")
    station.recorder.put(
        ControlRecord(
            ts=time.time(),
            actor=actor,
            action=action,
            before=_plain(action, before),
            after=_plain(action, after),
            policy=after.version,
            why=why,
        )
    )
    changes = ", ".join(f"{name} {_word(old)} → {_word(new)}" for name, (old, new) in diff.items()) or "unchanged"
    station.tell("control", f"{actor}: {changes} (policy {after.version})")


def _changed(before: PolicyState, params: PolicySet) -> PolicyState:
    if params.policy is not None and params.policy.mode == "adaptive":
        raise FeedError("refused", "this version has no adaptive controller yet: use off, static:K or a schedule")
    changes: dict[str, Any] = {}
    if params.policy is not None:
        changes["policy"] = params.policy
    if params.cap is not msgspec.UNSET:
        changes["cap"] = params.cap
    if params.fallback is not None:
        changes["fallback"] = params.fallback
    return msgspec.structs.replace(before, **changes)


def _plain(action: str, state: PolicyState) -> dict[str, Any]:
    """A control record's before and after: the mode by itself (as in design §7), other fields under their name."""
    if action == "mode":
        mode: dict[str, Any] = msgspec.to_builtins(state.policy)
        return mode
    return {action: msgspec.to_builtins(getattr(state, action))}


def _word(value: Any) -> str:
    return msgspec.json.encode(value).decode()
