"""Which rows the bucket table shows, in which order: rows keep their place until the operator sorts. Pure state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from console.app.drawing import numbers
from console.app.live.columns import SORTS, RowFacts, key_parts, state_of
from store.figures import BucketKey

SORT_NAMES: Final[dict[str, str]] = {
    "": "as they came", "rate": "tok/s", "alpha": "α", "waste": "waste", "speedup": "speedup", "n": "n",
    "workload": "workload",
}  # fmt: skip


class RowOrder:
    """Places of buckets. New ones go to the end; sorting reorders once, it is not a standing rule."""

    def __init__(self) -> None:
        self._place: dict[BucketKey, int] = {}
        self.sorted_by = ""
        """Column id of the last sort, empty for the order of arrival."""
        self.needle = ""
        """The filter: a text that must occur in the row's key or state."""

    def arrange(self, rows: Sequence[RowFacts]) -> list[RowFacts]:
        """The rows to show, in order."""
        for facts in rows:
            self._place.setdefault(facts.bucket.key, len(self._place))
        shown = [facts for facts in rows if self._matches(facts)]
        return sorted(shown, key=lambda facts: self._place[facts.bucket.key])

    def sort(self, column: str, rows: Sequence[RowFacts]) -> None:
        """Give every row its place by a column of `SORTS`, once."""
        if column not in SORTS:
            return
        self.sorted_by = column
        ordered = sorted(rows, key=lambda facts: (SORTS[column](facts), self._place.get(facts.bucket.key, 0)))
        self._place = {facts.bucket.key: place for place, facts in enumerate(ordered)}

    def next_sort(self) -> str:
        names = list(SORTS)
        return names[(names.index(self.sorted_by) + 1) % len(names)] if self.sorted_by in names else names[0]

    def reset(self) -> None:
        """Back to no filter and the order of the station."""
        self._place.clear()
        self.sorted_by = self.needle = ""

    def _matches(self, facts: RowFacts) -> bool:
        if not self.needle:
            return True
        parts = [part or "" for part in key_parts(facts.bucket.key)[:3]]  # the version would match half of all typing
        parts += [numbers.temperature(facts.bucket.key.temperature), state_of(facts)[1]]
        return self.needle.casefold() in " ".join(parts).casefold()
