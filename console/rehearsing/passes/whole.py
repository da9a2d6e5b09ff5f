"""A rehearsal from its first engine to its last pass. What it needs to know of itself stands in its folder, so that one
that was interrupted goes on where it was."""

from __future__ import annotations

import asyncio
import time
from typing import Final, NamedTuple

from msgspec.structs import replace

from console.feed.client import FeedError
from console.feed.protocol import FingerprintParams
from console.rehearsing.found import NothingToTry
from console.rehearsing.loan import LoanRefused
from console.rehearsing.passes.fallback_phase import NotTestable, fallback_phase, said
from console.rehearsing.passes.folder import RehearsalFolder
from console.rehearsing.passes.host import Host, HostFailed, Served
from console.rehearsing.passes.one_pass import Overruled, Setting, Spoilt, one_pass
from console.rehearsing.passes.order import DuePass, Step, needs_drafter, surveyed, to_do
from console.rehearsing.passes.pace import Pace
from console.rehearsing.passes.speed import fitted_scale, warmed_up
from console.rehearsing.passes.telling import Telling
from console.rehearsing.plans.checking import check_engine
from console.rehearsing.plans.drawing import draw, trace_notes
from console.traffic.speed import NotMeasured
from store.operating_map.fingerprint import Fingerprint, differences
from store.rehearsal.plan import PROPOSED, Plan
from store.rehearsal.proposing import propose
from store.rehearsal.reading import RehearsalError
from store.rehearsal.records import DrawnRequest, Rehearsal

TRIES: Final = 2
"""For a pass: one that was spoilt is made again once."""

NO_PROPOSAL: Final = "the survey gave no schedule: the arm `proposed` was left out"
_NO_TEST: Final = "the fallback test was left out: "


class Refused(Exception):
    """It can't go on in this folder: says why and what to do."""


class Stopped(Exception):
    """It came to a halt in the middle: says why. What was measured is kept, and it can be resumed."""


class Beginning(NamedTuple):
    """What a rehearsal that has no record yet begins with."""

    plan: Plan
    notes: list[str]


