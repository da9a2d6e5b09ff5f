"""The fallback test as a phase of a rehearsal."""

from __future__ import annotations

from collections.abc import Callable

from console.rehearsing.fallback_test import FallbackTest, fallback_test
from console.rehearsing.passes.host import HostFailed, Served
from engine.schedule import ScheduleError
from store.rehearsal.records import FallbackVerdict


class NotTestable(Exception):
    """This engine can't show a fallback: says why."""


async def fallback_phase(served: Served, tell: Callable[[str], None]) -> FallbackVerdict:
    """Make it on the engine that is up.

    Raises:
        NotTestable: no schedule can be shown to hold there.
        NothingToTry, FeedError, HostFailed: engine or station are gone; it says nothing of the fallback.
    """
    if served.engine.batch_k == "fixed":
        raise NotTestable(
            f"engine {served.engine.engine} drafts its maximum whatever K is ({served.engine.method}): its steps do "
            "not show a fallback; `specdeck drill` tries the ways out on single requests"
        )
    try:
        result = await fallback_test(served.feed, None, served.api_key, tell)
    except ScheduleError as error:
        raise NotTestable(str(error)) from error
    if result.broken_off is not None:
        raise HostFailed(f"the fallback test broke off: {result.broken_off}")
    return _verdict(result)


def _verdict(result: FallbackTest) -> FallbackVerdict:
    return FallbackVerdict(
        passed=result.passed,
        failures=result.failures,
        executed=[level.k for level in result.levels if level.k is not None],
        transitions=len(result.transitions),
        steps=result.steps,
        acceptance_before=result.acceptance_before,
        acceptance_after=result.acceptance_after,
        prompts=result.prompts,
        draft_steps=(result.draft_steps_before, result.draft_steps_after),
    )


def said(verdict: FallbackVerdict) -> str:
    """One line."""
    if not verdict.passed:
        return f"fallback test FAILED: {verdict.failures[0]}"
    if verdict.acceptance_before is None or verdict.acceptance_after is None:
        return "fallback test passed; nothing was drafted by which acceptance could be compared"
    n = " and ".join(map(str, verdict.draft_steps))
    rates = f"{verdict.acceptance_before:.2f} before and {verdict.acceptance_after:.2f} after"
    return f"fallback test passed: acceptance of the same {verdict.prompts} prompts {rates} (n {n} draft steps)"
