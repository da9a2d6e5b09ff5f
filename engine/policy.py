"""The policy as versioned state: what the station sends whole, what the scheduler reads one attribute of a step.

A draft length is decided by terms (design §9): a base for the mode, then whatever lowers it. A sequence's K is the
minimum; the term that gave it is its `limit`, ties going to the first in `LIMITS`.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

import msgspec

from engine.records import Lane, Limit, PolicyMode
from engine.schedule import DraftSchedule, ScheduleError, lookup, parse_schedule

POLICY_WIRE_VERSION: Final = 1


class WorkloadPolicy(msgspec.Struct, frozen=True, omit_defaults=True):
    """What holds for one workload beside the base policy."""

    k: int | None = None
    """Adaptive's K of the workload."""
    lane: Lane = "speculative"
    fallback: bool = False
    """Tier 2 has turned speculation off for it."""


class PolicyState(msgspec.Struct, frozen=True):
    """The whole policy. A change is a new state with a higher version, never an edit."""

    version: int
    policy: PolicyMode
    cap: int | None = None
    """The operator's cap on K, tokens."""
    fallback: bool = False
    """The operator's fallback: no speculation for anybody."""
    workloads: dict[str, WorkloadPolicy] = {}
    confirm_by: float | None = None
    """Unix seconds by which an unconfirmed raise reverts."""


class PolicyMessage(msgspec.Struct, frozen=True):
    """What the station publishes to one engine: `station` changes with each station, which makes engines announce."""

    v: int
    station: str
    state: PolicyState


class PolicyError(ValueError):
    """A policy that cannot be meant: names the field and what it may be."""


class DraftLength(NamedTuple):
    """A draft length in tokens and the term that set it."""

    k: int
    limit: Limit


def encode_policy(message: PolicyMessage) -> bytes:
    return msgspec.msgpack.encode(message)


def decode_policy(payload: bytes) -> PolicyMessage:
    """Decode and validate a policy message.

    Raises:
        PolicyError: not a policy message, another wire version, or a state that fails `validate`.
    """
    try:
        message = msgspec.msgpack.decode(payload, type=PolicyMessage)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PolicyError(f"not a policy message: {error}") from error
    if message.v != POLICY_WIRE_VERSION:
        raise PolicyError(f"policy wire version {message.v}, this engine speaks {POLICY_WIRE_VERSION}")
    validate(message.state)
    return message


def validate(state: PolicyState) -> None:
    """Refuse a state that no scheduler could execute.

    Raises:
        PolicyError: names the field.
    """
    mode = state.policy
    if mode.mode == "static" and (mode.k is None or mode.k < 0):
        raise PolicyError("policy.k: mode static needs a k of 0 or more")
    if mode.mode in ("schedule", "adaptive"):
        if mode.schedule is None:
            raise PolicyError(f"policy.schedule: mode {mode.mode} needs a schedule")
        try:
            parse_schedule(mode.schedule)
        except ScheduleError as error:
            raise PolicyError(f"policy.schedule: {error}") from error
    if state.cap is not None and state.cap < 0:
        raise PolicyError("cap: must be 0 or more, or null for none")
    for name, workload in state.workloads.items():
        if workload.k is not None and workload.k < 0:
            raise PolicyError(f"workloads[{name!r}].k: must be 0 or more")


