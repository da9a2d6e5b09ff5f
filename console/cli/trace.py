"""`specdeck trace`: trace files."""

from __future__ import annotations

from console.cli.lazy import Lazy, LazyGroup

trace = LazyGroup(
    "trace",
    lazy={
        "list": Lazy("console.cli.trace_list", "list_", "Which traces there are: recorded, in a folder, samples."),
        "info": Lazy("console.cli.trace_info", "info", "What a trace holds: engines, span, counts."),
        "record": Lazy("console.cli.trace_record", "record", "Record the running station from now on."),
        "end": Lazy("console.cli.trace_end", "end", "End the recording that the station makes, and write it."),
        "convert": Lazy("console.cli.trace_convert", "convert", "Write a trace in another form."),
        "cut": Lazy("console.cli.trace_cut", "cut", "Write a part of a trace: a stretch of time, a bucket, sequences."),
    },
    help="Trace files (.jsonl, .jsonl.zst, .parquet).",
    epilog="Example: specdeck trace info run.jsonl.zst",
)
