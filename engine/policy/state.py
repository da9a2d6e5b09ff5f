"""What a policy is made of, and what of it can be meant."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from engine.records import Lane, PolicyMode, Probe
from engine.schedule import ScheduleError, parse_schedule

SHORTEST_BLOCK: Final = 4
"""Steps: the first of a block is discarded, and fewer than three would measure next to nothing."""

LONGEST_BLOCK: Final = 10_000
"""Steps of a probe, and of its wait: no measurement may become a policy."""


class WorkloadPolicy(msgspec.Struct, frozen=True, omit_defaults=True):
    """What holds for one workload beside the base policy."""

    k: int | None = None
    """Adaptive's K of the workload."""
    lane: Lane = "speculative"
    fallback: bool = False
    """Tier 2 has turned speculation off for it."""


class Base(msgspec.Struct, frozen=True):
    """What an unconfirmed policy falls back to: the state before it, without its version."""

    policy: PolicyMode
    cap: int | None = None
    fallback: bool = False
    workloads: dict[str, WorkloadPolicy] = {}


class ProbeOrder(msgspec.Struct, frozen=True):
    """One block of steps in which the scheduler leaves the policy to measure. An id of a station is executed once.

    `k0`: everybody drafts nothing. `deep`: while adaptive acts, sequences of `workload` are asked for up to `k`, each
    for a random length; where the batch K is lower it rises with them, so whoever orders it decides whether that is
    worth its price. `recover`: `workload`, which tier 2 turned off, drafts `k` again. See `engine.probing`.
    """

    id: int
    kind: Probe
    workload: str | None
    """None: every workload (`k0`)."""
    k: int
    steps: int
    """Steps of the block, the discarded first one included."""
    wait: int
    """Steps to let pass before it begins, drawn at random by whoever orders it."""


class PolicyState(msgspec.Struct, frozen=True):
    """The whole policy. A change is a new state with a higher version, never an edit.

    Mode adaptive without a schedule is bounded by the engine's maximum alone, at every batch size.
    """

    version: int
    policy: PolicyMode
    cap: int | None = None
    """The operator's cap on K, tokens."""
    fallback: bool = False
    """The operator's fallback: no speculation for anybody."""
    workloads: dict[str, WorkloadPolicy] = {}
    confirm_by: float | None = None
    """Unix seconds by which an unconfirmed raise reverts, in the scheduler if no station is there to do it."""
    revert: Base | None = None
    """What it reverts to."""


class PolicyMessage(msgspec.Struct, frozen=True):
    """What the station publishes to one engine: `station` changes with each station, which makes engines announce."""

    v: int
    station: str
    state: PolicyState
    probe: ProbeOrder | None = None
    """The probe to make next. It is no part of the state: a measurement changes no policy. A newer order takes the
    place of one that has not begun; None withdraws nothing."""


class PolicyError(ValueError):
    """A policy that cannot be meant: names the field and what it may be."""


def validate(state: PolicyState) -> None:
    """Refuse a state that no scheduler could execute.

    Raises:
        PolicyError: names the field.
    """
    _validate_base(state, "")
    if state.confirm_by is not None and state.revert is None:
        raise PolicyError("revert: a policy to be confirmed must say what it reverts to")
    if state.revert is not None:
        _validate_base(state.revert, "revert.")


def _validate_base(base: PolicyState | Base, place: str) -> None:
    mode = base.policy
    if mode.mode == "static" and (mode.k is None or mode.k < 0):
        raise PolicyError(f"{place}policy.k: mode static needs a k of 0 or more")
    if mode.mode == "schedule" and mode.schedule is None:
        raise PolicyError(f"{place}policy.schedule: mode schedule needs a schedule")
    if mode.schedule is not None:
        try:
            parse_schedule(mode.schedule)
        except ScheduleError as error:
            raise PolicyError(f"{place}policy.schedule: {error}") from error
    if base.cap is not None and base.cap < 0:
        raise PolicyError(f"{place}cap: must be 0 or more, or null for none")
    for name, workload in base.workloads.items():
        if workload.k is not None and workload.k < 0:
            raise PolicyError(f"{place}workloads[{name!r}].k: must be 0 or more")


def validate_probe(order: ProbeOrder) -> None:
    """Refuse an order that no scheduler could execute, or that would go on for ever.

    Raises:
        PolicyError: names the field.
    """
    if not SHORTEST_BLOCK <= order.steps <= LONGEST_BLOCK:
        raise PolicyError(f"probe.steps: must be {SHORTEST_BLOCK} to {LONGEST_BLOCK}, not {order.steps}")
    if not 0 <= order.wait <= LONGEST_BLOCK:
        raise PolicyError(f"probe.wait: must be 0 to {LONGEST_BLOCK} steps, not {order.wait}")
    if order.kind == "k0":
        return
    if order.workload is None:
        raise PolicyError(f"probe.workload: a {order.kind} probe is of one workload")
    if order.k < 1:
        raise PolicyError(f"probe.k: a {order.kind} probe drafts at least 1 token")


def policy_diff(before: PolicyState, after: PolicyState) -> dict[str, tuple[Any, Any]]:
    """The fields that differ, for confirmations and the history: name → (before, after)."""
    names: tuple[Literal["policy", "cap", "fallback", "workloads"], ...] = ("policy", "cap", "fallback", "workloads")
    return {
        name: (getattr(before, name), getattr(after, name))
        for name in names
        if getattr(before, name) != getattr(after, name)
    }
