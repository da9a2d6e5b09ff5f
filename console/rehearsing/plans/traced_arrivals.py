"""The stretch of a public trace that a plan goes through: arrivals with their lengths, and what was left out."""

from __future__ import annotations

import msgspec

from console.rehearsing.plans.arrivals import MOST_REQUESTS, Arrival, phase_at
from console.rehearsing.plans.errors import PlanError, named
from console.rehearsing.plans.lengths import fitting
from console.rehearsing.plans.public_traces import traced_requests
from store.rehearsal.plan import Plan, PublicTrace


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """`clipped`: requests that were longer than the engine's context; `empty`: rows without a prompt or an answer,
    which are left out; `ends`: seconds of the plan after which the trace has no more, None where it goes on."""

    arrivals: list[Arrival]
    clipped: int
    empty: int
    ends: float | None

    def notes(self, max_model_len: int | None) -> list[str]:
        """What is not as it was recorded, a sentence each."""
        found = []
        if self.clipped:
            found.append(
                f"{self.clipped:,} of {len(self.arrivals):,} requests of the trace were clipped, so that they fit for "
                f"certain into the engine's context of {max_model_len} tokens"
            )
        if self.empty:
            found.append(f"{self.empty:,} rows of the trace had no prompt or no answer and were left out")
        if self.ends is not None:
            found.append(f"the trace ends after {self.ends:.0f} s; nothing is sent in the rest of the plan's time")
        return found


def stretch(plan: Plan, trace: PublicTrace, max_model_len: int | None) -> Stretch:
    """Moment 0 is the trace's first row; its clock runs `speed` times as fast. The same in each repeat.

    Raises:
        PlanError: as `traced_requests`; none or too many requests within the plan's seconds.
    """
    arrivals: list[Arrival] = []
    clipped = empty = 0
    first: float | None = None
    at: float | None = None
    for request in traced_requests(trace):
        first = request.ts if first is None else first
        at = (request.ts - first) / trace.speed
        if at >= plan.seconds:
            break
        if request.prompt_tokens < 1 or request.output_tokens < 1:
            empty += 1
            continue
        lengths = fitting(request.prompt_tokens, request.output_tokens, max_model_len)
        clipped += lengths.clipped
        arrivals.append(Arrival(at, phase_at(plan.phases, at), lengths))
        if len(arrivals) > MOST_REQUESTS:
            raise PlanError(
                f"{named(trace.file)}: more than {MOST_REQUESTS:,} requests in {plan.seconds:g} s; lower speed or "
                "seconds"
            )
    if not arrivals:
        raise PlanError(f"{named(trace.file)}: no request of it falls into the plan's {plan.seconds:g} s; raise speed")
    ends = None if at is None or at >= plan.seconds else at
    return Stretch(arrivals=arrivals, clipped=clipped, empty=empty, ends=ends)
