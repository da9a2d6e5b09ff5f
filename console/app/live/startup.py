"""What stands in the place of the bucket table while there is nothing to put into it. Pure."""

from __future__ import annotations

from typing import Final

from console.app.actions import ACTIONS, unmet
from console.app.drawing import numbers
from console.app.drawing.spans import EMPTY, Line, Role, clean, left, right, wrap
from console.app.live.demo import demo_lines
from console.app.live.first_request import curl_lines, python_lines
from console.app.live.remedies import remedy, what_happens
from console.app.picture import Picture
from console.app.replay.moment import span_text
from console.feed.messages import EngineView, Phase, PhaseState, ReplayView, Snapshot

PATIENCE_SECONDS: Final = 5.0
"""Without a first snapshot for this long, the screen says what to do."""

PHASE_GLYPHS: Final[dict[PhaseState, tuple[str, Role]]] = {
    "done": ("✓", "ok"),
    "running": ("◐", "accent"),
    "failed": ("■", "critical"),
    "pending": ("·", "faint"),
}


ROOMY: Final = 26
"""Lines from which on the first request is shown in Python too."""


def before_buckets(picture: Picture, width: int, height: int = 0) -> list[Line]:
    """Connecting, starting, or the hint how a first bucket comes to be."""
    if picture.snapshot is None:
        return _opening(picture, width) if picture.replaying else _connecting(picture, width)
    if picture.replay is not None:
        return _nothing_here(picture, picture.replay, width)
    if not picture.serving:
        return _starting(picture, width)
    return _no_bucket(picture, width, height)


def phase_lines(engine: EngineView, width: int) -> list[Line]:
    """The start-up, one phase a line with its time."""
    return [_phase(phase, width) for phase in engine.phases]


def phase_line(engine: EngineView) -> Line:
    """The start-up in one line; the whole time first once it is over."""
    if all(phase.state == "done" for phase in engine.phases):
        total = sum(phase.seconds or 0.0 for phase in engine.phases)
        parts = [f"{clean(phase.name)} {numbers.duration(phase.seconds or 0.0)}" for phase in engine.phases]
        return (("✓ ", "ok"), (numbers.duration(total), "text"), (f"   {', '.join(parts)}", "dim"))
    spans: list[tuple[str, Role]] = []
    for phase in engine.phases:
        glyph, role = PHASE_GLYPHS[phase.state]
        seconds = f" {numbers.duration(phase.seconds)}" if phase.seconds is not None else ""
        spans += [(f"{glyph} ", role), (clean(phase.name), "dim"), (f"{seconds}   ", "text")]
    return tuple(spans)


def _connecting(picture: Picture, width: int) -> list[Line]:
    waited = picture.now - picture.link.since
    lines: list[Line] = [_heading("Connecting to the station", numbers.duration(waited), width), EMPTY]
    if picture.link.action:
        lines += _dim(clean(picture.link.action), width)
    elif waited >= PATIENCE_SECONDS or picture.link.state == "lost":
        lines += _dim("Nothing answers. `specdeck status` says what runs; `specdeck serve` starts a station.", width)
    else:
        lines += _dim("The engine's start-up shows here as soon as the station says something.", width)
    return lines


def _opening(picture: Picture, width: int) -> list[Line]:
    waited = picture.now - picture.link.since
    lines: list[Line] = [_heading("Opening the trace", numbers.duration(waited), width), EMPTY]
    return lines + _dim(clean(picture.link.action) or "It shows and plays as soon as its first part is read.", width)


def _nothing_here(picture: Picture, view: ReplayView, width: int) -> list[Line]:
    """A moment of a replay in whose window nothing was decoded."""
    lines: list[Line] = [_heading(f"Nothing yet at {numbers.clock(picture.moment)}", "", width), EMPTY]
    first = f"The trace runs {span_text(view.start, view.end)}."
    if not view.complete:
        first = f"The trace is read to {numbers.clock(view.end)} so far."
    lines += _dim(first, width)
    lines += _dim("space plays on, . goes an engine step on, g goes to a time, n to the next alert.", width)
    return lines


def _starting(picture: Picture, width: int) -> list[Line]:
    lines: list[Line] = []
    for engine in picture.engines:
        since = numbers.duration(picture.moment - engine.started) if engine.started else ""
        title = f"Engine {clean(engine.engine)}: {engine.state}"
        lines += [_heading(title, since, width), EMPTY, *phase_lines(engine, width)]
        lines += [EMPTY, *_about(engine, width), EMPTY]
    if not lines:
        lines = [_heading("No engine yet", "", width), EMPTY, *_no_engine(picture, width), EMPTY]
    lines += _beside(picture, width)
    url = picture.base_url
    if url is not None and any(engine.state in ("starting", "restarting") for engine in picture.engines):
        return lines + _dim(
            f"Requests go to {clean(url)}/v1; they are answered once the engine is up. 7 shows its log.", width
        )
    return lines + _dim("7 shows the engine's log and its state; `specdeck doctor` checks this machine.", width)


