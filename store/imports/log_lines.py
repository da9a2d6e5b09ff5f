"""One line of vLLM's log: what an engine did since its line before, or what was drafted in that time."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from store.imports.log_stamps import Stamp, stamp_in

_COLOUR: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_MARK: Final = re.compile(r"SpecDecoding metrics: |Avg generation throughput: ")
_PROCESS: Final = re.compile(r"\bpid=(\d{1,10})\b", re.ASCII)

_WHOLE: Final = r"(\d{1,15})(?![\d.])"
_DECIMAL: Final = r"(\d{1,12}(?:\.\d{1,6})?)(?![\d.])"
_ACCEPTED: Final = re.compile(rf"\bAccepted: {_WHOLE} tokens", re.ASCII)
_DRAFTED: Final = re.compile(rf"\bDrafted: {_WHOLE} tokens", re.ASCII)
_LENGTH: Final = re.compile(rf"\bMean acceptance length: {_DECIMAL}", re.ASCII)
_RATES: Final = re.compile(r"\bPer-position acceptance rate: ([01]\.\d+(?:, *[01]\.\d+){0,1023})(?![\d.])", re.ASCII)
_ENGINE: Final = re.compile(r"\bEngine (\d{1,6}): ", re.ASCII)
_TOGETHER: Final = re.compile(r"\b(\d{1,6}) Engines Aggregated: ", re.ASCII)
_PROMPT: Final = re.compile(rf"\bAvg prompt throughput: {_DECIMAL} tokens/s", re.ASCII)
_GENERATION: Final = re.compile(rf"\bAvg generation throughput: {_DECIMAL} tokens/s", re.ASCII)
_RUNNING: Final = re.compile(rf"\bRunning: {_WHOLE} reqs", re.ASCII)
_WAITING: Final = re.compile(rf"\bWaiting: {_WHOLE} reqs", re.ASCII)


class DraftLine(NamedTuple):
    """ "SpecDecoding metrics: …": tokens since the engine's last round, the others as printed."""

    accepted: int
    drafted: int
    length: float | None
    rates: list[float]


class EngineLine(NamedTuple):
    """ "Engine 000: …": rates in tokens/s since the engine's last round, requests at its end."""

    engine: str
    prompt_rate: float | None
    generation_rate: float
    running: int | None
    waiting: int | None


class LogLine(NamedTuple):
    """`process`: the pid that stands before the line; the two lines of a round come from one process."""

    stamp: Stamp
    process: str | None
    said: DraftLine | EngineLine


class Unreadable(ValueError):
    """A line of statistics that lacks something, was cut off, or says what can't be."""


def parse_line(text: str, number: int) -> LogLine | None:
    """What line `number` says; None for a line of another kind.

    Raises:
        Unreadable: it is a line of statistics, and not whole.
    """
    if "SpecDecoding metrics: " not in text and "Avg generation throughput: " not in text:
        return None
    text = _COLOUR.sub("", text)
    mark = _MARK.search(text)
    if mark is None:
        return None
    before = text[: mark.start()]
    stamp = stamp_in(before, number)
    if stamp is None:
        raise Unreadable
    process = _PROCESS.search(before)
    said = _draft_line(text[mark.start() :]) if mark.group().startswith("Spec") else _engine_line(text)
    return LogLine(stamp, process.group(1) if process else None, said)


def _draft_line(text: str) -> DraftLine:
    accepted, drafted, length, rates = (rule.search(text) for rule in (_ACCEPTED, _DRAFTED, _LENGTH, _RATES))
    if accepted is None or drafted is None or (length is None and rates is None):
        raise Unreadable
    line = DraftLine(
        int(accepted.group(1)),
        int(drafted.group(1)),
        float(length.group(1)) if length else None,
        [float(rate) for rate in rates.group(1).split(",")] if rates else [],
    )
    if (
        line.accepted > line.drafted
        or any(rate > 1 for rate in line.rates)
        or (line.length is not None and line.length < 1)
    ):
        raise Unreadable
    return line


def _engine_line(text: str) -> EngineLine:
    generation = _GENERATION.search(text)
    if generation is None:
        raise Unreadable
    prompt, running, waiting = (rule.search(text) for rule in (_PROMPT, _RUNNING, _WAITING))
    return EngineLine(
        _engine(text),
        float(prompt.group(1)) if prompt else None,
        float(generation.group(1)),
        int(running.group(1)) if running else None,
        int(waiting.group(1)) if waiting else None,
    )


def _engine(text: str) -> str:
    """`e0` for `Engine 000`; `2 engines` where vLLM logs all ranks of data parallelism together."""
    if together := _TOGETHER.search(text):
        return f"{int(together.group(1))} engines"
    alone = _ENGINE.search(text)
    return f"e{int(alone.group(1))}" if alone else "e0"
