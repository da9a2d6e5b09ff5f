"""What the policy keys do: work out the change, show it, ask, send it, and tell how it went.

A change that raises what may be drafted is sent to be confirmed: it is taken back by itself unless `k` follows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from console.app.drawing import numbers
from console.app.frame.change import Change
from console.app.policy import words
from console.app.policy.history_rows import entry_key, newest_undoable, of_one_change
from console.app.policy.schedule_strip import stretches
from console.app.policy.words import CONFIRM_SECONDS, same_mode, state_of
from console.feed.client import FeedError
from console.feed.messages import Snapshot
from console.feed.protocol import (
    History,
    HistoryEntry,
    HistoryParams,
    Method,
    PolicyConfirm,
    PolicyResult,
    PolicySet,
    PolicyUndo,
)
from engine.policy import PolicyState, WorkloadPolicy
from engine.records import Lane, PolicyMode
from engine.schedule import DraftSchedule, Range, parse_schedule
from engine.schedule_file import to_line

if TYPE_CHECKING:
    from console.app.application import SpecdeckApp

ANSWER_SECONDS: Final = 10.0
SEQUENCES: Final = 32
"""Where no engine says how many sequences it takes at once."""


class PolicyDesk:
    """The keys' methods assume what their actions need: a station that answers and has a policy."""

    def __init__(self, app: SpecdeckApp) -> None:
        self._app = app
        self._schedule: DraftSchedule | None = None
        self._station = ""
        self._answer: PolicyResult | None = None
        self._capping = asyncio.Lock()

    def see(self, snapshot: Snapshot) -> None:
        """Take in a snapshot: the last schedule that was in use is offered again."""
        if snapshot.station != self._station:
            self._station, self._answer = snapshot.station, None
        self._schedule = _schedule_of(snapshot) or self._schedule

    # Keys

    def mode(self) -> None:
        from console.app.frame.dialogs import ModeDialog

        before = state_of(self._snapshot)
        self._app.push_screen(ModeDialog(before.policy, self._max_k, self._schedule), self._wanted_mode)

    def schedule(self) -> None:
        """Edit the schedule that holds, else one like what holds."""
        from console.app.policy.schedule_dialog import ScheduleDialog

        before = state_of(self._snapshot).policy
        kept = f"the bound of mode {numbers.mode(before)}" if before.mode == "adaptive" else "mode schedule"
        widest = max((engine.max_num_seqs or 0 for engine in self._app.picture.engines), default=0) or SEQUENCES
        known = None if before.schedule is None or before.mode in ("off", "static") else parse_schedule(before.schedule)
        text = to_line(known or self._schedule or _like(before, self._max_k, widest))
        dialog = ScheduleDialog(text, f"It becomes {kept}.", self._max_k, widest, self._running)

        def edited(schedule: DraftSchedule | None) -> None:
            if schedule is not None:
                self._wanted_mode(_with_schedule(before, schedule))

        self._app.push_screen(dialog, edited)

    def deploy_map(self) -> None:
        """Put the schedule of the operating map in force, in the place that an edited one would have."""
        snapshot, summary = self._snapshot, self._snapshot.map
        assert summary is not None  # the action needs it
        assert summary.schedule is not None
        before = state_of(snapshot)
        chosen = _with_schedule(before.policy, parse_schedule(summary.schedule))
        if same_mode(chosen, before.policy):
            self._app.tell("The map's schedule is in force already; nothing was changed.")
            return
        change = words.map_change(before.policy, chosen, summary, self._max_k, snapshot.ts)
        params = PolicySet(policy=chosen, expect=before.version, why=f"operating map {summary.id}")
        self._ask(change, params, before, msgspec.structs.replace(before, policy=chosen))

    def cap(self, step: int) -> None:
        """One up or down. A cap at the engine's maximum is none, so that is where `+` ends and `-` begins."""
        self._run(self._cap(step))

    def fallback(self) -> None:
        before = state_of(self._snapshot)
        on = not before.fallback
        change = words.fallback_change(on, before.policy, self._running)
        params = PolicySet(fallback=on, expect=before.version)
        self._ask(change, params, before, msgspec.structs.replace(before, fallback=on))

    def lane(self, workload: str) -> None:
        """Into the vanilla lane, or out of it."""
        before = state_of(self._snapshot)
        own = before.workloads.get(workload, WorkloadPolicy())
        lane: Lane = "speculative" if own.lane == "vanilla" else "vanilla"
        workloads = {**before.workloads, workload: msgspec.structs.replace(own, lane=lane)}
        params = PolicySet(lanes={workload: lane}, expect=before.version)
        change = words.lane_change(workload, lane, self._snapshot)
        self._ask(change, params, before, msgspec.structs.replace(before, workloads=workloads))

    def undo(self, entry: HistoryEntry | None) -> None:
        """Take back what a line of the history says; None: the newest change that can be undone."""
        self._run(self._undo(entry))

    def keep(self) -> None:
        """Confirm the raise that waits."""
        version = self._snapshot.policy_version
        self._run(self._request("policy_confirm", PolicyConfirm(version=version), "confirmed: policy {version} stays"))

    # How

    @property
    def _snapshot(self) -> Snapshot:
        snapshot = self._app.picture.snapshot
        assert snapshot is not None  # the actions need it
        return snapshot

    @property
    def _max_k(self) -> int:
        return max((engine.max_k or 0 for engine in self._app.picture.engines), default=0)

    @property
    def _running(self) -> int:
        return sum(engine.running or 0 for engine in self._app.picture.serving)

    def _standing(self) -> PolicyState:
        """The newest policy known: an answer of the station may be ahead of its next snapshot."""
        state = state_of(self._snapshot)
        answer = self._answer
        if answer is None or answer.version <= state.version:
            return state
        return PolicyState(answer.version, answer.policy, answer.cap, answer.fallback, state.workloads)

    def _wanted_mode(self, chosen: PolicyMode | None) -> None:
        snapshot = self._app.picture.snapshot
        if chosen is None or snapshot is None or snapshot.policy is None:
            return
        before = state_of(snapshot)
        if same_mode(chosen, before.policy):
            self._app.tell("That is the mode already; nothing was changed.")
            return
        change = words.mode_change(before.policy, chosen, self._max_k, self._running)
        params = PolicySet(policy=chosen, expect=before.version)
        self._ask(change, params, before, msgspec.structs.replace(before, policy=chosen))

    def _ask(self, change: Change, params: PolicySet, before: PolicyState, after: PolicyState) -> None:
        from console.app.frame.dialogs import ConfirmDialog
        from engine.policy.raising import raises

        if raises(before, after, self._max_k):
            change = words.to_be_confirmed(change)
            params = msgspec.structs.replace(params, confirm=CONFIRM_SECONDS)

        def confirmed(yes: bool | None) -> None:
            if yes:
                self._run(self._send(params, ""))

        self._app.push_screen(ConfirmDialog(change), confirmed)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        self._app.run_worker(work, group="act", exit_on_error=False)

    async def _cap(self, step: int) -> None:
        async with self._capping:  # one step is answered before the next is worked out
            before = self._standing()
            top = self._max_k
            wanted = (top if before.cap is None else min(before.cap, top)) + step
            if not 0 <= wanted <= top:
                self._app.tell("The cap is 0 already." if wanted < 0 else "There is no cap that could be raised.")
                return
            cap = None if wanted == top else wanted
            params = PolicySet(cap=cap, expect=before.version)
            if step < 0:
                steps = f"{words.cap_words(before.cap)} → {words.cap_words(cap)}"
                await self._send(params, f"{steps}, policy {{version}}: u takes it back")
            else:
                change = words.cap_change(before.cap, cap, self._running)
                self._ask(change, params, before, msgspec.structs.replace(before, cap=cap))

    async def _send(self, params: PolicySet, done: str) -> None:
        waits = "; it is taken back in 5 min unless you press k on the Policy screen" if params.confirm else ""
        await self._request("policy_set", params, f"{done or 'policy {version} sent'}{waits}")

    async def _undo(self, entry: HistoryEntry | None) -> None:
        from console.app.frame.dialogs import ConfirmDialog

        try:
            history = await self._app.feed.request("policy_history", HistoryParams(), History, ANSWER_SECONDS)
        except FeedError as error:
            self._app.tell(f"nothing was undone: {error.message}", severity="warning")
            return
        target = newest_undoable(history.entries) if entry is None else _now(history.entries, entry)
        if target is None:
            self._app.tell("There is nothing to undo.")
            return
        if not target.undoable:
            self._app.tell(f"That can't be undone any more: {target.text}", severity="warning")
            return
        params = PolicyUndo(version=target.policy, expect=self._snapshot.policy_version)

        def confirmed(yes: bool | None) -> None:
            if yes:
                self._run(self._request("policy_undo", params, "undone: policy {version} sent"))

        self._app.push_screen(ConfirmDialog(words.undo_change(of_one_change(history.entries, target))), confirmed)

    async def _request(self, method: Method, params: msgspec.Struct, done: str) -> None:
        try:
            self._answer = await self._app.feed.request(method, params, PolicyResult, ANSWER_SECONDS)
        except FeedError as error:
            self._app.tell(f"nothing was changed: {error.message}", severity="warning")
        else:
            self._app.tell(done.replace("{version}", str(self._answer.version)))


