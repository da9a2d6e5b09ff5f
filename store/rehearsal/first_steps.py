"""When the engine began with each request: the start of the first step that has a row of it."""

from __future__ import annotations

from typing import Final

import duckdb

_FIRST: Final = """SELECT
  CASE WHEN starts_with(numbered, 'cmpl-') THEN regexp_replace(numbered, '-[0-9]+$', '') ELSE numbered END AS answered,
  request, min(steps.ts - steps.duration_ms / 1000) AS began
FROM (SELECT id, request,
    regexp_replace(regexp_replace(request, '^[0-9]+_', ''), '-[0-9a-f]{8}$', '') AS numbered
  FROM sequences WHERE request IS NOT NULL) q
JOIN rows ON rows.sequence = q.id JOIN steps ON rows.step = steps.id GROUP BY ALL"""
"""An id as the client sees it is cut out of vLLM's as in `store.requests`."""


def first_scheduled(connection: duckdb.DuckDBPyConnection) -> dict[str, float]:
    """By request id, as the client was answered and as vLLM has it, Unix seconds; the earliest of its sequences."""
    found: dict[str, float] = {}
    for answered, request, began in connection.execute(_FIRST).fetchall():
        for name in (answered, request):
            found[name] = min(began, found.get(name, began))
    return found
