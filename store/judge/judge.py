"""The judge as the store drives it: cells and events in the order of record time in, alerts and notes out.

Deterministic: the same inputs give the same alerts, whether they come live, in a replay, or with a restart in between.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from store.buckets import BucketName
from store.figures import BucketKey
from store.judge.acceptance import AcceptanceJudge
from store.judge.alerts import ACCEPTANCE, Alert, BucketView, Cause, Changes
from store.judge.arrays import packed
from store.judge.book import AlertBook
from store.judge.happenings import Happenings
from store.judge.history import History
from store.judge.inputs import (
    ClockStep,
    ControlDone,
    EngineDown,
    EngineStarted,
    EngineUp,
    Event,
    LoadCells,
    MapHolds,
    MapStale,
    PolicyKept,
    PolicyMismatch,
    RowsQuarantined,
    SequenceCells,
    TelemetryLost,
)
from store.judge.loads import Loads
from store.judge.memory import JudgeMemory, empty_memory, read_memory
from store.judge.mix import MixJudge
from store.judge.places import Places
from store.judge.settings import DEFAULTS, HOUR, WINDOWS, JudgeSettings
from store.judge.speed import SpeedJudge
from store.judge.standing import AcceptanceAlerts
from store.judge.succession import Succession
from store.judge.twice import Twice
from store.judge.verdict import Verdicts
from store.judge.views import is_quiet, view_of
from store.levels import CELL_SECONDS

TICK: Final = WINDOWS[0]


class Judge:
    """
    Args:
        names: the store's number of a bucket → its name, for every bucket that is fed; may grow.
        memory: of an earlier judge; changed in place.

    Cells are closed 10-s cells, fed in the order of time, as are events; an event comes before the cell that holds it.
    """

    def __init__(
        self,
        names: Mapping[int, BucketName],
        settings: JudgeSettings = DEFAULTS,
        memory: JudgeMemory | None = None,
    ) -> None:
        self._memory = memory = memory or empty_memory()
        self._shown: dict[int, tuple[object, BucketView]] = {}
        self.settings = settings
        self._places = Places(names, memory.names)
        self._book = AlertBook(memory.book, settings.kept_resolved)
        self._history = History(memory.history)
        self._loads = Loads(memory.loads, settings)
        self._mix = MixJudge(memory.mix, self._places, self._book, settings)
        self._standing = AcceptanceAlerts(self._book, self._places, settings, self._causes)
        verdicts = Verdicts(self._standing, self._book, self._places, settings)
        self._succession = Succession(self._places, memory.acceptance, memory.history, self._standing, settings)
        self._acceptance = AcceptanceJudge(
            memory.acceptance, self._places, verdicts, self._succession.arrived, self._mix.windows
        )
        twice = Twice(self._book, self._loads, self._history.causes)
        self._speed = SpeedJudge(memory.speed, self._places, twice, self._loads, settings)
        self._happenings = Happenings(memory.happenings, self._book, settings, self._history.causes)

    # Fed by the store

    def sequences(self, cell: SequenceCells) -> None:
        self.advance(cell.ts)
        self._acceptance.add(cell)

    def load(self, cell: LoadCells) -> None:
        self.advance(cell.ts)
        self._speed.add(cell)

    def advance(self, ts: float) -> None:
        """Record time has come to `ts`, and all cells that end by then were fed: end the windows that are over."""
        memory = self._memory
        if memory.ticked is None:
            memory.ticked = ts // TICK * TICK
        while (following := (memory.ticked // TICK + 1) * TICK) <= ts:
            if not (self._acceptance or self._speed):
                memory.ticked = ts // TICK * TICK
                self._keep_house(memory.ticked)
                return
            self._tick(following)

    def finish(self, ts: float) -> None:
        """A trace ends at `ts`, the end of its last cell: end all windows as they are, and look at them."""
        self.advance(ts)
        self._loads.tick(ts)
        self._end_windows(ts, {name[0] for name in self._places.names.values()})
        self._speed.tick(ts)
        self._happenings.tick(ts)

    def event(self, event: Event) -> None:
        match event:
            case EngineStarted():
                self._started(event)
            case ControlDone():
                self._history.control(event)
            case EngineDown():
                self._happenings.down(event)
            case EngineUp():
                self._happenings.up(event.engine, event.ts)
            case TelemetryLost():
                self._happenings.telemetry_lost(event)
            case RowsQuarantined():
                self._happenings.quarantined(event)
            case PolicyMismatch():
                self._happenings.mismatch(event)
            case PolicyKept():
                self._happenings.kept(event.engine, event.ts)
            case ClockStep():
                self._happenings.clock_stepped(event)
            case MapStale():
                self._happenings.map_stale(event)
            case MapHolds():
                self._happenings.map_holds(event.engine, event.ts)

    # Told by the operator

    def acknowledge(self, alert: int, by: str, ts: float) -> Alert:
        """
        Raises:
            UnknownAlert: names it.
        """
        return self._book.change(alert, acknowledged=by, acknowledged_at=ts)

    def snooze(self, alert: int, until: float) -> Alert:
        """It goes on; who shows it keeps quiet until then.

        Raises:
            UnknownAlert: names it.
        """
        return self._book.change(alert, snoozed_until=until)

    def accept_level(self, engine: str, bucket: BucketKey, ts: float) -> bool:
        """The present acceptance of a bucket is right: its baseline and its pinned reference begin again with it, its
        alert is over. False where nothing is known of the present level."""
        number = self._places.find(engine, bucket)
        if number is None or number not in self._memory.acceptance.buckets:
            return False
        return self._standing.accept(self._memory.acceptance.buckets[number], ts)

    def accept_alert(self, alert: int, ts: float) -> bool:
        """The same for the bucket of an acceptance alert.

        Raises:
            UnknownAlert: names it.
        """
        found = self._book.get(alert)
        return (
            found.bucket is not None and found.kind in ACCEPTANCE and self.accept_level(found.engine, found.bucket, ts)
        )

    # Asked

    def alert(self, number: int) -> Alert:
        """
        Raises:
            UnknownAlert: names it.
        """
        return self._book.get(number)

    def alerts(self) -> list[Alert]:
        """Pending and firing ones, in the order of their numbers."""
        return sorted(self._book.active(), key=lambda alert: alert.id)

    def changes(self) -> Changes:
        """What is new since the last call."""
        return self._book.changes()

    def views(self) -> list[BucketView]:
        """Every bucket that is not forgotten, in no particular order."""
        return [self._view(number) for number in self._memory.acceptance.buckets]

    def _view(self, number: int) -> BucketView:
        """Made anew when a window has ended or the bucket's state has changed: screens ask four times a second."""
        acceptance, now = self._memory.acceptance, self._memory.ticked or 0.0
        bucket = acceptance.buckets[number]
        last = (float(acceptance.seen[number]), float(acceptance.drafted[number]))
        stamp = (now, bucket.pending, bucket.standing is None, is_quiet(bucket, *last, self.settings))
        known = self._shown.get(number)
        if known is None or known[0] != stamp:
            view = view_of(self._places.names[number], bucket, *last, now, self.settings)
            known = self._shown[number] = (stamp, view)
        return known[1]

    def state(self) -> dict[str, Any]:
        """All that it knows, as plain values that JSON can hold."""
        self._acceptance.remember()
        return packed(self._memory)

    @classmethod
    def restore(
        cls,
        state: dict[str, Any],
        names: Mapping[int, BucketName],
        settings: JudgeSettings = DEFAULTS,
        *,
        renumbered: bool = False,
    ) -> Judge:
        """Go on where another judge was.

        Args:
            renumbered: the store numbers sequences otherwise than the one whose judge it was, as in a replay.

        Raises:
            msgspec.ValidationError: not such a state; names the field.
            ValueError: the state of another version of the judge.
        """
        return cls(names, settings, read_memory(state, renumbered=renumbered))

    # Within

    def _tick(self, ts: float) -> None:
        self._loads.tick(ts)
        self._end_windows(ts)
        self._speed.tick(ts)
        self._keep_house(ts)

    def _end_windows(self, ts: float, cut: Collection[str] = ()) -> None:
        assert self._memory.ticked is not None
        self._acceptance.tick(self._memory.ticked, ts, cut)
        self._memory.ticked = ts

    def _keep_house(self, ts: float) -> None:
        """End what was not seen for long."""
        self._happenings.tick(ts)
        self._speed.expire(ts)
        acceptance = self._memory.acceptance
        for alert in [one for one in self._book.active() if one.kind in ACCEPTANCE]:
            number = None if alert.bucket is None else self._places.find(alert.engine, alert.bucket)
            if number is not None:
                ended = float(acceptance.seen[number]) + self.settings.stale_seconds
                if ended <= ts:
                    cause = Cause("gone", "no traffic for a day", ended)
                    self._standing.close(acceptance.buckets[number], ended, cause)
        if ts % WINDOWS[-1] == 0:
            for number in [*acceptance.buckets]:
                if acceptance.seen[number] + self.settings.forget_seconds <= ts:
                    self._acceptance.forget(number)
                    self._speed.forget(number)
                    self._places.forget(number)

    def _started(self, event: EngineStarted) -> None:
        self._happenings.up(event.engine, event.ts)
        cause = self._history.started(event)
        if cause is None:
            return
        cell = event.ts // CELL_SECONDS * CELL_SECONDS
        self.advance(cell)
        if self._memory.ticked is not None and cell > self._memory.ticked:
            self._end_windows(cell, [event.engine])
        self._succession.engine_changed(event.engine, event.model_version, cause, event.ts)

    def _causes(self, number: int, moment: float, since: float) -> list[Cause]:
        engine, workload = self._places.names[number][:2]
        before = self._loads.between(engine, moment - HOUR, moment)
        return [
            *self._history.causes(engine, moment, since, workload),
            *self._loads.causes(before, self._loads.between(engine, moment, since)),
            *self._mix.causes(moment - HOUR, since),
        ]
