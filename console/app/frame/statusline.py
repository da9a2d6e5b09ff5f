"""The lines that are always there: status above, alerts and keys below."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from console.app.actions import Action, key_name, label_of, spare_of, unmet
from console.app.drawing import numbers
from console.app.drawing.spans import EMPTY, Line, Part, Role, Span, between, clean, clip, cut, fit, join, width_of
from console.app.frame.news import news_mark, news_words
from console.app.live.columns import slower
from console.app.live.demo import demo_part
from console.app.picture import Picture, pending_policy
from console.app.rehearsal.words import rehearsal_part
from console.app.replay.clock import speed_text
from console.feed.messages import AlertView, EngineView, Snapshot

SEVERITY: Final[dict[str, tuple[str, Role]]] = {
    "info": ("·", "dim"),
    "warn": ("▲", "warn"),
    "critical": ("■", "critical"),
}


SCREENS_SPARE: Final = 4
"""The names of the screens go before the screens' own keys do; that there are screens never goes."""


ROOMY: Final = 110
"""From so many cells on what came in during a pause is said in words."""


def status_line(picture: Picture, width: int) -> Line:
    """Mode, executed K, load, tokens/s, acceptance and speedup now, alerts, loss; the clock at the right."""
    snapshot = picture.snapshot
    start: Line = ((" specdeck", "title"),)
    end = (*_situation(picture, width), (_clock(picture), "dim"), (" ", "text"))
    parts = [Part(start, 0)]
    if snapshot is None:
        parts.append(Part(((_connecting(picture), "dim"),), 1))
        return between(fit(parts, width), end, width)
    first = snapshot.engines[0] if snapshot.engines else None
    parts += [
        Part(_identity(first), 9, _models(first)),
        Part(_engine_trouble(picture), 1),
        Part(_mode(snapshot), 1),
        Part(_executed(picture), 1),
        rehearsal_part(snapshot.rehearsal),
        _recording(picture, snapshot),
        demo_part(snapshot.demo),
        Part((("run ", "dim"), (numbers.plain(snapshot.running), "text")), 3),
        Part((("wait ", "dim"), (numbers.plain(snapshot.waiting), "warn" if snapshot.waiting else "text")), 6),
        Part((*_rate(snapshot), (" tok/s", "dim")), 2),
        Part(_alpha(snapshot), 5),
        Part(_speedup(snapshot), 4 if snapshot.total is not None and snapshot.total.speedup is not None else 10),
        Part(_alert_counts(picture), 0),
        Part(_loss(snapshot), 4),
    ]
    line = fit(parts, width - width_of(end) - 1)
    if picture.link.state == "lost":
        line = tuple((text, "dim") for text, _ in line)
    return between(line, end, width)


def told_alert(picture: Picture) -> AlertView | None:
    """The alert that the alert line tells of: a critical one that began while the picture was held, else the
    gravest."""
    if picture.link.state == "lost":
        return None
    if picture.news is not None and picture.news.critical is not None:
        return picture.news.critical
    return next(iter(picture.firing), None)


def alert_line(picture: Picture, width: int) -> Line:
    """The gravest thing to know now in one line; the last event where there is none."""
    if picture.link.state == "lost":
        return cut(((" ■ ", "critical"), *_lost(picture)), width)
    told, firing = told_alert(picture), picture.firing
    if told is not None and told not in firing:
        return between(_alert(told), (("new while held ", "warn"),), width)
    if told is not None:
        more: Line = ((f"{len(firing)} alerts ", "dim"),) if len(firing) > 1 else EMPTY
        return between(_alert(told), more, width)
    if picture.paused_since is not None:
        came = news_words(picture.news) or "nothing new"
        held = f" Held since {numbers.clock(picture.paused_since)}: {came}. p shows the newest."
        return cut(((held, "dim"),), width)
    if picture.snapshot is not None and picture.snapshot.events:
        event = picture.snapshot.events[-1]
        return cut(((f" {numbers.clock(event.ts)}  ", "faint"), (clean(event.text), "dim")), width)
    return EMPTY


def key_line(actions: Iterable[Action], picture: Picture, keymap: Mapping[str, str], width: int, current: str) -> Line:
    """The keys that do something here and now, the screens first: those as one where there is little room."""
    known = [action for action in actions if action.shown and unmet(action, picture) is None]
    screens = [action for action in known if action.keys.isdigit()]
    parts = [_screens(screens, picture, keymap, current)] if screens else []
    parts += [
        Part(_key(action, picture, keymap, current), spare_of(action, picture))
        for action in known
        if not action.keys.isdigit()
    ]
    return ((" ", "text"), *fit(parts, width - 1))


