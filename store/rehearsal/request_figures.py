"""Figures of requests as clients met them: latency, misses, completion throughput, equal-arrival speedup.

Latency counts from the intended send time, so the wait that a slow engine makes is in it however late the generator
could send (coordinated omission).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from store.rehearsal.plan import Deadline
from store.rehearsal.records import Outcome
from store.rehearsal.result_records import Percentiles

UNFINISHED: Final = "unfinished"
"""Kind of error of a request that neither ended nor failed."""


def answered(one: Outcome) -> bool:
    """Whether the whole answer came."""
    return one.error is None and one.ended is not None


def failure(one: Outcome) -> str | None:
    """The kind of its error; None for one that was answered whole."""
    return None if answered(one) else one.error or UNFINISHED


def e2e(one: Outcome) -> float | None:
    """Seconds from the intended moment to the end of a whole answer."""
    return one.ended - one.at if one.error is None and one.ended is not None else None


def ttft(one: Outcome) -> float | None:
    """Seconds from the intended moment to the first token, if any came."""
    return None if one.first_token is None else one.first_token - one.at


def tpot(one: Outcome) -> float | None:
    """Mean seconds between the tokens of a whole answer after its first; None for an answer of one token or none."""
    if one.error is not None or one.ended is None or one.first_token is None or one.output_tokens < 2:
        return None
    return (one.ended - one.first_token) / (one.output_tokens - 1)


def missed(one: Outcome, deadline: Deadline) -> bool:
    """Whether it failed, or a deadline was not kept. An answer without tokens had come when it ended."""
    if one.error is not None or one.ended is None:
        return True
    first = one.ended if one.first_token is None else one.first_token
    limits = ((deadline.e2e, one.ended - one.at), (deadline.ttft, first - one.at), (deadline.tpot, tpot(one)))
    return any(limit is not None and took is not None and took > limit for limit, took in limits)


def percentiles(values: Iterable[float | None]) -> Percentiles | None:
    """Nearest rank: the smallest value that so many percent of the values don't exceed. None without any."""
    known = np.array([value for value in values if value is not None], dtype=float)
    if not len(known):
        return None
    p50, p90, p99 = np.percentile(known, (50, 90, 99), method="inverted_cdf").tolist()
    return Percentiles(n=len(known), p50=p50, p90=p90, p99=p99)


def completion_seconds(requests: Sequence[Outcome], start: float, end: float) -> float:
    """From the start of a phase to its end, or to the last answer to the requests that were meant for it."""
    return max([end, *(one.ended for one in requests if one.error is None and one.ended is not None)]) - start


def tokens(requests: Iterable[Outcome]) -> int:
    """Output tokens of the requests that were answered whole."""
    return sum(one.output_tokens for one in requests if answered(one))


def arrival_speedup(baseline: Iterable[Outcome], arm: Iterable[Outcome]) -> float | None:
    """Σ E2E of the baseline over Σ E2E of the arm, over the requests that both answered; None without any."""
    theirs = {one.id: one.ended - one.at for one in baseline if one.error is None and one.ended is not None}
    pairs = [
        (theirs[one.id], one.ended - one.at)
        for one in arm
        if one.error is None and one.ended is not None and one.id in theirs
    ]
    over, under = sum(a for a, _ in pairs), sum(b for _, b in pairs)
    return over / under if over > 0 and under > 0 else None
