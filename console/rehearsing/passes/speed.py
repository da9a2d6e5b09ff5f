"""The speed of an engine before the passes: it is warmed up, and the load of all arms is fitted to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from console.rehearsing.loan import Loan, LoanRefused
from console.rehearsing.passes.host import Served
from console.rehearsing.terms import Terms
from console.traffic.client import Server
from console.traffic.speed import measured_scale
from engine.records import PolicyMode

_AT_0: Final = PolicyMode(mode="static", k=0)


async def warmed_up(served: Served, tag_prefix: str) -> float:
    """Send the requests by which a server is measured, under whatever policy holds; the factor on rates that suits it.

    Raises:
        NotMeasured: it does not answer them.
    """
    server = Server(f"{served.url}/v1", served.api_key)
    try:
        return await measured_scale(server, tag_prefix)
    finally:
        await server.close()


async def fitted_scale(served: Served, tag_prefix: str, tell: Callable[[str], None]) -> float:
    """The factor that suits the engine at K = 0: no arm that drafts is to set the load that all of them meet.

    Raises:
        NotMeasured: it does not answer.
        LoanRefused, FeedError: K = 0 can't be put in force.
    """
    tell("measuring the engine at K = 0, to which the rates are fitted")
    loan = Loan(served.feed, Terms(policy=_AT_0), "the rehearsal's load is fitted", tell, kept=True)
    async with loan:
        scale = await warmed_up(served, tag_prefix)
    if loan.trouble:
        raise LoanRefused("; ".join(loan.trouble))
    tell(f"rates are multiplied by {scale:.2f}")
    return scale
