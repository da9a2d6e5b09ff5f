"""What the answers to policy actions share: who may act, on which picture, and what is told back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from console.feed.protocol import PolicyResult
from console.feed.server import FeedError
from console.station.gateway_control import lanes_of
from engine.policy import PolicyState

if TYPE_CHECKING:
    from console.station.control import Control
    from console.station.policy import PolicyBook
    from console.station.station import Station

OBSERVES_ONLY: Final = "this station only observes: its engine's policy is set where that was started"


def controlled(station: Station) -> Control:
    """Raises FeedError of a station that has no policy to change."""
    if station.control is None:
        raise FeedError("bad_params", OBSERVES_ONLY)
    return station.control


def check_seen(book: PolicyBook, version: int | None) -> None:
    """Refuse to act on an outdated picture: on a `version` since which an operator's part of the policy has changed.

    What the controller decides meanwhile is no reason: it may be at it every few seconds.

    Raises:
        FeedError: it was changed since, or was never this station's.
    """
    if version is None or version == book.state.version:
        return
    seen = book.at(version, "")
    if seen is None or operators_part(seen) != operators_part(book.state):
        raise FeedError(
            "refused", f"the policy is at version {book.state.version} by now, not {version}: look again, then decide"
        )


def operators_part(state: PolicyState) -> tuple[Any, ...]:
    """All of a policy but what the controller decides."""
    return state.policy, state.cap, state.fallback, lanes_of(state), state.confirm_by


def result(state: PolicyState) -> PolicyResult:
    return PolicyResult(state.version, state.policy, state.cap, state.fallback, state.confirm_by)
