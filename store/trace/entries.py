"""What the readers of all forms hand over: records with their time and place in the file."""

from __future__ import annotations

from engine.records import Record
from store.step_block import StepBlock

Entry = tuple[float, int, Record | StepBlock, int]
"""Time (Unix seconds), number of the line or record from 1, what it is; of a step in a block: which of its steps."""


def type_of(record: Record) -> str:
    """The name of its kind, as in `type`."""
    return str(record.__struct_config__.tag)
