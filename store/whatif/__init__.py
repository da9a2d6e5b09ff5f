"""What another policy would have done with the traffic of a record: re-run over the token positions that it knows.

`what_if` answers; `figures` has what it answers with, and imports neither DuckDB nor numpy. How it is done, part by
part: `positions` (what a record says of each token), `walk` (a policy over them), `hazards` (what stands in for what
it doesn't say), `lengths` (K under the policy), `costs` (how long the steps would have taken).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from store.whatif.figures import WhatIf

if TYPE_CHECKING:
    import duckdb

    from engine.records import PolicyMode

__all__ = ["WhatIf", "what_if"]


def what_if(
    connection: duckdb.DuckDBPyConnection,
    policies: Sequence[PolicyMode],
    start: float | None = None,
    end: float | None = None,
) -> list[WhatIf]:
    """One answer for each policy, over the rows of steps that ended in (start, end], Unix seconds; None: all.

    The connection may be read-only; nothing is written.

    Raises:
        WhatIfError: a policy that can't be asked for, or no decode rows in the stretch.
    """
    from store.whatif.asking import asked

    return asked(connection, policies, start, end)
