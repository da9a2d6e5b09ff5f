"""What of a policy can be borrowed: each term by its name, as it is asked for, held, put back and shown."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from console.feed.messages import Snapshot
from console.feed.protocol import PolicySet
from engine.policy import describe
from engine.records import Lane, PolicyMode

_LANE: Final = "lane "


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What is not given stays as it is. `lanes`: by workload."""

    policy: PolicyMode | None = None
    cap: int | None = None
    fallback: bool | None = None
    lanes: dict[str, Lane] = {}

    def values(self) -> dict[str, Any]:
        """Those given, by name; a lane under `lane WORKLOAD`."""
        plain = {name: getattr(self, name) for name in ("policy", "cap", "fallback")}
        lanes = {f"{_LANE}{workload}": lane for workload, lane in self.lanes.items()}
        return {name: value for name, value in (plain | lanes).items() if value is not None}


def held(snapshot: Snapshot, name: str) -> Any:
    """What holds now. A workload that the picture does not show has the lane that all begin with."""
    if not name.startswith(_LANE):
        return getattr(snapshot, name)
    workload = name.removeprefix(_LANE)
    return next((view.lane for view in snapshot.workloads if view.name == workload), "speculative")


def change_to(values: dict[str, Any], *, confirm: float | None, expect: int | None, why: str) -> PolicySet:
    """The change that makes these values hold."""
    plain = {name: value for name, value in values.items() if not name.startswith(_LANE)}
    lanes: dict[str, Lane] = {
        name.removeprefix(_LANE): value for name, value in values.items() if name.startswith(_LANE)
    }
    return PolicySet(**plain, lanes=lanes, confirm=confirm, expect=expect, why=why)


def shown(name: str) -> str:
    """A term's name in a sentence."""
    known = {"policy": "the mode", "cap": "the cap", "fallback": "the operator's fallback"}
    return known.get(name) or f"the lane of {name.removeprefix(_LANE)}"


def word(value: Any) -> str:
    """A term's value in a sentence."""
    if isinstance(value, PolicyMode):
        return describe(value)
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value is None else str(value)
