"""Base policies that somebody set while it was recorded: which mode holds under which version of the policy."""

from __future__ import annotations

from typing import Any, NamedTuple

import duckdb
import msgspec

from engine.records import PolicyMode


class ModeControl(NamedTuple):
    """A mode that a control record set. `ts`: Unix seconds; `policy`: the version that it made, where it says so."""

    ts: float
    policy: int | None
    mode: PolicyMode


class ModeControls(NamedTuple):
    modes: list[ModeControl]
    """In the order of time."""
    versions: set[int]
    """All versions that controls made, of a mode or of anything else."""

    def still_holds(self, control: ModeControl, version: int) -> bool:
        """Whether `version` still has this mode, as far as the record tells: a version between them of which there is
        no record is another station's, which may have begun with another mode."""
        return control.policy is not None and all(
            between in self.versions for between in range(control.policy + 1, version + 1)
        )


def mode_controls(connection: duckdb.DuckDBPyConnection) -> ModeControls:
    """Every mode that was set: `after` of a control is a mode, or a policy state that holds one."""
    found = []
    for ts, policy, text in connection.execute(
        "SELECT ts, policy, after FROM controls WHERE contains(after, '\"mode\"') ORDER BY ts, rowid"
    ).fetchall():
        mode = _mode(text)
        if mode is not None:
            found.append(ModeControl(ts, policy, mode))
    versions = connection.execute("SELECT DISTINCT policy FROM controls WHERE policy IS NOT NULL").fetchall()
    return ModeControls(found, {version for (version,) in versions})


def _mode(text: str) -> PolicyMode | None:
    after: Any = msgspec.json.decode(text)
    mode = after.get("policy", after) if isinstance(after, dict) else None
    if not isinstance(mode, dict) or "mode" not in mode:
        return None
    try:
        return msgspec.convert(mode, PolicyMode)
    except msgspec.ValidationError:
        return None
