"""What the judge knows of a bucket, for the screen."""

from __future__ import annotations

from store.buckets import BucketName
from store.judge.alerts import BucketView
from store.judge.bucket import BucketMemory
from store.judge.compare import Sums, common_depth, deepest, plain
from store.judge.inputs import Floats
from store.judge.moments import estimate
from store.judge.places import key_of
from store.judge.settings import JudgeSettings


def view_of(
    name: BucketName, bucket: BucketMemory, seen: float, drafted: float, now: float, settings: JudgeSettings
) -> BucketView:
    """
    Args:
        seen, drafted: ends of the last cells with decode rows and with judged draft steps, Unix seconds.
        now: record time.
    """
    baseline, pinned = bucket.baseline.usable(now, settings), bucket.baseline.usable_pinned(now)
    recent = next((track.recent[-1] for track in bucket.tracks if track.recent), None)
    known = recent is not None or bool(bucket.baseline.windows)
    present = None if recent is None else plain(recent.sums)
    depth = _depth(present, baseline, settings)
    quiet = is_quiet(bucket, seen, drafted, settings)
    blind = known and (quiet or (baseline is not None and present is not None and depth is None))
    shown = depth or (None if baseline is None else deepest(plain(baseline), settings))
    level, sequences = _level(baseline, shown)
    pinned_level, pinned_sequences = _level(pinned, shown)
    return BucketView(
        engine=name[0],
        bucket=key_of(name),
        state="blind" if blind else "learning" if baseline is None and pinned is None else "ok",
        depth=shown,
        baseline=level,
        baseline_sequences=sequences,
        pinned=pinned_level,
        pinned_sequences=pinned_sequences,
        probe_wanted=blind,
        alert=bucket.pending if bucket.standing is None else bucket.standing.alert,
    )


def is_quiet(bucket: BucketMemory, seen: float, drafted: float, settings: JudgeSettings) -> bool:
    """Whether it decodes and nothing is drafted that could be judged."""
    return seen - max(drafted, bucket.first) >= settings.blind_seconds


def _depth(present: Sums | None, baseline: Floats | None, settings: JudgeSettings) -> int | None:
    """The depth at which the last window compares; without a baseline, the deepest it has."""
    if present is None:
        return None
    return common_depth(present, present if baseline is None else plain(baseline), settings)


def _level(sums: Floats | None, depth: int | None) -> tuple[float | None, int | None]:
    if sums is None or depth is None or depth >= len(sums):
        return None, None
    found = estimate(sums[depth].tolist())
    return (None, None) if found is None else (round(found.value, 4), found.n)
