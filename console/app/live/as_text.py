"""A row of the bucket table as text to be copied: every figure with its name, its interval and its sample. Pure."""

from __future__ import annotations

from console.app.drawing import numbers
from console.app.drawing.spans import clean
from console.app.live.columns import RowFacts, main_k, state_of
from console.feed.messages import BucketView


def named_figures(facts: RowFacts) -> list[str]:
    """`name: value`, a line each; those that the table has no room for too."""
    bucket, figures = facts.bucket, facts.bucket.figures
    key = bucket.key
    named = {
        "workload": key.workload or "all",
        "context": key.context or "all",
        "temperature": numbers.temperature(key.temperature) if key.temperature else "all",
        "model version": key.model_version or "all",
        "window": _window(bucket),
        "n": f"{'unknown' if figures.sequences is None else f'{figures.sequences:,}'} sequences",
        "state": state_of(facts)[1],
        "α": _interval(figures.alpha, figures.alpha_low, figures.alpha_high),
        "AL": numbers.two_places(figures.mean_acceptance_length),
        "waste": numbers.fraction(figures.waste_ratio),
        "K": numbers.plain(main_k(bucket)),
        "K mix": " ".join(f"{k}: {share:.0%}" for k, share in enumerate(bucket.k_mix) if share) or numbers.ABSENT,
        "speedup": f"{_interval(figures.speedup, figures.speedup_low, figures.speedup_high)}"
        f"{'' if figures.speedup_state == 'ok' else f' ({figures.speedup_state})'}",
        "tokens/s": numbers.rate(figures.tokens_per_second),
    }
    if facts.alert is not None:
        named["alert"] = facts.alert.text
    return [f"{name}: {clean(value)}" for name, value in named.items()]


def _window(bucket: BucketView) -> str:
    window = bucket.figures.window
    if window is None:
        return bucket.window_label
    stretch = f"{numbers.clock(window.start)} – {numbers.clock(window.end)}"
    return f"{bucket.window_label} ({numbers.day(window.end)}, {stretch})"


def _interval(value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return numbers.ABSENT
    return f"{value:.3f}" if low is None or high is None else f"{value:.3f} ({low:.3f} to {high:.3f}, 95 %)"
