"""One pass: a policy in force, the traffic of a repeat sent and answered, and the engine's records of that time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from console.feed.client import FeedError
from console.feed.protocol import ExportParams, RequestRows, RequestRowsParams, RequestRowsResult
from console.rehearsing.client import NotServed, PublicPort
from console.rehearsing.load.front import LoadFailed, LoadSummary, send
from console.rehearsing.loan import Loan, LoanRefused
from console.rehearsing.passes.arms import Schedule, policy_of
from console.rehearsing.passes.folder import OUTCOMES, REQUESTS, TRACE
from console.rehearsing.passes.host import Served
from console.rehearsing.passes.order import DuePass
from console.rehearsing.passes.telling import Telling
from console.rehearsing.terms import Terms
from engine.records import PolicyMode, SequenceRecord
from store.rehearsal.records import Outcome, Pass
from store.trace import TraceError, read_records

_IDLE_SECONDS: Final = 60.0
_OTHERS_SECONDS: Final = 5.0
_APPLIED_SECONDS: Final = 20.0
_RECORDED_SECONDS: Final = 30.0
_EXPORT_SECONDS: Final = 600.0
_LOOK_SECONDS: Final = 0.2
_LAST: Final = 16
"""Of the requests, those whose records are waited for: the ones that ended last."""

BEFORE: Final = "before"
"""Workload of the short requests that come before a pass's own."""


class Spoilt(Exception):
    """A pass that tells nothing about its arm: says why. What it left is thrown away when it is made again."""


class Overruled(Spoilt):
    """Somebody else, or the station, changed the policy meanwhile: it is not to be borrowed again unasked."""


class Setting(NamedTuple):
    """What all passes of a rehearsal share. `alone`: nobody else uses the engine."""

    proposal: Schedule | None
    prefix: str
    workloads: frozenset[str]
    alone: bool
    telling: Telling


async def one_pass(served: Served, due: DuePass, place: Path, setting: Setting) -> Pass:
    """Make the pass whose requests lie in `place`; its outcomes and trace are then there too.

    Raises:
        Spoilt: it can't count.
        FeedError: the station does not answer.
    """
    policy = policy_of(due.arm, setting.proposal)
    notes: list[str] = []
    await _idle(served, setting.alone)
    boot = await served.boot()
    try:
        async with _in_force(served, policy, due, setting) as version:
            summary = await send(
                place / REQUESTS, place / OUTCOMES, base_url=served.url, api_key=served.api_key, model=None,
                tag_prefix=setting.prefix, on_progress=setting.telling.load,
            )  # fmt: skip
            notes += await _recorded(served, place / OUTCOMES)
    except (LoadFailed, LoanRefused, NotServed) as error:
        raise Spoilt(str(error)) from error
    if await served.boot() != boot:
        raise Spoilt(f"engine {served.engine.engine} was started anew in the middle of it")
    params = ExportParams(path=str((place / TRACE).absolute()), kind="jsonl", since=summary.start)
    await served.feed.request("export", params, str, _EXPORT_SECONDS)
    return Pass(
        number=due.number,
        arm=due.arm,
        repeat=due.repeat,
        stage=due.stage,
        policy=policy,
        engine=served.engine.engine,
        start=summary.start,
        end=summary.end,
        policy_version=version,
        others=_others(place / TRACE, summary, {setting.prefix + name for name in setting.workloads}),
        notes=notes,
    )


@asynccontextmanager
async def _in_force(
    served: Served, policy: PolicyMode | None, due: DuePass, setting: Setting
) -> AsyncIterator[int | None]:
    """The arm's policy, executed from here on until the end; its version. None for an engine without speculation.

    Raises:
        LoanRefused: it can't be borrowed.
        NotServed: the engine answers nothing.
        Spoilt: it did not hold to the end.
    """
    port = PublicPort(served.url, served.api_key)
    try:
        if policy is None:
            await _one_request(port, setting.prefix)
            yield None
            return
        why = f"the rehearsal, arm {due.arm}"
        loan = Loan(served.feed, Terms(policy=policy), why, setting.telling.say, kept=True)
        async with loan:
            await _until_applied(served, port, loan.version, setting.prefix)
            yield loan.version
        if loan.trouble:
            raise Overruled("; ".join(loan.trouble))
    finally:
        await port.close()


async def _idle(served: Served, alone: bool) -> None:
    """Until the engine runs nothing. Our own requests have all been answered; for other clients' it waits a moment."""
    until = time.monotonic() + (_IDLE_SECONDS if alone else _OTHERS_SECONDS)
    while time.monotonic() < until:
        snapshot = await served.snapshot()
        if not (snapshot.running or snapshot.waiting):
            return
        await asyncio.sleep(_LOOK_SECONDS)
    if alone:
        raise Spoilt(f"engine {served.engine.engine} still runs requests {_IDLE_SECONDS:.0f} s after the last answer")


async def _until_applied(served: Served, port: PublicPort, version: int, prefix: str) -> None:
    """Until the engine stamps a step with this policy: a short request makes it step."""
    last = await served.steps(limit=1)
    after = last.steps[-1].step if last.steps else -1
    until = time.monotonic() + _APPLIED_SECONDS
    while time.monotonic() < until:
        await _one_request(port, prefix)
        await asyncio.sleep(_LOOK_SECONDS)
        if any(step.policy >= version for step in (await served.steps(after=after)).steps):
            return
    raise Spoilt(f"engine {served.engine.engine} did not apply policy {version} within {_APPLIED_SECONDS:.0f} s")


async def _one_request(port: PublicPort, prefix: str) -> None:
    await port.complete("one two three", 4, f"{prefix}{BEFORE}", header={}, body={})


async def _recorded(served: Served, outcomes: Path) -> list[str]:
    """Wait until what was answered last is recorded; a note where it never is."""
    last = sorted(_answered(outcomes), key=lambda one: one.ended or 0.0)[-_LAST:]
    missing = {one.request: one for one in last if one.request is not None}
    until = time.monotonic() + _RECORDED_SECONDS
    while missing and time.monotonic() < until:
        params = RequestRowsParams(requests=[name for name in missing if name is not None])
        with suppress(FeedError):  # a store that is busy for a moment
            found = await served.feed.request("request_rows", params, RequestRowsResult, 15.0)
            for rows in found.requests:
                if rows.request in missing and _tokens(rows) >= missing[rows.request].output_tokens:
                    del missing[rows.request]
        if missing:
            await asyncio.sleep(_LOOK_SECONDS)
    return [f"of {len(missing)} requests not every token was recorded"] if missing else []


def _answered(outcomes: Path) -> Iterator[Outcome]:
    decode = msgspec.json.Decoder(Outcome).decode
    with outcomes.open("rb") as file:
        for line in file:
            outcome = decode(line)
            if outcome.error is None:
                yield outcome


def _tokens(rows: RequestRows) -> int:
    return sum(row.emitted for row in rows.rows)


def _others(trace: Path, summary: LoadSummary, ours: Iterable[str]) -> int:
    """Sequences that began meanwhile under none of `ours` tags. Raises Spoilt where the trace can't be read."""
    tags = frozenset(ours)
    try:
        return sum(
            isinstance(record, SequenceRecord)
            and summary.start <= record.ts <= summary.end
            and record.workload not in tags
            for record in read_records(trace)
        )
    except TraceError as error:
        raise Spoilt(f"what was recorded of it can't be read: {error}") from error
