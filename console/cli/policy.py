"""`specdeck policy`: what the running station's engines may draft, and the way back."""

from __future__ import annotations

from console.cli.lazy import Lazy, LazyGroup

EPILOG = """\
\b
MODE is one of
  off                  no speculation
  static:K             K draft tokens
  schedule:SCHEDULE    K by number of scheduled sequences (see specdeck schedule)
  adaptive             decided by what drafts bring, below a schedule if adaptive:SCHEDULE
  advise               the same, told but not done
  map                  the schedule that the operating map proposes (see specdeck map); for `set`

Each change has a version, is recorded, and can be undone.

Example: specdeck policy set static:4 --confirm 5m --why 'fewer long prompts now'
"""

policy = LazyGroup(
    "policy",
    lazy={
        "get": Lazy("console.cli.policy_get", "get", "Mode, cap, fallback, lanes; what each engine makes of them."),
        "set": Lazy("console.cli.policy_set", "set_", "Change it; with --confirm it is taken back unless confirmed."),
        "undo": Lazy("console.cli.policy_acts", "undo", "Put back what one change changed."),
        "confirm": Lazy("console.cli.policy_acts", "confirm", "What waits to be confirmed stays."),
        "history": Lazy("console.cli.policy_history", "history", "What the operator and the policy did, newest first."),
    },
    help="See and change the policy of the running station.",
    epilog=EPILOG,
)