def _about(engine: EngineView, width: int) -> list[Line]:
    """Why it does not serve, and the remedy; or what its start does now."""
    down = engine.state in ("failed", "lost", "stopped")
    why = clean(engine.detail)
    lines: list[Line] = [((f"  {text}", "critical" if down else "text"),) for text in wrap(why, width - 2)]
    if engine.state == "starting":
        return lines + _dim(what_happens(engine), width)
    if (known := remedy(why)) is not None:
        lines += [((f"  {text}", "bright"),) for text in wrap(known, width - 2)]
    if engine.state == "failed" and engine.owned:
        again = "next start" in why
        lines += _dim(
            "It is tried again by itself; settings change with the next `specdeck`, after `specdeck stop`."
            if again
            else "It is not tried again by itself: 7, then r, when that is mended; settings change with the next "
            "`specdeck`, after `specdeck stop`.",
            width,
        )
    return lines


def _no_engine(picture: Picture, width: int) -> list[Line]:
    if picture.snapshot is not None and picture.snapshot.policy is None:
        return _dim("This station observes a vLLM that it does not run: nothing was heard of that so far.", width)
    return _dim(
        "This station starts none: it listens for engines that you start with SPECDECK_SOCKET set; `specdeck status` "
        "names the socket.",
        width,
    )


def _beside(picture: Picture, width: int) -> list[Line]:
    """What else is wrong while nothing serves: the public port, the store."""
    snapshot, lines = picture.snapshot, list[Line]()
    if snapshot is None:
        return lines
    gateway = snapshot.gateway
    if gateway is not None and gateway.state == "down" and gateway.detail:
        lines += _trouble(f"{clean(gateway.url)} is down: {clean(gateway.detail)}", remedy(gateway.detail), width)
    if snapshot.store.error is not None:
        lines += _trouble(clean(snapshot.store.error), None, width)
    return lines


def _trouble(text: str, known: str | None, width: int) -> list[Line]:
    parts = wrap(text, width - 4)
    lines: list[Line] = [
        ((" ■ " if row == 0 else "   ", "critical"), (part, "critical")) for row, part in enumerate(parts)
    ]
    lines += [((f"   {part}", "bright"),) for part in wrap(known or "", width - 4)]
    return [*lines, EMPTY]


def _no_bucket(picture: Picture, width: int, height: int) -> list[Line]:
    snapshot = picture.snapshot
    lines: list[Line] = [_heading("No bucket yet", "", width), EMPTY, *_beside(picture, width)]
    if snapshot is None or snapshot.policy is None:
        return lines + _dim("This vLLM is only observed: its requests get one row together, once it drafts.", width)
    lines += _dim("Each workload × context × temperature gets a row here, with the first tokens of a request:", width)
    curl = curl_lines(picture, width - 2)
    lines += [EMPTY, *(((f"  {text}", "bright"),) for text in curl), EMPTY] if curl else [EMPTY]
    if height >= ROOMY:
        lines += [*(((f"  {text}", "text"),) for text in python_lines(picture)), EMPTY]
    calibration = snapshot.calibration
    if calibration is not None and calibration.state == "running":
        lines += [(("  ◐ ", "accent"), (f"calibrating: {clean(calibration.text)}", "text"))]
        lines += _dim("Step times are measured first, with requests of our own; the first of yours ends that.", width)
    return lines + _demo(picture, snapshot, width)


def _demo(picture: Picture, snapshot: Snapshot, width: int) -> list[Line]:
    """How the demo's traffic stands, or that there is such a thing."""
    if snapshot.demo is not None:
        return demo_lines(snapshot.demo, width)
    if picture.intent == "demo":
        return _dim("The sample traffic begins in a moment.", width)
    if unmet(ACTIONS["demo_traffic"], picture) is None:
        return [(("  d", "key"), ("  sends the demo's traffic for some minutes: four workloads, gently", "text"))]
    return [(("  specdeck demo", "bright"), ("  sends sample traffic of four workloads", "dim"))]


def _heading(title: str, time: str, width: int) -> Line:
    return ((left(f"  {title}", max(0, min(width, 64) - 8)), "bright"), (right(time, 8), "dim"))


def _dim(text: str, width: int) -> list[Line]:
    return [((f"  {part}", "dim"),) for part in wrap(text, min(width, 100) - 2)]


def _phase(phase: Phase, width: int) -> Line:
    glyph, role = PHASE_GLYPHS[phase.state]
    seconds = numbers.duration(phase.seconds) if phase.seconds is not None else ""
    room = max(0, min(width, 64) - 8 - 4 - 16)
    name_role: Role = "bright" if phase.state == "running" else "text" if phase.state != "pending" else "dim"
    return (
        (f"  {glyph} ", role),
        (left(clean(phase.name), 16), name_role),
        (left(clean(phase.detail), room), "dim"),
        (right(seconds, 8), "text" if phase.state == "done" else role),
    )
