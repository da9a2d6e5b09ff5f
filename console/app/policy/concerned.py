"""In which bucket the effect of a change is looked at. Pure."""

from __future__ import annotations

from console.app.picture import Picture
from store.figures import BucketKey


def bucket_of(picture: Picture, workload: str | None, last: BucketKey | None) -> BucketKey | None:
    """Of a workload the bucket that emits most. Of what concerns all (None) the one that was looked at `last`, else
    also the one that emits most. None: there is none."""
    buckets = picture.snapshot.buckets if picture.snapshot is not None else []
    mine = [bucket for bucket in buckets if workload is None or bucket.key.workload == workload]
    keys = [bucket.key for bucket in mine]
    if last in keys and (workload is None or len(keys) == 1):
        return last
    best = max(mine, key=lambda bucket: bucket.figures.emitted or 0, default=None)
    return None if best is None else best.key
