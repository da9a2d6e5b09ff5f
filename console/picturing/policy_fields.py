"""What a record changed of the policy, field by field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from console.picturing.unconfirmed import with_workload, workload_fields
from engine.policy import PolicyState, WorkloadPolicy
from engine.records import ControlRecord, PolicyMode

_PLAIN: Final = WorkloadPolicy()


class Field(NamedTuple):
    """One field that a record changed."""

    name: str
    """As operators say it: `cap`, `mode`, `code's lane`."""
    before: Any
    after: Any
    of: Callable[[PolicyState], Any]
    put: Callable[[PolicyState, Any], PolicyState]


def fields(record: ControlRecord) -> Iterator[Field]:
    """What a record changed of the policy; nothing for one that changed nothing."""
    before, after = record.before, record.after
    if record.policy is None or before is None or after is None or before == after:
        return
    if record.workload is not None:
        yield from _workload_fields(record.workload, before, after)
    elif "mode" in after:
        old, new = (msgspec.convert(mode, PolicyMode) for mode in (before, after))
        yield Field("mode", old, new, lambda state: state.policy, lambda state, mode: replace(state, policy=mode))
    elif "cap" in after:
        yield Field(
            "cap", before["cap"], after["cap"], lambda state: state.cap, lambda state, cap: replace(state, cap=cap)
        )
    elif "fallback" in after:
        yield Field(
            "fallback", before["fallback"], after["fallback"],
            lambda state: state.fallback, lambda state, fallback: replace(state, fallback=fallback),
        )  # fmt: skip


def _workload_fields(workload: str, before: dict[str, Any], after: dict[str, Any]) -> Iterator[Field]:
    old, new = (msgspec.convert(own, WorkloadPolicy) for own in (before, after))

    def one(field: str) -> Field:
        def put(state: PolicyState, value: Any) -> PolicyState:
            own = replace(state.workloads.get(workload, _PLAIN), **{field: value})
            return replace(state, workloads=with_workload(state.workloads, workload, own))

        def of(state: PolicyState) -> Any:
            return getattr(state.workloads.get(workload, _PLAIN), field)

        return Field(f"{workload}'s {field}", getattr(old, field), getattr(new, field), of, put)

    yield from map(one, workload_fields(old, new))
