"""What the store recorded of blocks of time: tokens per busy second, the K that was executed, what was decided."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import duckdb


class Block(NamedTuple):
    """A stretch of time in which one arm held. Unix seconds."""

    arm: str
    k: int | None
    """K of a fixed arm."""
    begin: float
    end: float


class RecordedBlocks:
    """Over a station's store, once the station has ended. Steps belong to the block in which they end."""

    def __init__(self, store: Path) -> None:
        self._connection = duckdb.connect(str(store), read_only=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def tokens_per_busy_second(self, block: Block) -> float:
        """Adaptive pays for its probes. A fixed arm does not: its steps count where they executed its K."""
        which = "true" if block.k is None else f"s.k_draft = {block.k} AND s.probe IS NULL"
        tokens, busy_ms = self._one(
            f"""SELECT sum(tokens), sum(s.duration_ms)
            FROM steps s JOIN (SELECT step, sum(emitted) AS tokens FROM rows GROUP BY step) r ON r.step = s.id
            WHERE s.ts > ? AND s.ts <= ? AND {which}""",
            block,
        )
        if not busy_ms:
            raise ValueError(f"{block.arm}: nothing was executed in its block")
        return float(1000 * tokens / busy_ms)

    def executed_share(self, block: Block) -> float:
        """The share of a fixed arm's time, probes left out, in steps that asked the drafter for its K."""
        (share,) = self._one(
            f"""SELECT sum(duration_ms) FILTER (k_draft = {block.k}) / sum(duration_ms)
            FROM steps WHERE ts > ? AND ts <= ? AND probe IS NULL""",
            block,
        )
        return float(share or 0.0)

    def mean_batch(self, blocks: Sequence[Block]) -> float:
        """Mean decode rows of a step."""
        found = [
            self._one("SELECT sum(decode_rows), count(*) FROM steps WHERE ts > ? AND ts <= ?", one) for one in blocks
        ]
        return float(sum(rows for rows, _ in found) / sum(steps for _, steps in found))

    def last_k(self, block: Block) -> dict[str, int]:
        """By workload what it was last asked for, probes left out."""
        found = self._connection.execute(
            """SELECT workload, arg_max(k_asked, ts) FROM row_facts
            WHERE ts > ? AND ts <= ? AND decode_row AND "limit" <> 'probe' GROUP BY ALL ORDER BY ALL""",
            [block.begin, block.end],
        )
        return dict(found.fetchall())

    def decisions(self, since: float, until: float) -> list[str]:
        """Executed changes of the controller, each a sentence with the second since `since`."""
        found = self._connection.execute(
            """SELECT ts, why FROM controls WHERE actor = 'adaptive' AND action NOT IN ('score', 'advice')
            AND ts > ? AND ts <= ? ORDER BY ts""",
            [since, until],
        )
        return [f"{ts - since:.0f} s: {why}" for ts, why in found.fetchall()]

    def _one(self, query: str, block: Block) -> tuple[Any, ...]:
        return self._connection.execute(query, [block.begin, block.end]).fetchone() or ()
