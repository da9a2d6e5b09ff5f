"""The drill: each way out is forced on requests of its own, and the rows must show that nothing was drafted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from importlib.metadata import version

from console.feed.certificate import Certificate, CertifiedEngine, WayResult
from console.feed.client import Feed
from console.rehearsing.client import PublicPort
from console.rehearsing.found import Found, find
from console.rehearsing.obstacles import no_loan
from console.rehearsing.proving import unprovable
from console.rehearsing.trying import Trying
from console.rehearsing.ways import OWN_WAYS, WAYS_FOR_ALL, Way
from store.buckets import model_version


class NotProvable(Exception):
    """No way out could be seen now, e.g. since nothing drafts: says why. Nothing was tried."""


async def drill(feed: Feed, for_all: bool, api_key: str | None, tell: Callable[[str], None]) -> Certificate:
    """Run it on the station behind `feed`.

    Args:
        for_all: also the ways by which nobody speculates for a moment.
        tell: hears what goes on.

    Raises:
        NothingToTry: no engine serves there.
        NotProvable: without a way out nothing is drafted either.
        NotServed, RowsMissing: already the request without a way out can't be followed.
        FeedError: the station does not answer.
    """
    found = await find(feed)
    in_the_way = list(no_loan(found.snapshot))
    if in_the_way:
        raise NotProvable("; ".join(in_the_way))
    port = PublicPort(found.url, api_key)
    try:
        trying = Trying(feed, port, found.engine.engine, found.engine.max_model_len, tell)
        why_not = unprovable(await trying.control())
        if why_not is not None:
            raise NotProvable(why_not)
        results = await _each(trying, (*OWN_WAYS, *(WAYS_FOR_ALL if for_all else ())), tell)
    finally:
        await port.close()
    return _certificate(found, results)


async def _each(trying: Trying, ways: Iterable[Way], tell: Callable[[str], None]) -> list[WayResult]:
    results = []
    for way in ways:
        tell(f"trying {way.shown}")
        results.append(await trying.way(way))
    return [*results, await trying.back()]


def _certificate(found: Found, ways: list[WayResult]) -> Certificate:
    engine = found.engine
    identity = model_version(engine)  # type: ignore[arg-type]  # the same four fields
    return Certificate(
        ts=time.time(),
        station=found.snapshot.station,
        engines=[CertifiedEngine(engine.engine, identity, found.boot, engine.vllm)],
        ways=ways,
        passed=all(way.passed for way in ways),
        specdeck=version("specdeck"),
    )
