"""Tables of what the judge found and what it knows."""

from __future__ import annotations

from typing import Final

from store.columns import Table, columns

JUDGE_TABLES: Final[dict[str, Table]] = {
    "alerts": Table(
        "What the judge found, in its present version: one row an alert",
        columns(
            "id BIGINT: Number",
            "kind VARCHAR: drift, shift, speedup_floor, failing_workload, policy_mismatch, telemetry_loss, ...",
            "severity VARCHAR: info, warn or critical",
            "engine VARCHAR: Name of the engine",
            "workload VARCHAR: Of its bucket; NULL, as the three after it, for alerts of a whole engine",
            "context VARCHAR: See buckets",
            "temperature VARCHAR: See buckets",
            "model_version VARCHAR: See engines",
            "state VARCHAR: pending, firing or resolved",
            "pending_since DOUBLE: End of the first window that showed it, Unix seconds",
            "started DOUBLE: The same, once it fired; NULL for one that never did",
            "ended DOUBLE: Unix seconds",
            "text VARCHAR: One sentence",
            "record VARCHAR: The whole alert, JSON: evidence, causes, what the operator did about it",
        ),
    ),
    "remarks": Table(
        "What a reader of the figures should know of a moment, and nobody has to act on",
        columns(
            "ts DOUBLE: Unix seconds",
            "kind VARCHAR: mix or post_resume",
            "text VARCHAR: One line",
            "record VARCHAR: The whole of it, JSON",
        ),
    ),
    "judge": Table(
        "At most one row: what the judge knew when it was last saved; opaque",
        columns("up_to DOUBLE: Cells before this moment are in it, Unix seconds", "state BLOB: JSON, zstd"),
    ),
}  # fmt: skip
