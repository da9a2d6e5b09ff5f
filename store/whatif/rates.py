"""Wall seconds that each engine would have needed for the same tokens: steps of another length, pauses as they were."""

from __future__ import annotations

from typing import NamedTuple

from store.whatif.costs import Outlook
from store.whatif.reading import Record
from store.whatif.sums import Asked, Known


class Rate(NamedTuple):
    """Wall seconds of one engine: expected, and the bounds of the 95 % interval."""

    expected: float
    short: float
    long: float


def engine_rates(asked: Asked, known: Known, record: Record) -> dict[str, Rate | str]:
    """Of each engine whose rows were looked at: its seconds under the policy, or why they aren't known."""
    found: dict[str, Rate | str] = {}
    looked_at = [bucket for _, bucket in record.buckets if known.rows[bucket.place]]
    for runner in sorted({bucket.runner for bucket in looked_at}):
        wall = known.wall[runner.engine]
        before = found.get(runner.engine, Rate(wall, wall, wall))
        costs = asked.costs.get(runner)
        outlook = "the record has no step times" if costs is None else costs.outlook()
        if isinstance(before, str) or isinstance(outlook, str):
            found[runner.engine] = before if isinstance(before, str) else str(outlook)
        else:
            found[runner.engine] = _moved(before, outlook, known.decode_seconds[runner])
    return found


def _moved(rate: Rate, outlook: Outlook, decode_seconds: float) -> Rate:
    return Rate(*(wall + decode_seconds * (ratio - 1) for wall, ratio in zip(rate, outlook, strict=True)))