def _schedule_of(snapshot: Snapshot) -> DraftSchedule | None:
    """A schedule that is in use, or waits to be used again."""
    modes = [snapshot.policy, snapshot.unconfirmed.reverts_to if snapshot.unconfirmed is not None else None]
    modes += [engine.configured for engine in snapshot.engines]
    found = next((mode.schedule for mode in modes if mode is not None and mode.schedule is not None), None)
    return None if found is None else parse_schedule(found)


def _with_schedule(before: PolicyMode, schedule: DraftSchedule) -> PolicyMode:
    """Under adaptive a schedule is the bound of what the controller may give; else it is the mode."""
    if before.mode == "adaptive":
        return PolicyMode(mode="adaptive", schedule=list(schedule), act=before.act)
    return PolicyMode(mode="schedule", schedule=list(schedule))


def _now(entries: Sequence[HistoryEntry], entry: HistoryEntry) -> HistoryEntry:
    """The same line as the history has it now: what can be undone may have changed since it was drawn."""
    return next((one for one in entries if entry_key(one) == entry_key(entry)), entry)


def _like(mode: PolicyMode, max_k: int, widest: int) -> DraftSchedule:
    """A schedule that gives what a mode without one gives, to begin editing from."""
    (stretch,) = stretches(mode, max_k)
    return (Range(1, widest, stretch.k),)
