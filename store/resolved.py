"""What an engine does with a configured policy: by its own word, else by what is known of vLLM."""

from __future__ import annotations

import msgspec

from engine.policy import resolved_mode
from engine.records import EngineRecord, PolicyMode
from engine.schedule import ScheduleError


def resolved_by(record: EngineRecord, mode: PolicyMode) -> PolicyMode:
    """The policy that the engine will execute for `mode`; `reason` says why where it is another one."""
    if same_policy(mode, record.configured):
        return record.resolved
    try:
        return resolved_mode(mode, record.max_k, record.data_parallel_size)
    except ScheduleError as error:
        return msgspec.structs.replace(mode, reason=f"not a schedule: {error}")


def departs(configured: PolicyMode, resolved: PolicyMode) -> bool:
    """Whether the engine dropped or lowered what was asked for. Adaptive without a schedule asks for no length: it is
    executed whatever an engine does with schedules."""
    if configured.mode == "adaptive" and configured.schedule is None:
        return False
    return not same_policy(configured, resolved)


def same_policy(left: PolicyMode, right: PolicyMode) -> bool:
    return (left.mode, left.k, left.schedule) == (right.mode, right.k, right.schedule)
