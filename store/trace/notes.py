"""What was ignored while a trace was read."""

from __future__ import annotations

from collections import Counter


class TraceNotes:
    """Filled by whoever reads a trace; complete when it was read to its end."""

    def __init__(self) -> None:
        self.unknown_fields: Counter[str] = Counter()
        """`type.field` → lines that had it."""
        self.dropped: str | None = None
        self.carried: list[str] = []
        """Notes that the file itself holds: what was ignored when it was made of another."""

    def lines(self) -> list[str]:
        notes = [f"unknown field {name} ignored on {count} lines" for name, count in self.unknown_fields.items()]
        return self.carried + notes + ([self.dropped] if self.dropped else [])
