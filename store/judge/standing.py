"""The acceptance alert of a bucket, one at a time: it pends, fires, is explained, gets worse, and is over."""

from __future__ import annotations

from collections.abc import Callable

from store.judge.alerts import Cause
from store.judge.book import AlertBook
from store.judge.bucket import BucketMemory, Standing
from store.judge.compare import compared, plain
from store.judge.evidence import evidence_of, gradual
from store.judge.places import Places, key_of
from store.judge.reference import pooled
from store.judge.settings import WINDOWS, JudgeSettings
from store.judge.suspect import Found, Look, is_step

Causes = Callable[[int, float, float], list[Cause]]
"""What changed around a bucket between two moments."""


class AcceptanceAlerts:
    def __init__(self, book: AlertBook, places: Places, settings: JudgeSettings, causes: Causes) -> None:
        self._book = book
        self._places = places
        self._settings = settings
        self._causes_around = causes

    def pend(self, look: Look, found: Found) -> None:
        """Something is suspected: say so, unless an alert says more already."""
        bucket = look.bucket
        if bucket.standing is not None or bucket.pending is not None:
            return
        name = self._places.names[look.number]
        bucket.pending = self._book.open(
            kind=found.suspicion.kind,
            severity="critical" if found.suspicion.kind == "shift" else "warn",
            engine=name[0],
            bucket=key_of(name),
            state="pending",
            pending_since=found.suspicion.since,
            window_seconds=look.seconds,
            evidence=evidence_of(found.compared, found.suspicion.against, look),
        ).id

    def settle_pending(self, bucket: BucketMemory, ts: float) -> None:
        """A pending alert of which nothing is suspected any more never fired."""
        if bucket.pending is not None and not bucket.suspected:
            self._book.resolve(bucket.pending, ts)
            bucket.pending = None

    def confirm(self, look: Look, found: Found) -> None:
        """What was suspected is certain: an alert, or more about the one that fires."""
        bucket, suspicion, standing = look.bucket, found.suspicion, look.bucket.standing
        if suspicion.kind == "shift":
            if suspicion.moment < bucket.settled:
                return  # windows of another length have found it already
            bucket.settled = suspicion.since
        if standing is None:
            self._fire(look, found)
        elif suspicion.kind == "shift":
            before = suspicion.moment < standing.since
            explains = before and is_step(found, standing.level, look, self._settings)
            (self._explain if explains else self._append)(look, found, standing)

    def follow(self, look: Look) -> None:
        """See how the bucket stands while its alert fires; two clear looks in a row end it."""
        standing = look.bucket.standing
        if standing is None or look.scale < standing.scale:
            return
        level = plain(standing.level)
        result = compared(look.present, level, self._settings)
        if result is None:
            return
        cleared = result.fall.fall < self._settings.clear_fall
        standing.cleared[look.scale] = standing.cleared[look.scale] + 1 if cleared else 0
        if standing.cleared[look.scale] >= 2:
            self._resolve(look.bucket, look.window.end, None)
        elif not cleared and look.scale == standing.scale:
            last = look.bucket.tracks[look.scale].recent[-1:]
            both = compared(plain(pooled([*last, look.window])), level, self._settings)
            if both is not None:
                self._book.change(standing.alert, evidence=evidence_of(both, standing.against, look))

    def close(self, bucket: BucketMemory, ended: float, cause: Cause) -> None:
        """Whatever is pending or fires on this bucket is over, for another reason than that acceptance came back."""
        if bucket.standing is not None:
            self._resolve(bucket, ended, cause)
        bucket.clear_suspicions()
        self.settle_pending(bucket, ended)

    def accept(self, bucket: BucketMemory, ts: float) -> bool:
        """The present level is the right one: both references begin again with it. False where no level is known."""
        places = (1, 0, 2) if bucket.standing is None else (bucket.standing.scale,)
        level = next((found for place in places if (found := bucket.tracks[place].recent[-2:])), None)
        if level is None:
            return False
        self.close(bucket, ts, Cause("accepted", "the operator accepted the new level", ts))
        bucket.baseline.accept(level, ts, self._settings)
        bucket.settled, bucket.change = ts, None
        return True

    def _fire(self, look: Look, found: Found) -> None:
        bucket, suspicion = look.bucket, found.suspicion
        self.pend(look, found)
        assert bucket.pending is not None
        causes = self._causes(look, found)
        if suspicion.kind == "drift" and gradual(look, found, self._settings):
            causes.append(Cause("gradual", "it came little by little, over more than one window"))
        others = (one.since for track in bucket.tracks for one in track.suspicions.values())
        since = min([suspicion.since, *others])
        self._book.fire(
            bucket.pending,
            since,
            look.window.end,
            kind=suspicion.kind,
            severity="critical" if suspicion.kind == "shift" else "warn",
            window_seconds=look.seconds,
            evidence=evidence_of(found.compared, suspicion.against, look),
            causes=causes,
        )
        cleared = [0] * len(WINDOWS)
        bucket.standing = Standing(bucket.pending, look.scale, suspicion.against, suspicion.levels[0], since, cleared)
        bucket.pending = None
        bucket.baseline.held = []
        for track in bucket.tracks:
            track.suspicions.pop("drift", None)

    def _explain(self, look: Look, found: Found, standing: Standing) -> None:
        """A drift turns out to be a shift: one alert, under the sharper name."""
        evidence = evidence_of(found.compared, found.suspicion.against, look)
        self._book.change(standing.alert, kind="shift", severity="critical", evidence=evidence)
        self._book.append_causes(standing.alert, self._causes(look, found))

    def _append(self, look: Look, found: Found, standing: Standing) -> None:
        """A step of a fall that is known: a cause, not another alert."""
        fall = found.compared.fall
        again = " again" if found.suspicion.moment >= standing.since else ""
        text = (
            f"fell{again} by {100 * fall.fall:.1f} points, from {fall.reference.value:.0%} to {fall.present.value:.0%} "
            f"at depth {found.compared.depth}"
        )
        self._book.change(standing.alert, severity="critical")
        step = Cause("shift", text, found.suspicion.moment)
        self._book.append_causes(standing.alert, [step, *self._causes(look, found)])

    def _causes(self, look: Look, found: Found) -> list[Cause]:
        suspicion, change = found.suspicion, look.bucket.change
        began = min(suspicion.moment, suspicion.since - 2 * look.seconds)
        causes = self._causes_around(look.number, began, suspicion.since)
        if change is not None and suspicion.against == "change" and change.low_already:
            causes.append(Cause("not_fixed", "it was below its level before this change, too", change.ts))
        return causes

    def _resolve(self, bucket: BucketMemory, ended: float, cause: Cause | None) -> None:
        standing = bucket.standing
        assert standing is not None
        self._book.resolve(standing.alert, ended, cause)
        bucket.standing, bucket.frozen_until = None, ended
        bucket.baseline.pause(max(0.0, ended - standing.since))
        bucket.clear_suspicions()
