"""What the replay keys do: ask the replay, and show at once what will come of it.

The replay's own picture follows its answer; until then the screen shows what was asked for (`Expected`), so that no key
is without an echo. One act is asked at a time, and what a key that is held down asks meanwhile becomes one act.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from console.app.drawing import numbers
from console.app.drawing.spans import clean
from console.app.replay.clock import Expected, MarkKind, neighbour, next_speed
from console.app.replay.moment import Moment, MomentError, resolve
from console.feed.client import FeedError
from console.feed.messages import ReplayView, Snapshot
from console.feed.protocol import ReplayAct

if TYPE_CHECKING:
    from console.app.application import SpecdeckApp

ANSWER_SECONDS: Final = 10.0

PICTURES_BEHIND: Final = 2
"""The first picture after an answer may have been on its way when the replay was asked; the second was not."""

_NAMES: Final[dict[MarkKind, str]] = {
    "alert": "alert", "control": "control action", "version": "change of version", "gap": "gap",
}  # fmt: skip


@dataclass(frozen=True)
class Opening:
    """How a replay begins: at this speed (seconds of record a second, None for as fast as it goes), and at a moment,
    once the trace was read that far."""

    speed: float | None = 1.0
    at: Moment | None = None


class ReplayDesk:
    """The keys' methods assume what their actions need: a replay on the screen."""

    def __init__(self, app: SpecdeckApp, opening: Opening | None = None) -> None:
        """`opening`: asked with the first picture."""
        self._app = app
        self._opening = opening
        self._at = opening.at if opening is not None else None
        self._waiting: list[ReplayAct] = []
        self._asking = False
        self._answered_at = -1
        self._notes: set[str] = set()

    def see(self, snapshot: Snapshot) -> None:
        """Take in a snapshot that is on the screen now: it takes over from what was expected."""
        if snapshot.replay is None:
            return
        if not self._asking and snapshot.number >= self._answered_at + PICTURES_BEHIND:
            self._app.expect(None)
        for note in snapshot.replay.notes:
            if note not in self._notes:
                self._notes.add(note)
                self._app.tell(clean(note), severity="warning")
        self._open(snapshot.replay)

    # Keys

    def toggle(self) -> None:
        playing = not self._view.playing
        self._ask(ReplayAct(act="play" if playing else "pause"), self._expected(playing=playing))

    def step(self, count: int) -> None:
        self._ask(ReplayAct(act="step", count=count), self._expected(playing=False))

    def speed(self, step: int) -> None:
        speed = next_speed(self._view.speed, step)
        before = self._expected()
        self._ask(ReplayAct(act="speed", speed=speed), Expected(before.ts, before.playing, speed, before.loop))

    def jump(self, kind: MarkKind, step: int) -> None:
        mark = neighbour(self._view.marks, self._moment, step, kind)
        if mark is None and self._view.complete:
            self._app.tell(f"There is no {_NAMES[kind]} {'after' if step > 0 else 'before'} this moment.")
            return
        held = self._expected() if mark is None else self._expected(ts=mark.ts, playing=False)
        self._ask(ReplayAct(act="jump", kind=kind, count=step), held)

    def seek(self, ts: float) -> None:
        self._ask(ReplayAct(act="seek", ts=ts), self._expected(ts=ts))

    def edge(self, share: float) -> None:
        """To the start (0) or the end (1) of what was read."""
        ts = self._view.start + share * (self._view.end - self._view.start)
        self._ask(ReplayAct(act="seek", share=share), self._expected(ts=ts))

    def go(self) -> None:
        from console.app.replay.go_dialog import GoDialog

        def chosen(ts: float | None) -> None:
            if ts is not None:
                self.seek(ts)

        self._app.push_screen(GoDialog(self._view, self._moment), chosen)

    def loop(self) -> None:
        """First the beginning of a loop, then its end; with a loop on, no loop."""
        begin, now = self._app.picture.loop_from, self._moment
        if self._view.loop is not None:
            self._set_loop(None)
        elif begin is None:
            self._app.mark_loop(now)
            self._app.tell(f"A loop begins at {numbers.clock(now)}: go to where it ends, then press o.")
        elif begin == now:
            self._app.tell("The loop begins at this moment: go to where it ends, then press o.")
        else:
            self._set_loop((min(begin, now), max(begin, now)))
            if not self._view.playing:  # at the end of the trace it has stopped by itself
                self.toggle()

    def what_if(self) -> None:
        from console.app.replay.what_if_dialog import WhatIfDialog

        self._app.push_screen(WhatIfDialog(self._app.feed, self._app.picture))

    # How

    @property
    def _view(self) -> ReplayView:
        view = self._app.picture.replay
        assert view is not None  # the actions need it
        return view

    @property
    def _moment(self) -> float:
        return self._app.picture.moment

    def _open(self, view: ReplayView) -> None:
        """What the command line asked for."""
        opening, self._opening = self._opening, None
        if opening is not None:
            expected = Expected(None, True, opening.speed, view.loop)
            self._ask(ReplayAct(act="speed", speed=opening.speed), expected)
            self._ask(ReplayAct(act="play"), expected)
        if self._at is None:
            return
        try:
            ts = resolve(self._at, view.start, view.end, view.start)
        except MomentError as error:
            if view.complete:
                self._at = None
                self._app.tell(str(error), severity="warning")
            return
        if view.complete or (self._at.kind != "share" and ts < view.end):
            self._at = None
            self.seek(ts)

    def _expected(self, *, ts: float | None = None, playing: bool | None = None) -> Expected:
        """What is shown now, with what an act changes of it."""
        view, before = self._view, self._app.picture.expected
        kept = before.ts if ts is None and before is not None else ts
        return Expected(kept, view.playing if playing is None else playing, view.speed, view.loop)

    def _set_loop(self, loop: tuple[float, float] | None) -> None:
        self._app.mark_loop(None)
        before = self._expected()
        self._ask(ReplayAct(act="loop", loop=loop), Expected(before.ts, before.playing, before.speed, loop))

    def _ask(self, act: ReplayAct, expected: Expected) -> None:
        self._app.expect(expected)
        last = self._waiting[-1] if self._waiting else None
        if last is not None and last.act == act.act == "step":
            self._waiting[-1] = replace(last, count=last.count + act.count)
        elif last is not None and last.act == act.act in ("seek", "speed"):
            self._waiting[-1] = act
        else:
            self._waiting.append(act)
        if not self._asking:
            self._asking = True
            self._app.run_worker(self._send(), group="replay", exit_on_error=False)

    async def _send(self) -> None:
        try:
            while self._waiting:
                act = self._waiting.pop(0)
                await self._app.feed.request("replay_act", act, ReplayView, ANSWER_SECONDS)
        except FeedError as error:
            self._waiting.clear()
            self._app.expect(None)
            self._app.tell(error.message, severity="warning")
        finally:
            self._asking = False
            snapshot = self._app.picture.snapshot
            self._answered_at = snapshot.number if snapshot is not None else -1
