"""Totals of whole sequences: what remains of their 10-s cells, booked in the cell of their last row.

A sequence that is cut into cells must never be counted as if its pieces were sequences (the error comes out at a third
of the truth), so what is kept for long is kept whole.
"""

from __future__ import annotations

from typing import Final

import duckdb

from store.sql import only_row

_SUMS: Final = "sum(count), sum(draft_steps), sum(ratio), {reached}, {matched}, sum(resumed), sum(resumed_ratio)"


def summed(depth: int) -> str:
    """Sums of sequence totals, as the columns of `sequence_totals` after `sequence`. `depth`: the longest list."""
    lists = {
        name: f"[{', '.join(f'coalesce(sum({name}[{m}]), 0)' for m in range(1, depth + 1))}]::UINTEGER[]"
        for name in ("reached", "matched")
    }
    return _SUMS.format(**lists)


def book_whole_sequences(connection: duckdb.DuckDBPyConnection, before: float) -> None:
    """Replace the cells of every sequence whose last one lies before `before` by one total per bucket."""
    rows, depth = only_row(
        connection,
        "SELECT count(*), coalesce(max(len(reached)), 0) FROM sequence_rollup_10s WHERE cell < ?",
        [before],
    )
    if not rows:
        return
    whole = f"""cell < {before!r} AND sequence NOT IN
                (SELECT DISTINCT sequence FROM sequence_rollup_10s WHERE cell >= {before!r})"""
    connection.execute(
        f"""INSERT INTO sequence_totals SELECT max(cell), bucket, sequence, {summed(depth)}
            FROM sequence_rollup_10s WHERE {whole} GROUP BY bucket, sequence"""
    )
    connection.execute(f"DELETE FROM sequence_rollup_10s WHERE {whole}")
