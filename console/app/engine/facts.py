"""The upper half of the Engine screen: what runs, and configured | resolved | executed with why they differ. Pure."""

from __future__ import annotations

from console.app.drawing import numbers
from console.app.drawing.spans import EMPTY, Line, Part, Role, Span, between, clean, cut, fit, left, wrap
from console.app.frame.statusline import short_version
from console.app.live.startup import phase_line
from console.app.picture import Picture
from console.app.policy.columns import UNKNOWN, column_reasons, column_row, column_titles, policy_versions
from console.app.replay.moment import span_text
from console.feed.messages import EngineView, ReplayView, Snapshot

STATES: dict[str, tuple[str, Role]] = {
    "serving": ("●", "ok"),
    "starting": ("◐", "accent"),
    "restarting": ("◐", "accent"),
    "stopped": ("○", "dim"),
    "lost": ("■", "critical"),
    "failed": ("■", "critical"),
}

GATEWAY_STATES: dict[str, tuple[str, Role]] = {
    "serving": ("●", "ok"),
    "starting": ("◐", "accent"),
    "down": ("■", "critical"),
}


def engine_lines(picture: Picture, width: int, roomy: bool) -> list[Line]:
    """Everything about the engines, the gateway and the store. `roomy`: there are lines to spare for blank ones."""
    if picture.snapshot is None:
        who = "trace is open" if picture.replaying else "station answers"
        return [((f"  No engine is known before the {who}.", "dim"),)]
    lines: list[Line] = []
    for engine in picture.engines:
        lines += _engine(engine, picture, width, roomy)
    if not picture.engines:
        nothing = "`specdeck serve` starts one; an own `vllm serve` appears by itself."
        here = "none has told of itself up to this moment."
        lines.append(((f"  No engine: {here if picture.replaying else nothing}", "dim"),))
    view = picture.replay
    lines += _surroundings(picture.snapshot, width) if view is None else _trace(view, picture.snapshot, width)
    return [cut(line, width) for line in lines]


def _engine(engine: EngineView, picture: Picture, width: int, roomy: bool) -> list[Line]:
    lines = [_head(engine, picture, width)]
    if engine.detail:
        role: Role = "critical" if engine.state in ("failed", "lost") else "text"
        lines += [((f"   {text}", role),) for text in wrap(clean(engine.detail), width - 3)]
    lines += _what_runs(engine, width)
    blank = [EMPTY] if roomy else []
    observed = picture.snapshot is not None and picture.snapshot.policy is None
    lines += [*blank, *([UNKNOWN] if observed else _three_columns(engine, width))]
    if engine.phases:
        lines += [*blank, (*_label("start-up"), *cut(phase_line(engine), max(0, width - 14)))]
    return [*lines, *blank]


def _head(engine: EngineView, picture: Picture, width: int) -> Line:
    glyph, role = STATES[engine.state]
    parts = [
        Part(((f" {glyph} ", role), (clean(engine.engine), "bright"), (f" {engine.state}", role)), 0),
        Part(_pair("for", numbers.duration(picture.moment - engine.started)) if engine.started else EMPTY, 2),
        Part(_pair("pid", str(engine.pid)) if engine.pid else EMPTY, 3),
        Part(_pair("restarts", str(engine.restarts), "warn" if engine.restarts else "text"), 1),
        Part(_pair("last frame", f"{numbers.duration(engine.last_frame_age)} ago"), 4)
        if engine.last_frame_age is not None
        else Part(EMPTY),
        Part((("not started by specdeck: no restart from here", "dim"),), 5)
        if not engine.owned and not picture.replaying
        else Part(EMPTY),
    ]
    return fit(parts, width, ("   ", "text"))


