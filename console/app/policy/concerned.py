"""In which bucket the effect of a change is looked at. Pure."""

from __future__ import annotations

from console.app.picture import Picture
from store.figures import BucketKey


def bucket_of(picture: Picture, workload: str | None, last: BucketKey | None) -> BucketKey | None:
    """Of a workload, or of all (None): the bucket that was looked at `last` if it is one of them, else the one that
    emits most. None: there is none."""
    buckets = picture.snapshot.buckets if picture.snapshot is not None else []
    mine = [bucket for bucket in buckets if workload is None or bucket.key.workload == workload]
    if any(bucket.key == last for bucket in mine):
        return last
    best = max(mine, key=lambda bucket: bucket.figures.emitted or 0, default=None)
    return None if best is None else best.key
