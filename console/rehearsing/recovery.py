"""Whether acceptance came back with K: the same prompts at the same K before speculation was turned down and after."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Final, NamedTuple

import numpy as np

from console.feed.protocol import RequestRows
from console.rehearsing.client import PublicPort
from console.rehearsing.proving import decode_rows
from console.rehearsing.trying import Trying
from console.traffic.prompts import WORKLOADS, prompts

TOKENS: Final = 32
_OF_EACH: Final = 2
_MARGIN: Final = 0.05
"""A fall that is not shown to be larger is no failure: a batch that is put together otherwise rounds otherwise."""

_ONE_PAIR_MARGIN: Final = 0.2


class Accepted(NamedTuple):
    """`by_prompt`: acceptance rate of each prompt's draft steps, None where it drafted nothing at that K."""

    by_prompt: list[float | None]
    rate: float | None
    """Over all draft steps."""
    draft_steps: int


async def accepted(port: PublicPort, trying: Trying, k: int, workload: str) -> Accepted:
    """Send the prompts one after the other, each for the most likely answer, and read what was accepted at K = `k`.

    Raises:
        NotServed: a request was not answered.
        RowsMissing: what was executed for one is not recorded.
    """
    texts = [prompt[-1].content for kind in WORKLOADS for prompt in prompts(kind)[:_OF_EACH]]
    answers = [await port.complete(text, TOKENS, workload, header={}, body={}) for text in texts]
    return _accepted([_rates(found, k) for found in await trying.rows(answers)])


def not_recovered(before: Accepted, after: Accepted) -> str | None:
    """Why acceptance is not what it was; None when it is, or when nothing was drafted before either.

    By the differences of the prompts, each with itself (paired t, one-sided at 0.975): the fall is told where it is
    shown to be more than `_MARGIN`.
    """
    if before.rate is None:
        return None
    if after.rate is None:
        return f"acceptance before was {before.rate:.2f}, and after the return the same prompts drafted nothing"
    pairs = [
        later - earlier
        for earlier, later in zip(before.by_prompt, after.by_prompt, strict=True)
        if earlier is not None and later is not None
    ]
    least = _least_fall(pairs)
    if least is None or least <= _MARGIN:
        return None
    return (
        f"acceptance was {before.rate:.2f} before and {after.rate:.2f} after the return on the same {len(pairs)} "
        f"prompts: a fall of at least {least:.2f}"
    )


def _least_fall(pairs: Sequence[float]) -> float | None:
    """Lower bound of the mean fall."""
    if not pairs:
        return None
    if len(pairs) == 1:
        return -float(pairs[0]) - _ONE_PAIR_MARGIN
    from scipy.stats import t

    spread = float(np.std(pairs, ddof=1)) / sqrt(len(pairs))
    return -float(np.mean(pairs)) - float(t.ppf(0.975, len(pairs) - 1)) * spread


def _rates(found: RequestRows, k: int) -> list[float]:
    return [row.accepted / row.drafted for row in decode_rows(found) if row.k_asked == k and row.drafted > 0]


def _accepted(rates: Sequence[Sequence[float]]) -> Accepted:
    pooled = [rate for one in rates for rate in one]
    means = [float(np.mean(one)) if one else None for one in rates]
    return Accepted(means, float(np.mean(pooled)) if pooled else None, len(pooled))
