"""What the recorded rows of a request say about a way out. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from console.feed.protocol import RequestRow, RequestRows
from engine.records import Limit


def decode_rows(found: RequestRows) -> list[RequestRow]:
    return [row for row in found.rows if row.cause != "prefill"]


def drafted(found: RequestRows) -> int:
    """Tokens, in all rows."""
    return sum(row.drafted for row in found.rows)


def limits(found: RequestRows) -> dict[str, int]:
    """Decode rows by the term that set their K."""
    return dict(Counter(row.limit for row in decode_rows(found)))


def unprovable(control: RequestRows) -> str | None:
    """Why nothing can be proved now, by a request that should have drafted; None when it did."""
    if drafted(control) > 0:
        return None
    asked = [row for row in decode_rows(control) if row.k_asked > 0]
    if asked:
        causes = ", ".join(sorted({row.cause for row in asked}))
        return (
            f"not provable now: K up to {max(row.k_asked for row in asked)} was asked, and nothing drafted ({causes})"
        )
    terms = ", ".join(f"`{term}`" for term in limits(control)) or "no row"
    return f"not provable now: without a way out K is 0 already (limit {terms})"


def faults(forced: RequestRows, limit: Limit, drafting_engine: str) -> Iterator[str]:
    """What shows that a way out did not hold for the request on which it was forced. An engine other than
    `drafting_engine` is the one without speculation: its rows need no term."""
    rows = decode_rows(forced)
    if not rows:
        yield "no decode row of the request was recorded"
    drafting = [row for row in forced.rows if row.drafted > 0]
    if drafting:
        yield (
            f"draft tokens: {drafted(forced)}, in {len(drafting)} of {len(forced.rows)} rows, the first in step "
            f"{drafting[0].step}"
        )
    others = {term: count for term, count in limits(forced).items() if term != limit}
    if others and forced.engine == drafting_engine:
        told = ", ".join(f"`{term}` in {count}" for term, count in others.items())
        yield f"of {len(rows)} decode rows the limit is {told}, not `{limit}`"


def faults_beside(forced: RequestRows, beside: RequestRows) -> Iterator[str]:
    """What shows that a neighbour which ran in the same steps was touched; also where none ran."""
    engine_differs = forced.engine != beside.engine
    steps = {row.step for row in forced.rows}
    shared = [row for row in decode_rows(beside) if engine_differs or row.step in steps]
    touched = {row.limit for row in shared} & {"hint", "lane"}
    if not shared:
        yield "no request ran beside it: nothing shows that neighbours are untouched"
    elif touched or not any(row.drafted for row in shared):
        terms = ", ".join(f"`{row}`" for row in sorted({row.limit for row in shared}))
        yield f"the request beside it drafted {sum(row.drafted for row in shared)} tokens (limit {terms})"
