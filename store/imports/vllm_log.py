"""vLLM's log: its lines "SpecDecoding metrics: …" and "Engine 000: Avg prompt throughput: …" as observations.

Formats: vllm/v1/spec_decode/metrics.py and vllm/v1/metrics/loggers.py of vLLM 0.32, whatever stands before them. One
round of the log is an engine's line and, if anything was drafted since the round before, the other one after it; an
idle engine logs none. Draft and accepted tokens are exact, the rest is derived from rounded figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import tzinfo
from itertools import groupby, pairwise
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple

from store.imports.draft_steps import estimated_draft_steps
from store.imports.errors import ImportFailed
from store.imports.log_lines import DraftLine, EngineLine, LogLine, Unreadable, parse_line
from store.imports.log_stamps import NoSuchDay, dated, first_year, year_offsets
from store.imports.observations import Observation, Observed
from store.imports.texts import decoded_anyhow, modified, read

USUAL_INTERVAL: Final = 10.0
"""Seconds between rounds (VLLM_LOG_STATS_INTERVAL) where a log doesn't show them."""
_SAME_ROUND: Final = 2.0
"""Seconds between the two lines of a round, at most."""
_IDLE: Final = 1.5
"""Rounds further apart than this many intervals have idle ones between them, which are not logged."""
_NAMED_LINES: Final = 5
_NO_YEAR: Final = 1970
_SAY_YEAR: Final = "say with --year in which year the log begins"


class Round(NamedTuple):
    """One round of the log. A line that is missing is None."""

    engine: str
    ts: float
    load: EngineLine | None
    drafts: DraftLine | None
    source: str


def read_logs(files: Sequence[Path], year: int | None = None, zone: tzinfo | None = None) -> Observed:
    """Logs of one server, in any order, as observations.

    Args:
        year: of the first stamp of each file; else the last stamp of a file is taken to be at most a day after the
            file's modification time. A stamp that falls back by half a year or more begins a new year.
        zone: of the stamps; None is local time. A stamp that names year or zone keeps its own.

    Raises:
        ImportFailed: a file can't be read, or holds no line of statistics.
    """
    rounds: list[Round] = []
    notes: list[str] = []
    for file in files:
        lines, unreadable = _statistics(file)
        times, note = _times(file, lines, year, zone)
        rounds += _rounds(lines, times, str(file))
        notes += note + _about_unreadable(file, unreadable)
        if not any(isinstance(line.said, DraftLine) for line in lines):
            notes.append(f"{file}: no line of SpecDecoding metrics in it: nothing was drafted")
    rounds.sort(key=attrgetter("engine", "ts"))
    observations = [
        observation for _, group in groupby(rounds, attrgetter("engine")) for observation in _observations(list(group))
    ]
    return Observed(sorted(observations, key=attrgetter("ts")), notes)


def _statistics(file: Path) -> tuple[list[LogLine], list[int]]:
    """Lines of statistics, and the numbers of those that can't be read."""
    found: list[LogLine] = []
    unreadable: list[int] = []
    for number, text in enumerate(decoded_anyhow(read(file)).split("\n"), 1):
        try:
            line = parse_line(text, number)
        except Unreadable:
            unreadable.append(number)
            continue
        if line is not None:
            found.append(line)
    if not found:
        if unreadable:
            raise ImportFailed(file, unreadable[0], "a line of statistics that is not whole, and there is no other")
        raise ImportFailed(
            file, None, "no line of statistics in it: give the log of a vLLM server that ran at level INFO without"
            " --disable-log-stats",
        )  # fmt: skip
    return found, unreadable


def _times(file: Path, lines: list[LogLine], year: int | None, zone: tzinfo | None) -> tuple[list[float], list[str]]:
    """Unix seconds of each line, and a note on how they were found."""
    bare = [line.stamp for line in lines if not line.stamp.has_year]
    notes = []
    try:
        if year is None and bare:
            year = first_year(bare[-1], year_offsets(bare)[-1], modified(file, zone))
            notes.append(f"{file}: its stamps name no year; by the file's modification time it begins in {year}")
        times = dated([line.stamp for line in lines], _NO_YEAR if year is None else year, zone)
    except NoSuchDay as error:
        raise ImportFailed(file, error.line, f"{error}: {_SAY_YEAR}") from error
    if min(times) <= 0:
        raise ImportFailed(file, lines[times.index(min(times))].stamp.line, f"a time before 1970: {_SAY_YEAR}")
    return times, notes


def _rounds(lines: Iterable[LogLine], times: Iterable[float], source: str) -> Iterator[Round]:
    """Both lines of a round together. A line of drafts belongs to the engine that its process spoke of last."""
    last: dict[str | None, Round] = {}
    for line, ts in zip(lines, times, strict=True):
        before = last.get(line.process)
        if isinstance(line.said, EngineLine):
            if before is not None:
                yield before
            last[line.process] = Round(line.said.engine, ts, line.said, None, source)
            continue
        if before is not None and before.drafts is None and abs(ts - before.ts) <= _SAME_ROUND:
            last[line.process] = before._replace(drafts=line.said)
            continue
        if before is not None:
            yield before
        last[line.process] = Round(before.engine if before else "e0", ts, None, line.said, source)
    yield from last.values()


def _observations(rounds: list[Round]) -> Iterator[Observation]:
    """Observations of one engine from its rounds in the order of time. Each begins where the one before ended, or an
    interval earlier than it ends where the engine was idle between."""
    interval = _interval(rounds)
    before: Round | None = None
    for one in rounds:
        gap = one.ts - before.ts if before is not None else 0.0
        yield _observation(one, gap if 0 < gap <= _IDLE * interval else interval)
        before = one


def _interval(rounds: list[Round]) -> float:
    """Seconds between rounds: what most neighbours have between them, if that is seen twice or shorter than usual."""
    gaps = Counter(later.ts - earlier.ts for earlier, later in pairwise(rounds) if later.ts > earlier.ts)
    gap, times = min(gaps.items(), key=lambda item: (-item[1], item[0]), default=(USUAL_INTERVAL, 1))
    return gap if times > 1 else min(gap, USUAL_INTERVAL)


def _observation(one: Round, seconds: float) -> Observation:
    drafts = one.drafts or DraftLine(0, 0, None, [])
    steps = estimated_draft_steps(drafts.accepted, drafts.drafted, drafts.length, drafts.rates)
    load = one.load
    return Observation(
        engine=one.engine,
        since=one.ts - seconds,
        ts=one.ts,
        drafts=steps,
        draft_tokens=drafts.drafted,
        accepted_tokens=drafts.accepted,
        accepted_per_position=[round(steps * rate) for rate in drafts.rates],
        generation_tokens=None if load is None else round(load.generation_rate * seconds),
        prompt_tokens=None if load is None or load.prompt_rate is None else round(load.prompt_rate * seconds),
        running=load.running if load else None,
        waiting=load.waiting if load else None,
        approximate=True,
        source=one.source,
    )


def _about_unreadable(file: Path, lines: list[int]) -> list[str]:
    if not lines:
        return []
    named = ", ".join(map(str, lines[:_NAMED_LINES])) + (", …" if len(lines) > _NAMED_LINES else "")
    return [f"{file}: lines of statistics that are not whole were left out ({len(lines)}): {named}"]