class Whole:
    """`beginning` is heeded only where the folder holds no rehearsal yet."""

    def __init__(self, host: Host, folder: RehearsalFolder, beginning: Beginning, telling: Telling, pace: Pace) -> None:
        self._host = host
        self._folder = folder
        self._beginning = beginning
        self._telling = telling
        self._pace = pace
        self._proposable = True
        self._drafting: bool | None = None

    async def run(self) -> Rehearsal:
        """Everything that is left to do.

        Raises:
            Refused: the engine is not the one that it was begun with.
            PlanError: an arm that the engine can't run.
            Stopped: it can't go on now.
        """
        try:
            rehearsal = await self._all_made()
        except (HostFailed, NothingToTry, LoanRefused, NotMeasured) as error:
            raise Stopped(str(error)) from error
        except RehearsalError as error:
            raise Refused(str(error)) from error
        except FeedError as error:
            silent = error.code in ("deadline", "unreachable")
            raise Stopped(f"{'the station stopped answering: ' if silent else ''}{error.message}") from error
        except OSError as error:
            raise Stopped(f"{self._folder.path} can't be written: {error.strerror or error}") from error
        if rehearsal.ended is None:
            rehearsal = replace(rehearsal, ended=time.time())
            self._folder.keep(rehearsal)
        return rehearsal

    async def _all_made(self) -> Rehearsal:
        if self._folder.begun() and not self._left(self._folder.rehearsal()):
            return self._folder.rehearsal()  # only the report is missing, if anything: no engine is needed
        rehearsal = await self._begun(await self._bring(True))
        while left := self._left(rehearsal):
            rehearsal = await self._made(left, rehearsal)
            rehearsal = await self._proposed(rehearsal)
        return rehearsal

    def _left(self, rehearsal: Rehearsal) -> list[Step]:
        tested = rehearsal.fallback is not None or any(note.startswith(_NO_TEST) for note in rehearsal.notes)
        proposable = self._proposable and NO_PROPOSAL not in rehearsal.notes
        return to_do(rehearsal.plan, self._folder.done(), proposable=proposable, tested=tested)

    async def _bring(self, drafting: bool) -> Served:
        """The engine, warmed up where it has just been started."""
        began = time.monotonic()
        if self._drafting != drafting:
            self._telling.feed = None
            self._telling.note("an engine is started" if self._host.kind == "own" else "")
        served = await self._host.bring(drafting, self._telling.say)
        self._telling.feed, self._drafting = served.feed, drafting
        if served.fresh:
            await warmed_up(served, self._host.prefix)
            self._pace.started(time.monotonic() - began)
        self._telling.note("")
        return served

    async def _begun(self, served: Served) -> Rehearsal:
        """The rehearsal's record: the one that is there, if the engine is still the same; else a new one."""
        fingerprint = await served.feed.request("fingerprint", FingerprintParams(), Fingerprint)
        if self._folder.begun():
            rehearsal = self._folder.rehearsal()
            if other := differences(rehearsal.fingerprint, fingerprint):
                raise Refused(
                    f"rehearsal {rehearsal.id} was begun on another engine ({'; '.join(other)}): begin a new one, or "
                    "run it on the engine as it was"
                )
            return await self._proposed(rehearsal)
        plan, prefix = self._beginning.plan, self._host.prefix
        check_engine(
            plan, max_k=fingerprint.max_k, max_num_seqs=fingerprint.max_num_seqs,
            max_model_len=fingerprint.max_model_len, drafts=fingerprint.max_k > 0,
        )  # fmt: skip
        scale = plan.scale or await fitted_scale(served, prefix, self._telling.say)
        rehearsal = Rehearsal(
            id=self._folder.id, plan=plan, host=self._host.kind, started=time.time(), scale=scale,
            fingerprint=fingerprint, prefix=prefix,
            notes=[*self._beginning.notes, *trace_notes(plan, fingerprint.max_model_len)],
        )  # fmt: skip
        self._folder.keep(rehearsal)
        return rehearsal

    async def _made(self, left: list[Step], rehearsal: Rehearsal) -> Rehearsal:
        """The first of what is left."""
        step = left[0]
        self._telling.step(left, self._drafting)
        if isinstance(step, DuePass):
            await self._pass(step, rehearsal)
            return rehearsal
        served = await self._bring(True)
        try:
            verdict = await fallback_phase(served, self._telling.say)
        except NotTestable as error:
            rehearsal = replace(rehearsal, notes=[*rehearsal.notes, f"{_NO_TEST}{error}"])
        else:
            self._telling.say(said(verdict))
            rehearsal = replace(rehearsal, fallback=verdict)
        self._folder.keep(rehearsal)
        return rehearsal

    async def _pass(self, due: DuePass, rehearsal: Rehearsal) -> None:
        names = frozenset(one.name for one in rehearsal.plan.mix)
        setting = Setting(rehearsal.proposal, rehearsal.prefix, names, self._host.kind == "own", self._telling)
        spoilt = ""
        for number in range(TRIES):
            served = await self._bring(needs_drafter(due))
            began = time.monotonic()
            place = self._folder.begin(due, lambda: self._drawn(due, rehearsal))
            try:
                made = await one_pass(served, due, place, setting)
            except Overruled as error:
                raise Stopped(f"pass {due.number} does not count: {error}") from error
            except Spoilt as error:
                spoilt = str(error)
                again = ", it is made again" if number + 1 < TRIES else ""
                self._telling.say(f"pass {due.number} does not count{again}: {spoilt}")
                continue
            self._folder.finish(due, made)
            self._pace.passed(time.monotonic() - began)
            seen = self._telling.view
            self._telling.say(f"  {seen.done} requests answered{f', {seen.errors} not' if seen.errors else ''}")
            if made.others:
                self._telling.say(f"pass {due.number}: {made.others} requests of other clients ran meanwhile")
            return
        raise Stopped(f"pass {due.number} (arm {due.arm}, repeat {due.repeat}) was spoilt {TRIES} times: {spoilt}")

    def _drawn(self, due: DuePass, rehearsal: Rehearsal) -> list[DrawnRequest]:
        return draw(rehearsal.plan, due.repeat, rehearsal.scale, rehearsal.fingerprint.max_model_len)

    async def _proposed(self, rehearsal: Rehearsal) -> Rehearsal:
        """With the schedule that follows from the survey, once that is over."""
        asked = PROPOSED in rehearsal.plan.arms and self._proposable and rehearsal.proposal is None
        if not asked or NO_PROPOSAL in rehearsal.notes or not surveyed(rehearsal.plan, self._folder.done()):
            return rehearsal
        schedule = await asyncio.to_thread(propose, self._folder.path)
        if schedule is None:
            self._proposable = False
            self._telling.say(NO_PROPOSAL)
            rehearsal = replace(rehearsal, notes=[*rehearsal.notes, NO_PROPOSAL])
        else:
            self._telling.say(f"proposed from the survey: {[list(entry) for entry in schedule]}")
            rehearsal = replace(rehearsal, proposal=schedule)
        self._folder.keep(rehearsal)
        return rehearsal
