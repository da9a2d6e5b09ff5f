"""Policies and their changes in words, for the dialogs, the Policy screen and the notes that follow a key. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from console.app.drawing import numbers
from console.app.frame.change import Change
from console.app.map.words import age_words
from console.app.policy.range_table import range_lines
from console.feed.messages import MapSummary, Snapshot
from console.feed.protocol import HistoryEntry
from engine.policy import PolicyState, WorkloadPolicy, readable
from engine.records import Lane, PolicyMode
from engine.schedule import parse_schedule

CONFIRM_SECONDS: Final = 300.0
"""A raise from the console is taken back after this long unless it is confirmed."""

COMMIT: Final = "It is taken back in 5 min unless you press k on the Policy screen, or at once when tokens/s falls."


def mode_words(mode: PolicyMode | None) -> str:
    """A mode with its schedule: `static:4`, `schedule 1-4: 4, 5-32: 1`, `advise within 1-4: 4, 5-32: 1`."""
    return numbers.ABSENT if mode is None else readable(mode)


def same_mode(one: PolicyMode | None, other: PolicyMode | None) -> bool:
    """They ask for the same, whatever `reason` says."""
    return one is other or (one is not None and other is not None and _meant(one) == _meant(other))


def state_of(snapshot: Snapshot) -> PolicyState:
    """The policy that a snapshot shows, whole. Only for a snapshot with a policy."""
    assert snapshot.policy is not None
    workloads = {view.name: WorkloadPolicy(view.k, view.lane, view.fallback) for view in snapshot.workloads}
    return PolicyState(snapshot.policy_version or 0, snapshot.policy, snapshot.cap, snapshot.fallback, workloads)


def to_be_confirmed(change: Change) -> Change:
    """The same change, sent so that it is taken back by itself unless it is confirmed."""
    return replace(change, effects=[*change.effects, COMMIT], undo=f"{change.undo}, or wait 5 min")


def mode_effect(mode: PolicyMode, max_k: int) -> str:
    """What a mode does."""
    if mode.mode == "off":
        return "No sequence drafts any more. The drafter stays loaded, so this is K=0, not vanilla."
    if mode.mode == "static":
        return f"Every sequence drafts at most {mode.k} token{'s' * (mode.k != 1)} a step."
    bound = f"the engine's maximum, {max_k}, at every batch size" if mode.schedule is None else "the schedule"
    if mode.mode == "schedule":
        return "Every sequence drafts at most what the schedule gives for the number that is running."
    if mode.act is False:
        return f"What executes is {bound}; the controller only says what it would do, and turns nothing off."
    return f"The controller sets the K of each workload, up to {bound}, and turns off what costs more than it gains."


def mode_change(before: PolicyMode, after: PolicyMode, max_k: int, running: int) -> Change:
    return Change(
        "Change the mode", mode_words(before), mode_words(after),
        [mode_effect(after, max_k), _holds(running)], f"u, or m and then {numbers.mode(before)}",
    )  # fmt: skip


def map_change(before: PolicyMode, after: PolicyMode, summary: MapSummary, max_k: int, now: float) -> Change:
    """The schedule of the operating map, range by range."""
    of = f"the operating map of plan {summary.plan}, {age_words(summary.ts, now)}"
    kept = "adaptive stays; its bound is" if after.mode == "adaptive" else "mode schedule,"
    return Change(
        "Deploy the map's schedule", numbers.mode(before), f"{kept} from {of}", [mode_effect(after, max_k)], "u",
        table=range_lines(before, after, max_k),
    )  # fmt: skip


def cap_words(cap: int | None) -> str:
    return "no cap" if cap is None else f"cap {cap}"


def cap_change(before: int | None, after: int | None, running: int) -> Change:
    effect = (
        "Mode, schedule and controller alone decide again how many tokens a sequence drafts."
        if after is None
        else f"No sequence drafts more than {after} token{'s' * (after != 1)} a step, whatever the mode says."
    )
    return Change(
        "Change the operator's cap", cap_words(before), cap_words(after), [effect, _holds(running)],
        "u, or -",
    )  # fmt: skip


def fallback_words(on: bool) -> str:
    return "fallback for all: K 0 everywhere" if on else "no fallback for all"


def fallback_change(on: bool, mode: PolicyMode, running: int) -> Change:
    effect = (
        "No workload drafts any more, and nothing is probed. The drafter stays loaded, so this is K=0, not vanilla."
        if on
        else f"Drafting goes on as the mode says: {mode_words(mode)}."
    )
    return Change(
        "Fall back for all workloads" if on else "End the fallback for all",
        fallback_words(not on), fallback_words(on), [effect, _holds(running)], "f again, or u",
    )  # fmt: skip


def lane_words(workload: str, lane: Lane) -> str:
    return f"{workload}: {'vanilla lane' if lane == 'vanilla' else 'speculative lane'}"


def lane_change(workload: str, lane: Lane, snapshot: Snapshot) -> Change:
    other: Lane = "speculative" if lane == "vanilla" else "vanilla"
    if lane == "speculative":
        effects = [f"{workload} may draft again, as far as mode, cap and fallback let it."]
    elif snapshot.gateway is not None and snapshot.gateway.vanilla_engine:
        effects = [
            "New requests of it go to the vanilla engine, where nothing is drafted.",
            "Those that run now stay where they are, at K = 0.",
        ]
        if not snapshot.gateway.vanilla_ok:
            effects.append("That engine is away: until it is back new ones run at K = 0 in the same engine too.")
    else:
        effects = [
            f"No sequence of {workload} drafts any more: there is no vanilla engine, so the lane is K = 0 in the "
            "same engine. Other workloads keep their K."
        ]
    return Change(
        f"{'To' if lane == 'vanilla' else 'Out of'} the vanilla lane", lane_words(workload, other),
        lane_words(workload, lane), effects, "l again, or u",
    )  # fmt: skip


def undo_change(entries: Sequence[HistoryEntry]) -> Change:
    """Take back one change. `entries`: what the history holds of it, at least one."""
    return Change(
        "Undo one change" if len(entries) == 1 else f"Undo {len(entries)} changes of one moment",
        "; ".join(entry_words(entry, entry.after) for entry in entries),
        "; ".join(entry_words(entry, entry.before) for entry in entries),
        [entry.text for entry in entries]
        + ["What was changed besides it stays. It is put back at once, without a time to confirm it."],
        "u again takes the undoing back",
    )


def entry_words(entry: HistoryEntry, fields: dict[str, Any] | None) -> str:
    """One side of a change that the history holds."""
    if fields is None:
        return numbers.ABSENT
    try:
        if entry.workload is not None:
            own = msgspec.convert(fields, WorkloadPolicy)
            k = "" if own.k is None else f", K {own.k}"
            return f"{lane_words(entry.workload, own.lane)}{k}{', in fallback' if own.fallback else ''}"
        if "mode" in fields:
            return mode_words(msgspec.convert(fields, PolicyMode))
        if "cap" in fields:
            return cap_words(fields["cap"])
        if "fallback" in fields:
            return fallback_words(bool(fields["fallback"]))
    except (msgspec.ValidationError, ValueError):
        pass  # a station of another version: its own words are still readable
    return msgspec.json.encode(fields).decode()


def _holds(running: int) -> str:
    return f"It holds from the next step on, for the {numbers.many(running, 'running sequence')} too."


def _meant(mode: PolicyMode) -> tuple[Any, ...]:
    if mode.mode == "static":
        return (mode.mode, mode.k)
    schedule = None if mode.schedule is None or mode.mode == "off" else parse_schedule(mode.schedule)
    return (mode.mode, schedule, mode.mode == "adaptive" and mode.act is not False)
