"""The policy word `map`: what the running station's operating map proposes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from console.cli.outcomes import BadInput, say

if TYPE_CHECKING:
    from engine.records import PolicyMode

MAP_WORD: Final = "map"


class FromMap(NamedTuple):
    """A policy, and why for the history."""

    policy: PolicyMode
    why: str


def from_map(force: bool, why: str | None) -> FromMap:
    """The schedule of the map that holds.

    Raises:
        BadInput: there is no map, it proposes nothing, or it is of something else and `force` is not given.
        Unreachable: as `console.cli.station.ask`.
    """
    from console.cli.station import ask
    from console.feed.protocol import MapAnswer
    from store.operating_map.in_force import NotInForce, policy_of, reason

    answer = ask("map_get", MapAnswer)
    try:
        policy = policy_of(answer.map, answer.stale, force=force)
    except NotInForce as error:
        raise BadInput(str(error)) from error
    assert answer.map is not None
    if answer.engine is None:
        say("no engine serves now: alert `map_stale` will tell if the map is not of the one that starts next")
    for difference in answer.stale:
        say(f"forced, though not as it was when the map was made: {difference}")
    return FromMap(policy, f"{reason(answer.map)}: {why}" if why else reason(answer.map))
