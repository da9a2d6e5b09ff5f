"""What one change of the policy changed, and whether it can be put back: from the records of what was done."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from console.picturing.action_names import UNDO
from console.picturing.policy_fields import Field, fields
from console.picturing.policy_words import shown
from console.station.policy_changes import AUTOMATIC, CHOSE
from engine.policy import PolicyState
from engine.records import ControlRecord

OWN_ACTORS: Final = AUTOMATIC | {"drill", "rehearsal"}
"""Whose changes are undone only by their version: they come and go by themselves."""


class CannotUndo(ValueError):
    """Says what stands in the way."""


class PastChanges:
    """The records of what was done, newest first, as far back as they were asked for."""

    def __init__(self, records: Sequence[ControlRecord]) -> None:
        self.records = records
        self._fields: dict[int, list[Field]] = {}
        self._made: dict[int, ControlRecord] = {}
        self._undone: dict[int, int] = {}
        for record in records:
            if record.policy is None:
                continue
            self._fields.setdefault(record.policy, []).extend(fields(record))
            self._made[record.policy] = record
            target = _undoes(record)
            if target is not None and record.policy not in self._undone:  # an undo that was undone itself is none
                self._undone.setdefault(target, record.policy)

    def undo(self, version: int, state: PolicyState) -> PolicyState:
        """`state` with all that the change to `version` changed as it was before.

        Raises:
            CannotUndo: it isn't known, changed nothing, was undone already, or something has changed it since.
        """
        changed = self._fields.get(version)
        if changed is None:
            raise CannotUndo(f"no change to policy {version} is known: `specdeck policy history` lists them")
        if not changed:
            raise CannotUndo(f"policy {version} changed nothing that could be put back")
        if version in self._undone:
            raise CannotUndo(f"policy {version} was undone already, by policy {self._undone[version]}")
        for field in changed:
            if field.of(state) != field.after:
                raise CannotUndo(self._changed_since(version, field, state))
            state = field.put(state, field.before)
        return state

    def undoable(self, version: int | None, state: PolicyState) -> bool:
        if version is None:
            return False
        try:
            self.undo(version, state)
        except CannotUndo:
            return False
        return True

    def chose(self, version: int) -> bool:
        """Whether it was the first to choose a mode."""
        return CHOSE in (self._made[version].numbers or {})

    def newest(self, state: PolicyState) -> int | None:
        """The newest change by an operator that can be undone, itself no undo: asked again, it goes further back."""
        versions = (
            version
            for version, record in self._made.items()
            if record.actor not in OWN_ACTORS and record.action != UNDO
        )
        return next((version for version in sorted(versions, reverse=True) if self.undoable(version, state)), None)

    def _changed_since(self, version: int, field: Field, state: PolicyState) -> str:
        now = f"policy {version} made {field.name} {shown(field.after)}, and it is {shown(field.of(state))} by now"
        since = next((record for record in self.records if _touches(record, version, field.name)), None)
        if since is None:
            return f"{now}: set what you mean"
        when = datetime.fromtimestamp(since.ts).astimezone().strftime("%H:%M")
        return f"{now}, since policy {since.policy} ({since.actor}, {when}): undo that first, or set what you mean"


def _undoes(record: ControlRecord) -> int | None:
    target = (record.numbers or {}).get("undone") if record.action == UNDO else None
    return target if isinstance(target, int) else None


def _touches(record: ControlRecord, version: int, name: str) -> bool:
    later = record.policy is not None and record.policy > version
    return later and any(field.name == name for field in fields(record))
