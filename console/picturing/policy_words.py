"""A policy's values in the operator's words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from engine.policy import PolicyState, WorkloadPolicy, policy_diff, readable
from engine.records import PolicyMode

_NAMES: Final = {"policy": "mode", "cap": "cap", "fallback": "fallback"}
_PLAIN: Final = WorkloadPolicy()


def shown(value: Any) -> str:
    """A field's value."""
    if isinstance(value, PolicyMode):
        return readable(value)
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value is None else str(value)


def told(before: PolicyState, after: PolicyState) -> str:
    """What a change changed, e.g. `mode static:4 → off, code lane speculative → vanilla`."""
    return (
        ", ".join(f"{name} {shown(old)} → {shown(new)}" for name, old, new in _differing(before, after)) or "unchanged"
    )


def _differing(before: PolicyState, after: PolicyState) -> Iterator[tuple[str, Any, Any]]:
    for field, (old, new) in policy_diff(before, after).items():
        if field in _NAMES:
            yield _NAMES[field], old, new
    for name in sorted({*before.workloads, *after.workloads}):
        own = [state.workloads.get(name, _PLAIN) for state in (before, after)]
        for field in WorkloadPolicy.__struct_fields__:
            values = [getattr(one, field) for one in own]
            if values[0] != values[1]:
                yield f"{name} {'K' if field == 'k' else field}", values[0], values[1]
