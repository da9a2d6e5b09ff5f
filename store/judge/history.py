"""What was done to the engines, and when: versions, configurations, controls. Names causes."""

from __future__ import annotations

from itertools import zip_longest
from typing import Final

import msgspec

from engine.records import BEGIN_ACTION
from store.judge.alerts import Cause
from store.judge.inputs import ControlDone, EngineStarted

_KEPT: Final = 200
_NAMED: Final = 3
_PARTS: Final = ("target", "drafter", "method", "vLLM")


class HistoryMemory(msgspec.Struct):
    running: dict[str, EngineStarted] = {}
    """The last start of each engine."""
    changed: dict[str, list[Cause]] = {}
    """Engine → its changes of version and configuration."""
    controls: dict[str, list[ControlDone]] = {}
    """By actor: an adaptive policy does so much that it would bury what the operator did."""


class History:
    """Args:
    memory: changed in place.
    """

    def __init__(self, memory: HistoryMemory) -> None:
        self.memory = memory

    def started(self, event: EngineStarted) -> Cause | None:
        """Returns what is different from the start before; None for a plain restart or a first start."""
        before = self.memory.running.get(event.engine)
        self.memory.running[event.engine] = event
        cause = None if before is None else _difference(before, event)
        if cause is not None:
            changed = self.memory.changed.setdefault(event.engine, [])
            changed.append(cause)
            del changed[:-_KEPT]
        return cause

    def control(self, event: ControlDone) -> None:
        controls = self.memory.controls.setdefault(event.actor, [])
        controls.append(event)
        del controls[:-_KEPT]

    def causes(self, engine: str, since: float, until: float, workload: str | None = None) -> list[Cause]:
        """What was done in [since, until]; of each actor the last few controls.

        Args:
            workload: leaves out controls of others; None takes them all.
        """
        found = [one for one in self.memory.changed.get(engine, ()) if one.ts is not None and since <= one.ts <= until]
        for actor in sorted(self.memory.controls):
            concern = [
                control
                for control in self.memory.controls[actor]
                if since <= control.ts <= until and (workload is None or control.workload in (None, workload))
            ]
            found += [Cause("control", _told(control), control.ts) for control in concern[-_NAMED:]]
        return found


def version_change(before: str, after: str) -> str:
    """Names the parts of a model version that differ."""
    pairs = zip_longest(_PARTS, before.split(" | "), after.split(" | "))
    changed = [f"{part or 'version'} {old} → {new}" for part, old, new in pairs if old != new]
    return "model version: " + ", ".join(changed)


def _difference(before: EngineStarted, after: EngineStarted) -> Cause | None:
    if before.model_version != after.model_version:
        return Cause("version", version_change(before.model_version, after.model_version), after.ts)
    if before.configuration != after.configuration:
        return Cause("configuration", _configuration_change(before.configuration, after.configuration), after.ts)
    return None


def _configuration_change(before: str, after: str) -> str:
    """Names the parts, divided by commas, that differ."""
    pairs = zip_longest(before.split(", "), after.split(", "), fillvalue="nothing")
    return "configuration: " + ", ".join(f"{old} → {new}" for old, new in pairs if old != new)


def _told(control: ControlDone) -> str:
    if control.action == BEGIN_ACTION:
        return f"{control.actor}: began with {control.text}"
    where = "" if control.workload is None else f" for {control.workload}"
    what = f": {control.text}" if control.text else ""
    return f"{control.actor}: {control.action}{where}{what}"
