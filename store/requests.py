"""What single requests did, step by step, found by the id that their client was answered with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import duckdb

from engine.records import CAUSES, LIMITS, Lane
from store.sql import only_row

ASKED: Final = """(WITH cut AS (
  SELECT *, regexp_replace(regexp_replace(request, '^[0-9]+_', ''), '-[0-9a-f]{8}$', '') AS numbered,
    CASE WHEN starts_with(numbered, 'cmpl-') THEN regexp_replace(numbered, '-[0-9]+$', '') ELSE numbered END AS answered
  FROM sequences WHERE request IS NOT NULL)
SELECT *, CASE WHEN request IN (SELECT unnest($asked)) THEN request ELSE answered END AS asked_as
FROM cut
WHERE request IN (SELECT unnest($asked)) OR answered IN (SELECT unnest($asked)))"""
"""The sequences of the requests `$asked`, by client's ids or by vLLM's, each with `asked_as`, that id.

The client's id is in vLLM's own: a completion's prompts are numbered behind it (`cmpl-ID-0`), the choices of a
prompt before it (`1_cmpl-ID-0`), and eight random characters follow unless that is switched off."""

_SEQUENCES: Final = f"""SELECT asked.id, asked.ts, asked_as, engine, workload, disable_speculation, lane
FROM {ASKED} asked JOIN engines e ON engine_run = e.id ORDER BY asked.id"""

_STEPS: Final = """SELECT sequence, number, k_asked, limit_term, drafted, accepted, emitted, cause
FROM rows JOIN steps ON rows.step = steps.id
WHERE rows.step >= $first AND sequence >= $lowest AND sequence IN (SELECT unnest($found)) ORDER BY steps.id"""


class RequestStep(NamedTuple):
    """What a step did of a request; counts in tokens, `limit` and `cause` as in a row."""

    step: int
    """The engine's own number of it."""
    k_asked: int
    limit: str
    drafted: int
    accepted: int
    emitted: int
    cause: str


class RequestSteps(NamedTuple):
    """A sequence of a request: one that asked for several has as many of these."""

    request: str
    """As it was asked for."""
    engine: str
    workload: str
    disable_speculation: bool
    lane: Lane
    steps: list[RequestStep]
    """In the order of time; those that are removed by now are not among them."""


def request_steps(connection: duckdb.DuckDBPyConnection, requests: Iterable[str]) -> list[RequestSteps]:
    """The stored sequences of `requests`, which are ids as clients see them or as vLLM has them; by arrival."""
    asked = list(dict.fromkeys(requests))
    sequences = connection.execute(_SEQUENCES, {"asked": asked}).fetchall()
    if not sequences:
        return []
    steps: dict[int, list[RequestStep]] = {number: [] for number, *_ in sequences}
    (first,) = only_row(connection, "SELECT min(id) FROM steps WHERE ts >= ?", [min(ts for _, ts, *_ in sequences)])
    for sequence, step, k_asked, limit, drafted, accepted, emitted, cause in connection.execute(
        _STEPS, {"first": first, "lowest": min(steps), "found": list(steps)}
    ).fetchall():
        steps[sequence].append(RequestStep(step, k_asked, LIMITS[limit], drafted, accepted, emitted, CAUSES[cause]))
    return [
        RequestSteps(name, engine, workload, hinted, lane, steps[number])
        for number, _, name, engine, workload, hinted, lane in sequences
    ]
