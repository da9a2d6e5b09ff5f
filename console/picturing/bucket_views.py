"""Rows of the live table as the feed has them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from console.feed.messages import BucketView
from store.bucket_window import BucketWindow
from store.figures import BucketKey


class BucketViews:
    """Rows of the live table as the feed's, made anew only where they are others than last time: hundreds are not."""

    def __init__(self) -> None:
        self._made: dict[BucketKey, tuple[BucketWindow, BucketView]] = {}

    def of(self, windows: Iterable[BucketWindow]) -> list[BucketView]:
        last, self._made = self._made, {}
        for window in windows:
            made = last.get(window.key)
            if made is None or made[0] is not window:
                made = window, as_feed(BucketView, window)
            self._made[window.key] = made
        return [view for _, view in self._made.values()]


def as_feed(kind: Any, value: Any) -> Any:
    """A struct of the store as the feed's struct of the same fields: no field is copied by hand, none forgotten."""
    return kind(**{name: getattr(value, name) for name in kind.__struct_fields__})
