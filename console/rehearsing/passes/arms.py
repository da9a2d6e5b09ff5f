"""What an arm is to the engine: the policy that is put in force for it, or an engine without a drafter."""

from __future__ import annotations

from engine.records import PolicyMode
from store.rehearsal.plan import ADAPTIVE, PROPOSED, WITHOUT, fixed_k

Schedule = list[tuple[int, int, int]]


def drafts(arm: str) -> bool:
    """Whether it is an arm of the engine with a drafter; `k0` is one."""
    return arm != WITHOUT


def policy_of(arm: str, proposal: Schedule | None) -> PolicyMode | None:
    """The policy in force during a pass of `arm`; None for the engine without speculation.

    Raises:
        ValueError: no such arm, or `proposed` without a proposal.
    """
    k = fixed_k(arm)
    if k is not None:
        return PolicyMode(mode="static", k=k)
    if arm == ADAPTIVE:
        return PolicyMode(mode="adaptive", act=True)
    if arm == PROPOSED and proposal is not None:
        return PolicyMode(mode="schedule", schedule=proposal)
    if arm == WITHOUT:
        return None
    raise ValueError(f"arm {arm}: there is no policy for it")
