"""Which rows a figure is made from, and how a query picks them: one by one, or from cells where there are many."""

from __future__ import annotations

from typing import Final

import msgspec

from engine.records import CAUSES, LIMITS
from store.figure_sql import literals
from store.figures import BucketKey

CELL_SECONDS: Final = 10
"""As `store.levels`."""
CALIBRATION: Final = "specdeck-calibration"
"""As `store.buckets`: counted nowhere, so a pool leaves it out."""
RATIO_UNIT: Final = 232_792_560
"""As `store.counts`: what a sequence's sum of accepted/drafted is counted in."""

PREFILL: Final = CAUSES.index("prefill")


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of steps that ended in [start, end], Unix seconds, of one bucket; a key that is None is pooled over.

    `by_cells`: read the cells of 10 s, and single rows only where no cell is yet. They are kept for 7 days, rows for 48
    h; a snapshot of a live station holds rows of its last hour.
    """

    key: BucketKey
    start: float
    end: float
    engine: str | None = None
    by_cells: bool = False


def picked(scope: Scope) -> str:
    """The start of a query: `picked` has a line for each row, or for `n` equal ones.

    Columns: k_asked, set_by (the policy term), drafted, accepted, emitted (of all n), post_resume, n, decode_row,
    draft_step.
    """
    if not scope.by_cells:
        return f"""WITH picked AS (
  SELECT *, row_facts.limit AS set_by, 1 AS n FROM row_facts
  WHERE {within(scope)}{bucket_is(scope)})"""
    columns = "k_asked, limit_term, drafted, accepted, emitted, post_resume, cause"
    return f"""{cells_until(scope)},
part AS (
  SELECT {columns}, count::BIGINT AS n
  FROM rollup_10s
  WHERE {in_cells(scope)}
  UNION ALL
  SELECT {columns}, 1
  FROM rows r JOIN steps s ON r.step = s.id
  WHERE {in_rows(scope)}),
picked AS (
  SELECT *, {literals.names(LIMITS, "limit_term")} AS set_by,
    cause <> {PREFILL} AS decode_row,
    cause <> {PREFILL} AND drafted > 0 AS draft_step
  FROM part)"""


def per_sequence(scope: Scope) -> str:
    """The start of a query: `per` has a line for each sequence: its draft steps, and `ratio`, the sum over them of
    accepted/drafted. Sequences by their number: their names begin again with another run of an engine."""
    draft = f"cause <> {PREFILL} AND drafted > 0"
    row = f"sequence, ({draft})::INT AS steps,\n    if({draft}, accepted / drafted, 0) AS ratio"
    if not scope.by_cells:
        return f"""WITH part AS (
  SELECT {row}
  FROM rows r JOIN steps s ON r.step = s.id
  JOIN buckets b ON r.bucket = b.id
  WHERE {within(scope, "s.")}{bucket_is(scope, "b.")}),
{_PER}"""
    totals = "\n  UNION ALL\n  ".join(
        f"SELECT sequence, draft_steps AS steps, ratio / {RATIO_UNIT} AS ratio\n"
        f"  FROM {table}\n  WHERE {in_cells(scope)}"
        for table in ("sequence_rollup_10s", "sequence_totals")
    )
    return f"""{cells_until(scope)},
part AS (
  {totals}
  UNION ALL
  SELECT {row}
  FROM rows r JOIN steps s ON r.step = s.id
  WHERE {in_rows(scope)}),
{_PER}"""


_PER: Final = """per AS (
  SELECT sequence, sum(steps) AS steps, sum(ratio) AS ratio
  FROM part GROUP BY sequence)"""


def is_complete(scope: Scope) -> str:
    """Whether nothing that the query reads was removed meanwhile."""
    if not scope.by_cells:
        return f"{_up_to('raw_from')} < {literals.number(scope.start)}"
    cells = f"{_up_to('kept_10s')} <= {literals.number(first_cell(scope))}"
    return f"{cells}\n  AND {_up_to('raw_from')} < (SELECT ts FROM edge)"


def cells_until(scope: Scope) -> str:
    """The start of a query on cells: `bucket`, the numbers of the buckets, and `edge`, where the cells end."""
    last = literals.number(scope.end // CELL_SECONDS * CELL_SECONDS)
    return f"""WITH bucket AS (
  SELECT id FROM buckets WHERE true{bucket_is(scope)}),
edge AS (
  SELECT least(coalesce(max(up_to), 0), {last}) AS ts
  FROM progress WHERE name = 'rollup_10s')"""


def first_cell(scope: Scope) -> float:
    """A window begins with a cell, or in the one with which all records begin."""
    return scope.start // CELL_SECONDS * CELL_SECONDS


def in_cells(scope: Scope) -> str:
    """The cells of the window, in a table of cells."""
    first = literals.number(first_cell(scope))
    return f"cell >= {first} AND cell < (SELECT ts FROM edge)\n    AND bucket IN (FROM bucket)"


def in_rows(scope: Scope) -> str:
    """The rows after the last cell, with their steps as `s`."""
    start, end = literals.number(scope.start), literals.number(scope.end)
    return f"s.ts >= greatest({start}, (SELECT ts FROM edge))\n    AND s.ts <= {end} AND bucket IN (FROM bucket)"


def within(scope: Scope, prefix: str = "") -> str:
    """A condition on the end of a step."""
    start, end = literals.number(scope.start), literals.number(scope.end)
    return f"{prefix}ts >= {start} AND {prefix}ts <= {end}"


def bucket_is(scope: Scope, prefix: str = "") -> str:
    """Conditions on the names of a bucket, each after an AND on a line of its own."""
    known = {"engine": scope.engine, **msgspec.structs.asdict(scope.key)}
    parts = [f"{prefix}{name} = {literals.text(value)}" for name, value in known.items() if value is not None]
    if scope.key.workload is None:
        parts.append(f"{prefix}workload <> {literals.text(CALIBRATION)}")
    return "".join(f"\n    AND {part}" for part in parts)


def _up_to(name: str) -> str:
    return f"coalesce((SELECT max(up_to) FROM progress WHERE name = '{name}'), 0)"
