"""The lane table: which workloads go to the vanilla lane. The station sends it whole; it outlives the station."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from engine.hints import MAX_TAG_LENGTH, parse_workload
from engine.records import Lane

UNTAGGED: Final = "untagged"
"""The name under which requests without a tag stand in the table."""

_MOST_WORKLOADS: Final = 4096

Tag = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_TAG_LENGTH)]


class LaneTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A workload that it does not name is in the speculative lane. An unknown field is refused: it may be misspelt."""

    version: Annotated[int, msgspec.Meta(ge=0)]
    lanes: Annotated[dict[Tag, Lane], msgspec.Meta(max_length=_MOST_WORKLOADS)] = {}


class TableRefused(ValueError):
    """A table that cannot be meant: names the place and what may stand there."""


class Lanes:
    """The table in force, whole at any moment."""

    def __init__(self) -> None:
        self.table = LaneTable(version=0)

    def replace(self, table: Any) -> None:
        """Put a table of plain JSON types in force.

        Raises:
            TableRefused: it cannot be meant; the one before stays.
        """
        try:
            new = msgspec.convert(table, LaneTable)
        except msgspec.ValidationError as error:
            raise TableRefused(f"lane table: {error}; {_FORM}") from error
        for tag in new.lanes:
            if parse_workload(tag) != tag:
                raise TableRefused(f"lane table: {tag!r} can be no request's tag: tags have no blanks around them")
        self.table = new

    def of(self, workload: str | None) -> Lane:
        return self.table.lanes.get(workload or UNTAGGED, "speculative")


_FORM: Final = 'expected {"version": N, "lanes": {WORKLOAD: "speculative" or "vanilla"}}'
