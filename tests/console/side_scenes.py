"""What a station of the console's tests answers of fixed windows and of sides of a comparison."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from console.feed.fixed_window import FixedFigures
from console.feed.messages import Snapshot
from store.comparing.sides import Depth, Measured, Run, Setting, Side
from store.figures import BucketKey, Figures, Window
from store.window_spans import SPANS, place_of
from tests.console import scenes

OLDER = "SmolLM2-135M-Instruct+ngram/ngram@vllm-0.31.0"


def fixed(window: float, snapshot: Snapshot) -> FixedFigures:
    """Ten times the sequences in each, and another pooled waste."""
    place = place_of(window)
    assert place is not None
    buckets = [
        replace(
            bucket, window_label=SPANS[place][2],
            figures=replace(
                bucket.figures, sequences=(bucket.figures.sequences or 0) * 10,
                window=Window(snapshot.ts - window, snapshot.ts),
            ),
        )
        for bucket in snapshot.buckets
    ]  # fmt: skip
    total = None if snapshot.total is None else replace(snapshot.total, waste_ratio=0.33)
    return FixedFigures(ts=snapshot.ts, window=window, total=total, buckets=buckets)


def side(asked: dict[str, Any]) -> Side:
    """Of the last hours everything as in `scenes.four_workloads`; before, `code` did better at the same K, `chat` was
    asked for K 2 alone, `repeat` was not there, and a cap held. Under another version `code` did worse."""
    earlier = asked["end"] < scenes.NOW - 1
    buckets = [_measured(bucket.figures, earlier) for bucket in scenes.four_workloads()]
    if earlier:
        buckets = [one for one in buckets if one.figures.workload != "repeat"]
    if asked["end"] - asked["start"] > 86_400 and "model_version" in asked["by"]:
        buckets.append(_measured(scenes.figures(scenes.key("code", version=OLDER), 0.4, 20.0), False))
    settings = [
        Setting("e0", "target", ["SmolLM2-135M-Instruct"]),
        Setting(None, "cap", ["3" if earlier else "none"]),
        Setting(None, "lane of creative", ["vanilla"]),
    ]
    return Side(
        source="live", start=asked["start"], end=asked["end"], window=Window(asked["start"], asked["end"]),
        keys=asked["by"], buckets=buckets, total=None, settings=settings,
        runs=[Run("e0", scenes.NOW - 90_000, "b0")], quarantined=0, gaps=1 if earlier else 0,
        frames_lost=12 if earlier else 0, notes=[],
    )  # fmt: skip


def _measured(figures: Figures, earlier: bool) -> Measured:
    alpha = figures.alpha
    if earlier and figures.workload == "code":
        figures = scenes.figures(BucketKey("code", "0-512", "0", scenes.VERSION), 0.61, 90.0, 400)
        alpha = 0.61
    if earlier and figures.workload == "chat":
        figures = replace(figures, k_histogram={"2": 2910}, drafted_histogram={"2": 2910})
    if alpha is None:
        return Measured(figures)
    deep = 2 if earlier and figures.workload == "chat" else 4
    return Measured(figures, [Depth(alpha + 0.1 - m / 50, alpha - 0.02, alpha + 0.18, 900, 97) for m in range(deep)])
