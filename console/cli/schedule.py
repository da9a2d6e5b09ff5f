"""`specdeck schedule`: draft-length schedules, before an engine executes one."""

from __future__ import annotations

from console.cli.lazy import Lazy, LazyGroup

EPILOG = """\
SCHEDULE is vLLM's JSON itself, a .json or .toml file, or - for stdin.

\b
JSON, [first, last, K] of scheduled sequences, both included; also as
num_speculative_tokens_per_batch_size of a --speculative-config:
  [[1,16,3],[32,128,2]]
TOML, in rising order:
  [schedule]
  1-16 = 3
  32-128 = 2

Sizes between two ranges and above the last carry the K before them; K above the engine's maximum (--max-k) is
clamped to it. Prefills count as scheduled sequences.

Example: specdeck schedule show night.toml --max-k 4 --at 20
"""

schedule = LazyGroup(
    "schedule",
    lazy={
        "check": Lazy("console.cli.schedule_commands", "check", "Say what is wrong with one, and at which entry."),
        "show": Lazy("console.cli.schedule_commands", "show", "K per batch size."),
        "convert": Lazy("console.cli.schedule_commands", "convert", "vLLM's JSON to TOML, and back."),
    },
    help="Draft schedules: K by number of scheduled sequences.",
    epilog=EPILOG,
)
