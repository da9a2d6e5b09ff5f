"""When the engine first turned to a request: from its own records, found by the id of the answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import duckdb

from store.rehearsal.records import Outcome
from store.requests import ASKED
from store.sql import only_row

_BEGUN: Final = f"""SELECT asked_as, min(steps.ts - duration_ms / 1000)
FROM {ASKED} asked JOIN rows ON rows.sequence = asked.id JOIN steps ON rows.step = steps.id
WHERE rows.step >= $first GROUP BY asked_as"""

_FIRST: Final = f"SELECT min(id) FROM steps WHERE ts >= (SELECT min(asked.ts) FROM {ASKED} asked)"


def begun(connection: duckdb.DuckDBPyConnection, requests: Iterable[str]) -> dict[str, float]:
    """By request id (as its client was answered, or vLLM's own) the start of the first recorded step with a row of it,
    Unix seconds. Requests without a row are left out.

    The pieces of a long prompt before its last make no rows, so their steps count as waiting too.
    """
    asked = list(dict.fromkeys(requests))
    (first,) = only_row(connection, _FIRST, {"asked": asked})
    if first is None:
        return {}
    return dict(connection.execute(_BEGUN, {"asked": asked, "first": first}).fetchall())


def waiting(connection: duckdb.DuckDBPyConnection, outcomes: Sequence[Outcome], start: float) -> dict[str, float]:
    """By `Outcome.id` the seconds from the intended moment to when the engine first turned to the request, at least 0.

    Args:
        start: Unix seconds of moment 0 (`Pass.start`).

    Outcomes that the engine's records know nothing of are left out: those that were never answered, too.
    """
    starts = begun(connection, (one.request for one in outcomes if one.request is not None))
    return {
        one.id: max(0.0, starts[one.request] - (start + one.at))
        for one in outcomes
        if one.request is not None and one.request in starts
    }
