"""The plans that come with specdeck.

Rates are meant for an engine of 200 tokens/s, measured at eight requests at once, and an answer of this mix has about
80 tokens (recorded: 80.4): 0.6 requests/s leave such an engine idle half of the time. 3.2 are more than eight at once
can take, so that more are at once: a busy hour shows what heavy load does, and the quiet after it how a backlog is
worked off.
"""

from __future__ import annotations

from typing import Final

from console.traffic.prompts import MAX_TOKENS, TEMPERATURE, Workload
from store.rehearsal.plan import ADAPTIVE, PROPOSED, WITHOUT, Deadline, Mix, Phase, Plan

_QUIET: Final = 0.6
_BUSY: Final = 3.2


def _mix(workload: Workload, share: float, deadline: Deadline) -> Mix:
    return Mix(
        name=workload,
        share=share,
        prompts=workload,
        max_tokens=MAX_TOKENS[workload],
        temperature=TEMPERATURE[workload],
        deadline=deadline,
    )


# Code and repeated text are waited for as a whole. What is read as it comes must begin soon and keep up with a reader:
# 7 tokens/s are about 300 words a minute.
_MIX: Final = (
    _mix("code", 0.27, Deadline(e2e=12.0)),
    _mix("repeat", 0.27, Deadline(e2e=10.0)),
    _mix("chat", 0.26, Deadline(ttft=2.0, tpot=0.15)),
    _mix("creative", 0.2, Deadline(ttft=3.0, tpot=0.15)),
)


def _phases(quiet: float, rising: float, busy: float, after: float) -> tuple[Phase, ...]:
    return (
        Phase(name="quiet", seconds=quiet, rate=_QUIET),
        Phase(name="rising", seconds=rising, rate=_QUIET, to=_BUSY),
        Phase(name="busy", seconds=busy, rate=_BUSY),
        Phase(name="quiet again", seconds=after, rate=_QUIET),
    )


BUILT_IN: Final[dict[str, Plan]] = {
    plan.name: plan
    for plan in (
        Plan(name="smoke", arms=("k0", "k2"), mix=_MIX, phases=_phases(12, 13, 25, 10)),
        Plan(
            name="quick",
            arms=(WITHOUT, "k0", "k2", "k4", PROPOSED, ADAPTIVE),
            mix=_MIX,
            phases=_phases(12, 13, 25, 10),
            repeats=2,
        ),
        Plan(
            name="full",
            arms=(WITHOUT, "k0", "k1", "k2", "k4", PROPOSED, ADAPTIVE),
            mix=_MIX,
            phases=_phases(18, 20, 37, 15),
            repeats=6,
            survey=2,
        ),
    )
}
"""Traffic alone takes 2 minutes, 10 minutes and an hour; engine starts, the fallback test and last answers come too."""
