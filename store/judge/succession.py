"""What a changed engine means for its buckets: those of an old version end, new ones are compared with their like."""

from __future__ import annotations

from store.judge.acceptance import AcceptanceMemory
from store.judge.alerts import Cause
from store.judge.bucket import BucketMemory, Change
from store.judge.history import HistoryMemory, version_change
from store.judge.places import Places
from store.judge.settings import WINDOWS, JudgeSettings
from store.judge.standing import AcceptanceAlerts


class Succession:
    def __init__(
        self,
        places: Places,
        acceptance: AcceptanceMemory,
        history: HistoryMemory,
        alerts: AcceptanceAlerts,
        settings: JudgeSettings,
    ) -> None:
        self._places = places
        self._acceptance = acceptance
        self._history = history
        self._alerts = alerts
        self._settings = settings

    def engine_changed(self, engine: str, version: str, cause: Cause, ts: float) -> None:
        """An engine has started with another version or configuration."""
        for number in self._places.of_engine(engine):
            bucket = self._acceptance.buckets.get(number)
            if bucket is None:
                continue
            if self._places.names[number][4] != version:
                self._replaced(bucket, cause, ts)
            elif cause.kind == "configuration":
                self._reconfigured(bucket, cause, ts)

    def arrived(self, number: int, ts: float) -> None:
        """A bucket is seen for the first time: find its like under the version before."""
        last = self._predecessor(number)
        if last is None:
            return
        before = self._acceptance.buckets[last]
        level = before.level_before(float(self._acceptance.seen[last]), self._settings)
        if level is None:
            return
        engine, version = self._places.names[number][0], self._places.names[number][4]
        running = self._history.running.get(engine)
        since = running.ts if running is not None and running.model_version == version else ts
        text = version_change(self._places.names[last][4], version)
        self._acceptance.buckets[number].change = Change(
            "version", min(since, ts), text, level, before.replaced_low, self._looks()
        )

    def _predecessor(self, number: int) -> int | None:
        """The bucket of the same engine, workload, context and temperature that was seen last."""
        name, known = self._places.names[number], self._acceptance
        alike = [
            other
            for other in self._places.of_engine(name[0])
            if other != number and other in known.buckets and self._places.names[other][:4] == name[:4]
        ]
        return max(alike, key=lambda other: float(known.seen[other]), default=None)

    def _replaced(self, bucket: BucketMemory, cause: Cause, ts: float) -> None:
        bucket.replaced_low = bucket.standing is not None
        self._alerts.close(bucket, ts, Cause("gone", f"replaced by another {cause.text}", ts))

    def _reconfigured(self, bucket: BucketMemory, cause: Cause, ts: float) -> None:
        level = bucket.level_before(ts, self._settings)
        if level is not None:
            low = bucket.standing is not None
            bucket.change = Change("configuration", ts, cause.text, level, low, self._looks())

    def _looks(self) -> list[int]:
        return [self._settings.change_looks] * len(WINDOWS)