class Resolver:
    """Draft lengths under one state, for a scheduler whose start-up maximum is `max_k`. Immutable once made.

    `fixed_batch_k` changes nothing here: where the batch K can't move the scheduler trims sequences to these lengths.
    """

    __slots__ = ("_base", "_schedule", "max_k", "state")

    def __init__(self, state: PolicyState, max_k: int) -> None:
        validate(state)
        self.state = state
        self.max_k = max_k
        self._schedule: DraftSchedule | None = (
            parse_schedule(state.policy.schedule) if state.policy.schedule is not None else None
        )
        mode = state.policy.mode
        self._base: DraftLength | None = None
        if mode == "off":
            self._base = DraftLength(0, "off")
        elif mode == "static":
            assert state.policy.k is not None  # validate() saw to it
            self._base = DraftLength(state.policy.k, "static")

    @property
    def version(self) -> int:
        return self.state.version

    def draft_length(self, running: int, workload: str | None, disable_speculation: bool, lane: Lane) -> DraftLength:
        """K for one sequence at a batch of `running` scheduled sequences: the minimum of its terms (design §9)."""
        if self._base is not None and self._base.limit == "off":
            return self._base
        state = self.state
        own = state.workloads.get(workload or "untagged")
        if disable_speculation:
            return DraftLength(0, "hint")
        if lane == "vanilla" or (own is not None and own.lane == "vanilla"):
            return DraftLength(0, "lane")
        if state.fallback:
            return DraftLength(0, "operator")
        if own is not None and own.fallback and state.policy.mode in ("schedule", "adaptive"):
            return DraftLength(0, "fallback")
        return self._capped(running, own)

    def _capped(self, running: int, own: WorkloadPolicy | None) -> DraftLength:
        """The terms that leave some speculation, in the order of `LIMITS`, so that a tie goes to the first."""
        state = self.state
        terms: list[DraftLength] = []
        if state.cap is not None:
            terms.append(DraftLength(state.cap, "cap"))
        if state.policy.mode == "adaptive" and state.policy.act is not False and own is not None and own.k is not None:
            terms.append(DraftLength(own.k, "adaptive"))
        if self._schedule is not None:
            terms.append(DraftLength(lookup(self._schedule, running), "schedule"))
        if self._base is not None:
            terms.append(self._base)
        terms.append(DraftLength(self.max_k, "max"))
        return min(terms, key=lambda term: term.k)


def resolved_mode(mode: PolicyMode, max_k: int, data_parallel_size: int = 1) -> PolicyMode:
    """What an engine will do with a configured mode, and why where it differs (`reason`).

    vLLM drops a draft schedule under data parallelism (ranks with different K deadlock) and clamps K to the
    start-up maximum.
    """
    if data_parallel_size > 1 and mode.mode in ("schedule", "adaptive"):
        reason = f"data parallel size {data_parallel_size}: vLLM drops the schedule and drafts its maximum"
        return PolicyMode(mode="static", k=max_k, reason=reason)
    if mode.mode == "static" and mode.k is not None and mode.k > max_k:
        reason = f"K {mode.k} is above the engine's start-up maximum {max_k}"
        return PolicyMode(mode="static", k=max_k, reason=reason)
    if mode.schedule is not None and any(k > max_k for _, _, k in mode.schedule):
        clamped = [(first, last, min(k, max_k)) for first, last, k in mode.schedule]
        reason = f"K above the engine's start-up maximum {max_k} is clamped"
        return PolicyMode(mode=mode.mode, schedule=clamped, act=mode.act, reason=reason)
    return mode


def describe(mode: PolicyMode) -> str:
    """The command line's word for a mode: `off`, `static:4`, `schedule:1-4:4,5-32:1`, `adaptive`, `advise`."""
    if mode.mode == "static":
        return f"static:{mode.k}"
    if mode.mode == "schedule":
        return "schedule:" + ",".join(f"{first}-{last}:{k}" for first, last, k in mode.schedule or [])
    if mode.mode == "adaptive":
        return "advise" if mode.act is False else "adaptive"
    return mode.mode


def parse_mode(text: str) -> PolicyMode:
    """Read the command line's word for a mode. Schedules and adaptive come with their own parsers.

    Raises:
        PolicyError: names what may stand there.
    """
    word, _, value = text.strip().partition(":")
    if word == "off" and not value:
        return PolicyMode(mode="off")
    if word == "static":
        try:
            k = int(value)
        except ValueError:
            raise PolicyError(f"{text!r}: static takes a whole number, as in static:4") from None
        if k < 0:
            raise PolicyError(f"{text!r}: K must be 0 or more")
        return PolicyMode(mode="static", k=k)
    raise PolicyError(f"{text!r} is no policy: off or static:K, as in static:4")


def policy_diff(before: PolicyState, after: PolicyState) -> dict[str, tuple[Any, Any]]:
    """The fields that differ, for confirmations and the history: name → (before, after)."""
    names: tuple[Literal["policy", "cap", "fallback", "workloads"], ...] = ("policy", "cap", "fallback", "workloads")
    return {
        name: (getattr(before, name), getattr(after, name))
        for name in names
        if getattr(before, name) != getattr(after, name)
    }
