"""`specdeck trace`: trace files."""

from __future__ import annotations

from console.cli.lazy import Lazy, LazyGroup

trace = LazyGroup(
    "trace",
    lazy={
        "info": Lazy("console.cli.trace_info", "info", "What a trace holds: engines, span, counts."),
        "record": Lazy("console.cli.trace_record", "record", "Record the running station from now on."),
    },
    help="Trace files (.jsonl, .jsonl.zst).",
    epilog="Example: specdeck trace info run.jsonl.zst",
)
