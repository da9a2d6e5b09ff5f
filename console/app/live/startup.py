"""What stands in the place of the bucket table while there is nothing to put into it. Pure."""

from __future__ import annotations

from typing import Final

from console.app.drawing import numbers
from console.app.drawing.spans import EMPTY, Line, Role, clean, left, right, wrap
from console.app.picture import Picture
from console.app.replay.moment import span_text
from console.feed.messages import EngineView, Phase, PhaseState, ReplayView

PATIENCE_SECONDS: Final = 5.0
"""Without a first snapshot for this long, the screen says what to do."""

PHASE_GLYPHS: Final[dict[PhaseState, tuple[str, Role]]] = {
    "done": ("✓", "ok"),
    "running": ("◐", "accent"),
    "failed": ("■", "critical"),
    "pending": ("·", "faint"),
}


def before_buckets(picture: Picture, width: int) -> list[Line]:
    """Connecting, starting, or the hint how a first bucket comes to be."""
    if picture.snapshot is None:
        return _opening(picture, width) if picture.replaying else _connecting(picture, width)
    if picture.replay is not None:
        return _nothing_here(picture, picture.replay, width)
    if not picture.serving:
        return _starting(picture, width)
    return _no_bucket(picture, width)


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


def curl_lines(base_url: str, width: int) -> list[str]:
    """A request that makes a bucket, broken so that it can still be pasted into a shell."""
    body = '{"messages":[{"role":"user","content":"Hello"}],"max_tokens":64,"vllm_xargs":{"workload":"mine"}}'
    address = f"curl {base_url}/v1/chat/completions"
    header = "-H 'content-type: application/json'"
    one_line = f"{address} {header} -d '{body}'"
    if len(one_line) <= width:
        return [one_line]
    first, rest = body.split(',"vllm_xargs"')
    return [f"{address} \\", f"  {header} -d \\", f"  '{first},", f'    "vllm_xargs"{rest}\'']


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
        if engine.detail:
            role: Role = "critical" if engine.state in ("failed", "lost", "stopped") else "text"
            lines += [EMPTY, *((((f"  {text}"), role),) for text in wrap(clean(engine.detail), width - 2))]
        lines.append(EMPTY)
    if not lines:
        lines = [_heading("No engine yet", "", width), EMPTY]
    url = picture.base_url
    if url is not None and any(engine.state in ("starting", "restarting") for engine in picture.engines):
        lines += _dim(
            f"Requests go to {clean(url)}/v1; they are answered once the engine is up. 7 shows its log.", width
        )
    else:
        lines += _dim("7 shows the engine's log and its state; `specdeck doctor` checks this machine.", width)
    return lines


def _no_bucket(picture: Picture, width: int) -> list[Line]:
    lines: list[Line] = [_heading("No bucket yet", "", width), EMPTY]
    if picture.snapshot is not None and picture.snapshot.policy is None:
        return lines + _dim("This vLLM is only observed: its requests get one row together, once it drafts.", width)
    lines += _dim("Each workload × context × temperature gets a row here, with the first tokens of a request:", width)
    lines.append(EMPTY)
    url = picture.base_url
    if url is not None:
        lines += [((f"  {text}", "bright"),) for text in curl_lines(clean(url), width - 2)]
        lines.append(EMPTY)
    calibration = None if picture.snapshot is None else picture.snapshot.calibration
    if calibration is not None and calibration.state == "running":
        lines += [(("  ◐ ", "accent"), (f"calibrating: {clean(calibration.text)}", "text"))]
        lines += _dim("Step times are measured first, with requests of our own; the first of yours ends that.", width)
    elif picture.intent == "demo":
        lines += _dim("The sample traffic begins in a moment.", width)
    else:
        lines += [(("  specdeck demo", "bright"), ("  sends sample traffic of four workloads", "dim"))]
    return lines


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