def _screens(screens: Sequence[Action], picture: Picture, keymap: Mapping[str, str], current: str) -> Part:
    names = [key_name(action, keymap) for action in screens]
    here = next((label_of(action, picture) for action in screens if action.id == current), "screens")
    short: Line = ((f"{names[0]}-{names[-1]}", "key"), (f" {here}", "bright"))
    return Part(join([_key(action, picture, keymap, current) for action in screens]), SCREENS_SPARE, short, 0)


def _key(action: Action, picture: Picture, keymap: Mapping[str, str], current: str) -> Line:
    role: Role = "bright" if action.id == current else "dim"
    return ((key_name(action, keymap), "key"), (f" {label_of(action, picture)}", role))


def _identity(engine: EngineView | None) -> Line:
    if engine is None or not engine.target:
        return EMPTY
    return (
        *_models(engine),
        (" ".join([" · vllm", *filter(None, (short_version(engine.vllm), engine.device))]), "dim"),
    )


def _models(engine: EngineView | None) -> Line:
    if engine is None or not engine.target:
        return EMPTY
    names = [short_model(engine.target), short_model(engine.drafter) or engine.method]
    return ((" · ".join(name for name in names if name), "dim"),)


def short_model(name: str) -> str:
    """A model's name without revision, fingerprint or folder, at most 28 cells."""
    return clip(clean(name).split("@")[0].split(" ")[0].rstrip("/").split("/")[-1], 28)


def short_version(version: str) -> str:
    """`0.32.0+cpu` as `0.32.0`."""
    return clean(version).split("+")[0]


def _engine_trouble(picture: Picture) -> Line:
    parts: list[Span] = []
    for engine in picture.engines:
        if engine.state == "serving":
            continue
        name = clean(engine.engine)
        if engine.state in ("starting", "restarting"):
            known = engine.state == "starting"
            since = f" {numbers.duration(picture.moment - engine.started)}" if engine.started and known else ""
            parts.append((f"◐ {name} {engine.state}{since}", "accent"))
        else:
            parts.append((f"■ {name} {engine.state}", "critical"))
    return join([(part,) for part in parts])


def _mode(snapshot: Snapshot) -> Line:
    if snapshot.policy is None:
        return (("mode unknown", "dim"),)
    waiting = [engine for engine in snapshot.engines if engine.state == "serving" and pending_policy(engine)]
    mark: Line = ((" applying…", "accent"),) if waiting else EMPTY
    cap: Line = ((f" cap {snapshot.cap}", "warn"),) if snapshot.cap is not None else EMPTY
    fallback: Line = ((" ◆ fallback", "fallback"),) if snapshot.fallback else EMPTY
    waits: Line = EMPTY
    if snapshot.unconfirmed is not None:
        waits = ((f" ◔ {numbers.countdown(snapshot.unconfirmed.confirm_by - snapshot.ts)}", "accent"),)
    return ((numbers.mode(snapshot.policy), "bright"), *cap, *fallback, *waits, *mark)


def _executed(picture: Picture) -> Line:
    """`K 4`, `K 4→1 ▼` where a fixed K is not what is executed, `K 1 ≠` where nothing explains it."""
    assert picture.snapshot is not None
    drafting = [engine for engine in picture.serving if engine.max_k != 0]  # one without speculation is always at 0
    executed = sorted({engine.executed_k for engine in drafting if engine.executed_k is not None})
    if not executed:
        return EMPTY
    shown = f"{executed[0]}" if len(executed) == 1 else f"{executed[0]}–{executed[-1]}"
    policy = picture.snapshot.policy
    configured = None if policy is None else 0 if policy.mode == "off" else policy.k
    differs = configured is not None and executed != [configured]
    unexplained = any(engine.unexplained for engine in picture.serving)
    if not differs and not unexplained:
        return (("K ", "dim"), (shown, "bright"))
    role: Role = "critical" if unexplained else "warn"
    if not differs:
        return (("K ", "dim"), (f"{shown} ≠", role))
    arrow = "▼" if configured is not None and executed[0] < configured else "▲"
    return (("K ", "dim"), (f"{configured}→{shown} {arrow}", role))


