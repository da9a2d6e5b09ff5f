"""The upper part of the Policy screen: the three columns, the schedule as a strip, limits, lane, drill. Pure."""

from __future__ import annotations

from typing import Final

from console.app.drawing import numbers
from console.app.drawing.spans import EMPTY, Line, Span, clean, cut, join, left, width_of
from console.app.map.facts import map_strip
from console.app.picture import Picture
from console.app.policy.columns import LABEL_WIDTH, UNKNOWN, column_reasons, column_row, column_titles
from console.app.policy.schedule_strip import strip_lines
from console.app.policy.words import mode_words
from console.feed.messages import CertificateView, GatewayView, Snapshot, UnconfirmedView

VANILLA: Final = "v0"
"""How the engine without speculation is called."""


def policy_lines(picture: Picture, width: int, roomy: bool) -> list[Line]:
    """What is asked, what executes, and the ways out. `roomy`: there are lines to spare for blank ones."""
    snapshot = picture.snapshot
    if snapshot is None:
        who = "the trace is open" if picture.replaying else "the station answers"
        return [((f"  The policy shows here as soon as {who}.", "dim"),)]
    blank = [EMPTY] if roomy else []
    lines = [*_columns(picture, width), *blank, *_in_force(picture, snapshot, width)]
    lines += _row("map", map_strip(snapshot.map, snapshot, width - LABEL_WIDTH))
    if snapshot.unconfirmed is not None:
        lines += _row("", [_waiting(snapshot.unconfirmed, snapshot.ts, width)])
    if not picture.replaying or snapshot.gateway is not None:
        lines += [*blank, *_row("lane", [_lane(snapshot.gateway, width)])]
    if not picture.replaying or snapshot.certificate is not None:
        lines += _row("drill", [_drill(snapshot.certificate, snapshot.ts)])
    if snapshot.calibration is not None and snapshot.calibration.state in ("waiting", "running"):
        lines += _row("calibrates", [(("◐ ", "accent"), (clean(snapshot.calibration.text), "text"))])
    return [cut(line, width) for line in lines]


def _columns(picture: Picture, width: int) -> list[Line]:
    if picture.snapshot is not None and picture.snapshot.policy is None:
        return [UNKNOWN]
    if not picture.engines and picture.replaying:
        return [(("  No engine has told of itself up to this moment.", "dim"),)]
    if not picture.engines:
        return [(("  No engine: `specdeck serve` starts one; an own `vllm serve` appears by itself.", "dim"),)]
    lines = [column_titles(width, "engine")]
    for engine in picture.engines:
        lines += [column_row(engine, width, clean(engine.engine)), *column_reasons(engine, width)]
    return lines


def _in_force(picture: Picture, snapshot: Snapshot, width: int) -> list[Line]:
    """The base K over batch size, and what the operator put over it."""
    if snapshot.policy is None:
        return _row("in force", [(("it is only observed: its policy is set where it was started", "dim"),)])
    max_k = max((engine.max_k or 0 for engine in picture.engines), default=0) or None
    strip = strip_lines(snapshot.policy, max_k, snapshot.running, width - LABEL_WIDTH)
    cap: Line = EMPTY if snapshot.cap is None else ((f"cap {snapshot.cap}", "warn"),)
    fallback: Line = (("◆ fallback for all: K 0, f ends it", "fallback"),) if snapshot.fallback else EMPTY
    limits = join([cap, fallback], ("   ", "text"))
    if len(strip) == 1 and width_of(strip[0]) + width_of(limits) + 4 <= width - LABEL_WIDTH:
        return _row("K by batch", [join([strip[0], limits], ("    ", "text"))])
    return _row("K by batch", [*strip, *([limits] if limits else [])])


def _waiting(waiting: UnconfirmedView, now: float, width: int) -> Line:
    base = [clean(mode_words(waiting.reverts_to) if width >= 110 else numbers.mode(waiting.reverts_to))]
    base += [f"cap {waiting.cap}"] if waiting.cap is not None else []
    base += ["fallback for all"] if waiting.fallback else []
    left_over = numbers.countdown(waiting.confirm_by - now)
    return (
        ("◔ ", "accent"),
        (f"reverts to {', '.join(base)} in ", "text"),
        (left_over, "accent"),
        (" unless confirmed: ", "text"),
        ("y", "key"),
    )


def _lane(gateway: GatewayView | None, width: int) -> Line:
    if gateway is None:
        return (("there is no gateway: requests go to the engine directly", "dim"),)
    if not gateway.vanilla_engine:
        hint = "   `--vanilla-engine` starts one of its own" if width >= 100 else ""
        return (("vanilla: K = 0 in the same engine", "text"), (hint, "dim"))
    own = f"vanilla: an engine of its own ({VANILLA})"
    spilled = numbers.count(gateway.vanilla_spilled)
    if not gateway.vanilla_ok:
        so_far = f"   {spilled} request{'s' * (gateway.vanilla_spilled != 1)} so far" if width >= 100 else ""
        return (("▲ ", "warn"), (f"{own}, away: K = 0 instead", "warn"), (so_far, "dim"))
    beside = f", {spilled} at K = 0 while it was away" if gateway.vanilla_spilled else ""
    return (
        ("● ", "ok"),
        (own, "text"),
        (f"   {numbers.count(gateway.vanilla_requests)} request{'s' * (gateway.vanilla_requests != 1)}{beside}", "dim"),
    )


def _drill(certificate: CertificateView | None, now: float) -> Line:
    if certificate is None:
        return (("none yet: `specdeck drill` makes one", "dim"),)
    verdict = f"{'passed' if certificate.passed else 'failed'} {numbers.duration(now - certificate.ts)} ago"
    said: Span = (f": {clean(certificate.text)}" if certificate.text else "", "dim")
    if certificate.stale is not None:
        return (("▲ ", "warn"), (f"stale: {clean(certificate.stale)}", "warn"), (f"   it {verdict}", "dim"), said)
    if certificate.passed:
        return (("● ", "ok"), (verdict, "text"), said)
    return (("■ ", "critical"), (verdict, "critical"), said)


def _row(label: str, contents: list[Line]) -> list[Line]:
    return [
        ((left(f"   {label if row == 0 else ''}", LABEL_WIDTH), "dim"), *content)
        for row, content in enumerate(contents)
    ]
