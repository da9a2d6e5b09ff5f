"""What `=` does: marks a bucket; on another one compares the two, on the same one asks with what of its past."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from console.app.compare.questions import Question, of_one, two_buckets
from console.app.live.columns import bucket_name
from console.feed.messages import BucketView

if TYPE_CHECKING:
    from console.app.application import SpecdeckApp


class CompareDesk:
    def __init__(self, app: SpecdeckApp) -> None:
        self._app = app

    def press(self, bucket: BucketView, shown: Sequence[BucketView], now: float) -> None:
        """`shown`: all buckets of the picture, with the figures that it shows; `now`: its moment, Unix seconds."""
        marked = self._app.picture.compared
        other = next((one for one in shown if one.key == marked), None)
        if marked is None or other is None:
            self._app.show_compared(bucket.key)
            self._app.tell(
                f"{bucket_name(bucket.key)} is marked: = on another bucket, or = again for its own past. esc drops it.",
                seconds=3.0,  # it would lie over what the next key leads to
            )
            return
        self._app.show_compared(None)
        if marked != bucket.key:
            self._open(two_buckets(other, bucket, now))
            return
        from console.app.compare.dialog import CompareDialog

        self._app.push_screen(CompareDialog(of_one(bucket, [one.key for one in shown], now)), self._open)

    def _open(self, question: Question | None) -> None:
        from console.app.compare.page import ComparePage

        if question is not None:
            self._app.push_screen(ComparePage(question))
