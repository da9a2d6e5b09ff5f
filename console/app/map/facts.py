"""Under the grid of the operating map: the proposed schedule beside what runs now, and what it is of. Pure."""

from __future__ import annotations

from typing import Final

from console.app.drawing import numbers
from console.app.drawing.spans import Line, clean, cut, left, wrap
from console.app.frame.statusline import short_version
from console.app.map import words
from console.app.picture import Picture
from console.app.policy.schedule_strip import strip_lines
from console.feed.messages import MapSummary, Snapshot
from engine.records import PolicyMode
from store.operating_map.fingerprint import Fingerprint
from store.operating_map.records import OperatingMap

LABEL: Final = 12


def map_title(map_: OperatingMap, now: float, width: int) -> str:
    """What the map is: of which plan, how old, over what."""
    repeats = f"{map_.repeats} repeat{'s' * (map_.repeats != 1)}"
    when = f"{numbers.day(map_.ts)} {numbers.minutes(map_.ts)}, " if width >= 100 else ""
    once = " · one pass: nothing promised" if map_.repeats < 2 else ""
    age = words.age_words(map_.ts, now)
    return f"map of plan {map_.plan} · {when}{age} · {repeats} · gain over {map_.baseline}{once}"


def map_facts(map_: OperatingMap, picture: Picture, width: int, terse: bool) -> list[Line]:
    """`terse`: lines are short, and what the map is of must wait for `enter`."""
    snapshot = picture.snapshot
    stale = snapshot.map.stale if snapshot is not None and snapshot.map is not None else []
    lines = schedule_rows(map_, picture, width)
    lines += [] if terse else _row("of", [((fingerprint_words(map_.fingerprint), "text"),)])
    if stale:
        refused = f"stale, {words.stale_words(stale)}. It is refused as a policy source; r measures anew."
        parts = wrap(clean(refused), max(20, width - LABEL - 2))
        lines += [((left("   ▲" if row == 0 else "", LABEL), "warn"), (part, "warn")) for row, part in enumerate(parts)]
    if map_.notes and width >= 110:
        lines += _row("note", [((clean(note), "dim"),) for note in map_.notes[:2]])
    return [cut(line, width) for line in lines]


def schedule_rows(map_: OperatingMap, picture: Picture, width: int) -> list[Line]:
    """The proposed schedule as a strip, and beneath it what runs now."""
    snapshot = picture.snapshot
    running = snapshot.running if snapshot is not None else None
    max_k = max((engine.max_k or 0 for engine in picture.engines), default=0) or None
    lines: list[Line] = []
    if map_.schedule is None:
        lines += _row("proposed", [(("no schedule: too little of the mix was measured", "dim"),)])
    else:
        mode = PolicyMode(mode="schedule", schedule=map_.schedule)
        lines += _row("proposed", strip_lines(mode, map_.fingerprint.max_k, running, width - LABEL))
    if snapshot is not None and snapshot.policy is not None:
        lines += _row("runs now", strip_lines(snapshot.policy, max_k, running, width - LABEL))
    return lines


def map_strip(summary: MapSummary | None, snapshot: Snapshot, width: int) -> list[Line]:
    """The map's K over batch size for the Policy screen, marked where it is stale; nothing without a map."""
    if summary is None or summary.schedule is None:
        return []
    mode = PolicyMode(mode="schedule", schedule=summary.schedule)
    if not summary.stale:
        return strip_lines(mode, None, snapshot.running, width)
    strip = strip_lines(mode, None, None, max(10, width - 8))
    dimmed: list[Line] = [tuple((text, "dim") for text, _ in line) for line in strip]
    why: Line = ((f"   {clean(words.stale_words(summary.stale))}", "dim"),) if len(strip) == 1 else ()
    return [(("▲ stale ", "warn"), *dimmed[0], *why), *dimmed[1:]]


def fingerprint_words(of: Fingerprint) -> str:
    """What the map is of; the model, which is long, comes last and may be cut: `enter` shows all."""
    engine = f"vLLM {short_version(of.vllm)}, {of.topology}, K ≤ {of.max_k}, batch ≤ {of.max_num_seqs}"
    return clean(f"{of.hardware} · {engine} · {of.model_version}")


def _row(label: str, contents: list[Line]) -> list[Line]:
    return [
        ((left(f"   {label}" if row == 0 else "", LABEL), "dim"), *content) for row, content in enumerate(contents)
    ]  # fmt: skip
