"""What the keys of a rehearsal do: choose a plan, say what will happen, ask, start it; and break it off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from console.app.drawing import numbers
from console.app.frame.change import Change
from console.app.policy.words import mode_words
from console.app.rehearsal.words import arms_words, passes_of
from console.feed.client import FeedError
from console.feed.messages import RehearsalView, Snapshot
from console.feed.protocol import Method, RehearsalStart, RehearsalStop
from store.rehearsal.plan import WITHOUT, Plan

if TYPE_CHECKING:
    from console.app.application import SpecdeckApp
    from console.app.rehearsal.dialog import Chosen

ANSWER_SECONDS: Final = 30.0
"""A process is started before the station answers."""


class RehearsalDesk:
    """The keys' methods assume what their actions need: a station that answers, with an engine that serves."""

    def __init__(self, app: SpecdeckApp) -> None:
        self._app = app

    def start(self) -> None:
        from console.app.rehearsal.dialog import RehearsalDialog

        self._app.push_screen(RehearsalDialog(built_in_plans(), read_plan), self._chosen)

    def stop(self) -> None:
        from console.app.frame.dialogs import ConfirmDialog

        view = self._snapshot.rehearsal
        assert view is not None  # the action needs it

        def confirmed(yes: bool | None) -> None:
            if yes:
                params = RehearsalStop(id=view.id or None)
                self._run("rehearsal_stop", params, "the rehearsal is being broken off", object)

        self._app.push_screen(ConfirmDialog(stop_change(view)), confirmed)

    @property
    def _snapshot(self) -> Snapshot:
        snapshot = self._app.picture.snapshot
        assert snapshot is not None  # the actions need it
        return snapshot

    def _chosen(self, chosen: Chosen | None) -> None:
        from console.app.frame.dialogs import ConfirmDialog

        snapshot = self._app.picture.snapshot
        if chosen is None or snapshot is None:
            return

        def confirmed(yes: bool | None) -> None:
            if yes:
                params = RehearsalStart(plan=chosen.source)
                self._run("rehearsal_start", params, f"rehearsal of plan {chosen.plan.name} begins", RehearsalView)

        self._app.push_screen(ConfirmDialog(start_change(chosen.plan, snapshot)), confirmed)

    def _run(self, method: Method, params: msgspec.Struct, done: str, answer: type[object]) -> None:
        async def ask() -> None:
            try:
                await self._app.feed.request(method, params, answer, ANSWER_SECONDS)
            except FeedError as error:
                self._app.tell(f"the rehearsal: {error.message}", severity="warning")
            else:
                self._app.tell(done)

        self._app.run_worker(ask(), group="act", exit_on_error=False)


def start_change(plan: Plan, snapshot: Snapshot) -> Change:
    """What a rehearsal of this plan does to the engine that serves."""
    passes, test = passes_of(plan), " and the fallback test" if plan.fallback_test else ""
    length = numbers.duration(passes * plan.seconds)
    effects = [
        f"About {length}: {passes} pass{'es' * (passes != 1)} of {numbers.duration(plan.seconds)}{test}; waiting for"
        " the last answers of each adds to it.",
        "It loads this engine: requests of other clients wait longer meanwhile.",
        "The policy changes with each arm and is given back at the end, or when it is stopped or killed.",
    ]
    if WITHOUT in plan.arms:
        effects.append("The arm `without` is left out here: it needs an engine that is started without speculation.")
    return Change(
        f"Rehearse plan {plan.name}", mode_words(snapshot.policy), f"each arm in turn: {arms_words(plan)}", effects,
        "b on the Map screen breaks it off",
    )  # fmt: skip


def stop_change(view: RehearsalView) -> Change:
    where = f"pass {view.pass_number} of {view.passes}, arm {view.arm}" if view.passes else view.state
    return Change(
        "Break the rehearsal off", where, "stopped, the policy as it was before",
        ["The pass that goes on is lost; those that came to their end are kept."],
        f"specdeck rehearse --resume {view.id or 'latest'}",
    )  # fmt: skip


def built_in_plans() -> Mapping[str, Plan]:
    from console.rehearsing.plans.built_in import BUILT_IN

    return BUILT_IN


def read_plan(source: str) -> Plan:
    """Raises ValueError: what is wrong with the plan and what to do."""
    from console.rehearsing.plans.reading import read_plan as read

    return read(source)
