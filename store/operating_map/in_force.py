"""A map as the source of a policy: the schedule that it proposes, where it may be put in force. Pure."""

from __future__ import annotations

from engine.records import PolicyMode
from store.operating_map.records import OperatingMap


class NotInForce(ValueError):
    """The map can't be put in force: says why, and what to do."""


def policy_of(made: OperatingMap | None, stale: list[str], *, force: bool) -> PolicyMode:
    """The policy that a map proposes.

    Args:
        stale: what is not as it was when it was made (`fingerprint.differences`).
        force: use it all the same.

    Raises:
        NotInForce: there is no map, it proposes nothing, or it is of something else.
    """
    if made is None:
        raise NotInForce("there is no operating map yet: `specdeck rehearse` makes one")
    if made.schedule is None:
        raise NotInForce(
            f"operating map {made.id} proposes no schedule: too little was measured; rehearse a longer plan, see "
            "`specdeck rehearse --help`"
        )
    if stale and not force:
        raise NotInForce(
            f"operating map {made.id} was made with something else than what runs: {'; '.join(stale)}. Rehearse again "
            "with `specdeck rehearse`, or use it all the same with --force"
        )
    return PolicyMode(mode="schedule", schedule=list(made.schedule))


def reason(made: OperatingMap) -> str:
    """What the history says of such a change."""
    return f"operating map {made.id}"
