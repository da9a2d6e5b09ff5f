"""What it means for a change to wait for its confirmation: what it falls back to, and what that must not lose."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from engine.policy import Base, PolicyState, WorkloadPolicy

Workloads = dict[str, WorkloadPolicy]

_PLAIN: Final = WorkloadPolicy()
_FIELDS: Final = WorkloadPolicy.__struct_fields__


def base_of(state: PolicyState) -> Base:
    return Base(state.policy, state.cap, state.fallback, state.workloads)


def to_confirm(before: PolicyState, wanted: PolicyState, by: float) -> PolicyState:
    """`wanted`, to be confirmed until `by` (Unix seconds). It falls back to the last state that was confirmed: to
    `before`, or to what `before` would itself fall back to."""
    return replace(wanted, confirm_by=by, revert=before.revert or base_of(before))


def confirmed(state: PolicyState) -> PolicyState:
    return replace(state, confirm_by=None, revert=None)


def reverted(state: PolicyState) -> PolicyState:
    """What an unconfirmed state falls back to."""
    base = state.revert
    assert base is not None
    return PolicyState(state.version, base.policy, base.cap, base.fallback, base.workloads)


def settled_part(state: PolicyState) -> PolicyState:
    """What holds in any case: the state itself, or what it falls back to while it is unconfirmed."""
    return state if state.revert is None else reverted(state)


def settled(before: PolicyState, wanted: PolicyState) -> PolicyState:
    """`wanted` with its fall-back brought up to date.

    What changes about workloads while an earlier change waits is no part of that change: the controller has learnt it
    or the operator set a lane, and it stays when the earlier change is taken back. A state that is back at what it
    would fall back to has nothing to confirm.
    """
    if wanted.revert is None:
        return replace(wanted, confirm_by=None)
    if (wanted.revert, wanted.confirm_by) == (before.revert, before.confirm_by):
        workloads = _carried(before.workloads, wanted.workloads, wanted.revert.workloads)
        wanted = replace(wanted, revert=replace(wanted.revert, workloads=workloads))
    return confirmed(wanted) if base_of(wanted) == wanted.revert else wanted


def with_workload(workloads: Workloads, name: str, own: WorkloadPolicy) -> Workloads:
    """`workloads` with another policy of one; nothing is said of a workload of which nothing in particular holds."""
    others = {one: policy for one, policy in workloads.items() if one != name}
    return others if own == _PLAIN else {**others, name: own}


def workload_fields(old: WorkloadPolicy, new: WorkloadPolicy) -> list[str]:
    """Names of the fields that differ."""
    return [field for field in _FIELDS if getattr(old, field) != getattr(new, field)]


def _carried(before: Workloads, after: Workloads, base: Workloads) -> Workloads:
    """`base` with the fields that differ between `before` and `after` as they are after."""
    for name in {*before, *after}:
        old, new = (workloads.get(name, _PLAIN) for workloads in (before, after))
        moved = {field: getattr(new, field) for field in workload_fields(old, new)}
        if moved:
            base = with_workload(base, name, replace(base.get(name, _PLAIN), **moved))
    return base
