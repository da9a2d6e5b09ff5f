"""Alerts of events: losses, outages, mismatches. What comes again soon belongs to the alert that there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import msgspec

from store.judge.alerts import Alert, Cause, Evidence, Kind, Severity
from store.judge.book import AlertBook
from store.judge.inputs import ClockStep, EngineDown, MapStale, PolicyMismatch, RowsQuarantined, TelemetryLost
from store.judge.settings import JudgeSettings

Happened = Literal["telemetry_loss", "quarantine", "clock_step", "policy_mismatch", "engine_down", "map_stale"]

SEVERITY: Final[dict[Kind, Severity]] = {
    "telemetry_loss": "warn",
    "quarantine": "warn",
    "clock_step": "warn",
    "policy_mismatch": "critical",
    "engine_down": "critical",
    "map_stale": "info",
}


class Open(msgspec.Struct):
    """An event alert that fires."""

    alert: int
    last: float
    """The last moment at which it was true."""
    lasting: bool = False
    """It is true until told otherwise; else it is over once nothing comes for a while."""


class HappeningsMemory(msgspec.Struct):
    open: dict[str, Open] = {}
    """By kind and engine."""


class Happenings:
    """Args:
    memory: changed in place.
    causes: what changed on an engine between two moments.
    """

    def __init__(
        self,
        memory: HappeningsMemory,
        book: AlertBook,
        settings: JudgeSettings,
        causes: Callable[[str, float, float], list[Cause]],
    ) -> None:
        self.memory = memory
        self._book = book
        self._settings = settings
        self._causes = causes

    def telemetry_lost(self, event: TelemetryLost) -> None:
        alert = self._raise("telemetry_loss", event.engine, event.ts, began=event.since)
        self._add_up(alert, gaps=1, frames_lost=event.frames_lost, reason=event.reason)

    def quarantined(self, event: RowsQuarantined) -> None:
        self._add_up(self._raise("quarantine", event.engine, event.ts), rows=event.rows)

    def clock_stepped(self, event: ClockStep) -> None:
        alert = self._raise("clock_step", event.engine, event.ts)
        self._add_up(alert, steps=1, seconds=round(event.seconds, 3))

    def mismatch(self, event: PolicyMismatch) -> None:
        """Begins or lasts or, with `ended`, ends."""
        if event.ended is not None:
            self.kept(event.engine, event.ended)
            return
        alert = self._raise("policy_mismatch", event.engine, event.started, lasting=True)
        evidence: Evidence = {
            "configured": event.configured,
            "resolved": event.resolved,
            "executed": event.executed,
            "reason": event.reason,
        }
        self._book.change(alert.id, evidence=alert.evidence | evidence)

    def kept(self, engine: str, ts: float) -> None:
        """The engine executes what is configured: a mismatch is over, if there was one."""
        known = self.memory.open.get(f"policy_mismatch {engine}")
        if known is not None and known.lasting:
            known.lasting, known.last = False, max(known.last, ts)

    def down(self, event: EngineDown) -> None:
        alert = self._raise("engine_down", event.engine, event.ts, lasting=True)
        self._add_up(alert, times=1, why=event.why or None)

    def up(self, engine: str, ts: float) -> None:
        known = self.memory.open.get(f"engine_down {engine}")
        if known is not None:
            known.lasting, known.last = False, ts

    def map_stale(self, event: MapStale) -> None:
        """Begins or lasts, perhaps for another reason than before."""
        alert = self._raise("map_stale", event.engine, event.ts, lasting=True)
        self._book.change(alert.id, evidence={"map": event.map, "differs": event.differs})

    def map_holds(self, engine: str, ts: float) -> None:
        """Over at once, if there was one: a map does not come and go by itself."""
        known = self.memory.open.pop(f"map_stale {engine}", None)
        if known is not None:
            self._book.resolve(known.alert, ts)

    def tick(self, ts: float) -> None:
        """End what has been quiet for long enough."""
        for key, one in [*self.memory.open.items()]:
            if not one.lasting and one.last + self._settings.quiet_seconds <= ts:
                self._book.resolve(one.alert, one.last)
                del self.memory.open[key]

    def _raise(
        self, kind: Happened, engine: str, ts: float, *, began: float | None = None, lasting: bool = False
    ) -> Alert:
        """The alert of this kind for this engine: the one there is, unless that was quiet for long, or a new one."""
        self.tick(ts)
        key = f"{kind} {engine}"
        known = self.memory.open.get(key)
        if known is not None:
            known.last, known.lasting = max(known.last, ts), lasting
            return self._book.get(known.alert)
        since = ts if began is None else min(began, ts)
        alert = self._book.open(
            kind=kind, severity=SEVERITY[kind], engine=engine, bucket=None, state="firing", pending_since=since,
            started=since, confirmed=ts, causes=self._causes(engine, since - self._settings.quiet_seconds, ts),
        )  # fmt: skip
        self.memory.open[key] = Open(alert.id, ts, lasting)
        return alert

    def _add_up(self, alert: Alert, **amounts: float | str | None) -> None:
        """Add numbers to those in the evidence; words replace what was there."""
        evidence = dict(alert.evidence)
        for name, amount in amounts.items():
            before = evidence.get(name)
            adds = isinstance(before, int | float) and isinstance(amount, int | float)
            evidence[name] = before + amount if adds else amount  # type: ignore[operator]
        self._book.change(alert.id, evidence=evidence)