def _rate(snapshot: Snapshot) -> Line:
    rate = snapshot.tokens_per_second
    text = numbers.rate(rate) if rate is None or rate < 99.5 else numbers.count(round(rate))
    return ((text, "bright" if rate else "dim"),)


def _alpha(snapshot: Snapshot) -> Line:
    alpha = snapshot.total.alpha if snapshot.total is not None else None
    return (("α ", "dim"), (numbers.fraction(alpha), "text"))


def _speedup(snapshot: Snapshot) -> Line:
    total = snapshot.total
    if total is None or total.speedup is None:
        return (("speedup —", "dim"),)
    width = numbers.half_width(total.speedup_low, total.speedup_high)
    role: Role = "warn" if slower(total) else "text" if total.speedup_state == "ok" else "dim"
    return ((f"{total.speedup:.2f}×", role), (f" ±{width}" if width else "", "dim"))


def _alert_counts(picture: Picture) -> Line:
    counted = dict.fromkeys(("critical", "warn"), 0)
    for alert in picture.firing:
        if alert.severity in counted:
            counted[alert.severity] += 1
    return join(
        [((f"{SEVERITY[name][0]}{number}", SEVERITY[name][1]),) for name, number in counted.items() if number],
        (" ", "text"),
    )


def _recording(picture: Picture, snapshot: Snapshot) -> Part:
    if snapshot.recording is None:
        return Part(EMPTY)
    from console.app.traces.words import recording_part  # seldom needed, and not for the first paint

    return recording_part(snapshot.recording, picture.now)


def _loss(snapshot: Snapshot) -> Line:
    loss = snapshot.loss
    lost = loss.frames_lost + loss.quarantined + loss.unattributed + loss.broken_messages
    return ((f"lost {numbers.count(lost)}", "warn"),) if lost else EMPTY


def _situation(picture: Picture, width: int) -> Line:
    """Words that must never be out of sight: disconnected, paused, replay, read-only."""
    words: list[Line] = []
    if picture.link.state == "lost":
        words.append((("DISCONNECTED", "critical"),))
    if picture.paused_since is not None:
        words.append(_paused(picture, picture.paused_since, width))
    if picture.replaying:
        speed = f" {speed_text(picture.replay.speed)}" if picture.replay is not None else ""
        words.append((("REPLAY", "accent"), (speed, "dim")))
    elif picture.snapshot is not None and not picture.snapshot.store.recording:
        words.append((("NOT RECORDING", "critical"),))
    if picture.exporting:
        words.append(((picture.exporting, "accent"),))
    if picture.read_only:
        words.append((("read-only", "dim"),))
    line = join(words)
    return (*line, ("  ", "text")) if line else EMPTY


def _paused(picture: Picture, since: float, width: int) -> Line:
    """How long the picture has been held, and what came in since."""
    came = news_words(picture.news) if width >= ROOMY else news_mark(picture.news)
    held = numbers.countdown(picture.now - since)
    return (("PAUSED ", "warn"), (held, "dim"), (f" {came}" if came else "", "text"))


def _clock(picture: Picture) -> str:
    """The time that is shown; of a replay that stands still to the millisecond, so that a step shows."""
    still = picture.replay is not None and not picture.replay.playing
    return numbers.fine_clock(picture.moment) if still else numbers.clock(picture.moment)


def _connecting(picture: Picture) -> str:
    return "opening the trace" if picture.replaying else "connecting to the station"


def _lost(picture: Picture) -> Line:
    since = numbers.clock(picture.link.since)
    ago = numbers.duration(picture.now - picture.link.since)
    if picture.replaying:
        what = clean(picture.link.action or "the replay process does not answer; q leaves")
        return ((what, "critical"), (f"  since {since} ({ago}). What is shown is the last picture.", "text"))
    remedy = picture.link.action or "`specdeck serve` starts a station"
    why = f" ({clean(picture.link.reason)})" if picture.link.reason != remedy else ""
    return (
        (f"disconnected since {since} ({ago})", "critical"),
        (f": {clean(remedy)}. What is shown is the last picture.{why}", "text"),
    )


def _alert(alert: AlertView) -> Line:
    glyph, role = SEVERITY[alert.severity]
    return ((f" {glyph} ", role), (clean(alert.text), "text"), (f"  since {numbers.clock(alert.started)}", "dim"))