def _what_runs(engine: EngineView, width: int) -> list[Line]:
    if not engine.target:
        return []
    parallel = "" if engine.data_parallel_size in (None, 1) else f", data parallel {engine.data_parallel_size}"
    length = "" if engine.max_model_len is None else f" of {engine.max_model_len} tokens"
    fixed = engine.batch_k == "fixed"
    batch = "fixed: sequences are trimmed, drafting is not saved" if fixed else engine.batch_k or numbers.ABSENT
    scheduling = {None: numbers.ABSENT, True: "asynchronous", False: "synchronous"}[engine.async_scheduling]
    up_to_k, sequences = numbers.plain(engine.max_k), numbers.plain(engine.max_num_seqs)
    facts = [
        ("target", clean(engine.target)),
        ("drafter", clean(engine.drafter) + (f" (method {engine.method})" if engine.method else "")),
        ("vllm", f"{short_version(engine.vllm) or numbers.ABSENT} on {clean(engine.device) or numbers.ABSENT}"),
        ("scheduling", scheduling + parallel),
        ("K", f"up to {up_to_k}, batch K {batch}"),
        ("sequences", f"up to {sequences}{length}"),
    ]
    if width < 100:
        trimmed = ", drafting not saved" if fixed else ""
        return [
            (*_label("runs"), (f"{facts[0][1]} + {facts[1][1]}, K up to {up_to_k}{trimmed}", "text")),
            (*_label("on"), (f"vllm {facts[2][1]}, {facts[3][1]}, {facts[5][1]}", "text")),
        ]
    half = width // 2
    return [_two(facts[index], facts[index + 1], half) for index in range(0, len(facts), 2)]


def _three_columns(engine: EngineView, width: int) -> list[Line]:
    return [
        column_titles(width),
        column_row(engine, width),
        *column_reasons(engine, width),
        policy_versions(engine),
    ]


def _surroundings(snapshot: Snapshot, width: int) -> list[Line]:
    lines: list[Line] = []
    gateway = snapshot.gateway
    if gateway is not None:
        glyph, role = GATEWAY_STATES[gateway.state]
        numbers_: Line = (
            (f"{numbers.count(gateway.requests)} request{'s' * (gateway.requests != 1)}", "text"),
            (
                f"  {numbers.count(gateway.errors)} error{'s' * (gateway.errors != 1)}",
                "warn" if gateway.errors else "dim",
            ),
            (f"  {numbers.count(gateway.unavailable)} found no engine" if gateway.unavailable else "", "dim"),
        )
        detail = f"  {clean(gateway.detail)}" if gateway.detail else ""
        start: Line = (*_label("gateway"), (f"{glyph} ", role), (clean(gateway.url), "text"), (detail, "dim"))
        lines.append(between(start, numbers_, width - 1))
    store = snapshot.store
    amount: Line = ((f"{numbers.count(store.rows)} rows  {numbers.size(store.bytes)}", "text"),)
    recording: Span = ("● ", "ok") if store.recording else ("■ ", "critical")
    lines.append(between((*_label("store"), recording, (clean(store.path), "text")), amount, width - 1))
    if store.error:
        lines.append((*_label(""), (clean(store.error), "critical")))
    lines.append(_losses(snapshot))
    return lines


def _trace(view: ReplayView, snapshot: Snapshot, width: int) -> list[Line]:
    """What is replayed, and what is odd about it."""
    amount: Line = ((f"{numbers.count(snapshot.store.rows)} rows", "text"),)
    lines = [between((*_label("trace"), (clean(view.path), "text")), amount, width - 1)]
    read = "" if view.complete else f"  {view.loaded_share * 100:.0f} % read so far"
    lines.append((*_label("recorded"), (span_text(view.start, view.end), "text"), (read, "accent")))
    for note in view.notes:
        parts = wrap(clean(note), max(20, width - 17))
        lines += [(*_label("note" if row == 0 else ""), (part, "warn")) for row, part in enumerate(parts)]
    return [*lines, _losses(snapshot)]


def _losses(snapshot: Snapshot) -> Line:
    loss = snapshot.loss
    facts = [
        (loss.gaps, "gaps"),
        (loss.frames_lost, "frames lost"),
        (loss.quarantined, "rows quarantined"),
        (loss.unattributed, "unattributed"),
        (loss.broken_messages, "broken messages"),
    ]
    present: list[Span] = [(f"{numbers.count(number)} {name}  ", "warn") for number, name in facts if number]
    return (*_label("loss"), *(present or [("nothing lost", "dim")]))


def _label(name: str) -> Line:
    return ((left(f"   {name}", 14), "dim"),)


def _pair(name: str, value: str, role: Role = "text") -> Line:
    return ((f"{name} ", "dim"), (value, role))


def _two(first: tuple[str, str], second: tuple[str, str], half: int) -> Line:
    return (*_label(first[0]), (left(first[1], half - 14), "text"), *_label(second[0]), (second[1], "text"))
