"""Looks once at each window of a bucket that holds enough, and says what it adds to what is known and suspected."""

from __future__ import annotations

from typing import Final

from store.judge.alerts import Cause
from store.judge.book import AlertBook
from store.judge.bucket import BucketMemory, Suspected, Suspicion
from store.judge.compare import knows, plain
from store.judge.evidence import resumed_note
from store.judge.moments import N
from store.judge.pairs import RESUMED
from store.judge.places import Places, key_of
from store.judge.reference import pooled
from store.judge.scale import Window
from store.judge.settings import WINDOWS, JudgeSettings
from store.judge.standing import AcceptanceAlerts
from store.judge.suspect import Found, Look, Second, find, is_step, second_look

_ORDER: Final[tuple[Suspected, ...]] = ("shift", "drift")
"""A shift explains a drift that the same window confirms, unless it is a part of it."""

_LONGEST: Final = len(WINDOWS) - 1


class Verdicts:
    def __init__(self, alerts: AcceptanceAlerts, book: AlertBook, places: Places, settings: JudgeSettings) -> None:
        self._alerts = alerts
        self._book = book
        self._places = places
        self._settings = settings

    def window(self, number: int, bucket: BucketMemory, scale: int, window: Window) -> None:
        """A window of a bucket has ended."""
        look = Look(number, bucket, scale, window, plain(window.sums))
        if self._enough(look):
            self._look(look)
            recent = bucket.tracks[scale].recent
            recent.append(window.kept())
            del recent[: -self._settings.before_windows]
            if bucket.change is not None:
                bucket.change.looks_left[scale] -= 1
        if look.present[RESUMED][N] >= self._settings.depth_sequences:
            self._note_resumed(look)
        if scale == _LONGEST:
            self._teach(bucket, window)

    def _enough(self, look: Look) -> bool:
        bucket, settings = look.bucket, self._settings
        if len(look.present) < 2 or not knows(look.present[1], 1, settings):
            return False
        track = bucket.tracks[look.scale]
        watched = bool(track.suspicions) or (bucket.standing is not None and bucket.standing.scale == look.scale)
        if watched or look.scale == _LONGEST:
            return True
        looked_before = bool(track.recent) and track.recent[-1].end == look.window.start
        return look.present[1][N] >= (settings.keep_sequences if looked_before else settings.enough_sequences)

    def _look(self, look: Look) -> None:
        self._alerts.follow(look)
        confirmed = [found for kind in _ORDER if (found := self._suspect(kind, look)) is not None]
        if len(confirmed) > 1 and not is_step(confirmed[0], confirmed[1].suspicion.levels[0], look, self._settings):
            confirmed.reverse()
        for found in confirmed:
            look.bucket.tracks[look.scale].suspicions.pop(found.suspicion.kind, None)
            self._alerts.confirm(look, found)
        self._alerts.settle_pending(look.bucket, look.window.end)

    def _suspect(self, kind: Suspected, look: Look) -> Found | None:
        """Hold the window against what is suspected, or find something new. Returns what it confirms."""
        suspicions = look.bucket.tracks[look.scale].suspicions
        suspicion = suspicions.get(kind)
        if suspicion is not None:
            second = second_look(suspicion, look, self._settings)
            if second is None:
                return None
            if second.stands:
                return self._second(suspicion, second, look)
            del suspicions[kind]
        if kind == "drift" and look.bucket.standing is not None:
            return None
        found = find(kind, look, self._settings)
        if found is not None:
            suspicions[kind] = found.suspicion
            if found.suspicion.sure:
                self._alerts.pend(look, found)
        return None

    def _second(self, suspicion: Suspicion, second: Second, look: Look) -> Found | None:
        """The next window stands below, too. It is evidence beside the first one where most of it comes from sequences
        that the first one did not have, or where it is much later."""
        window, settings = look.window, self._settings
        suspicion.carried *= window.carried
        later = window.end - suspicion.since >= settings.carried_seconds
        if suspicion.carried > settings.carried_share and not later:
            return None
        if second.certain:
            return Found(suspicion, second.compared)
        suspicion.first = pooled([Window(0.0, 0.0, suspicion.first), window])
        suspicion.sure, suspicion.carried = second.sure, 1.0
        return None

    def _teach(self, bucket: BucketMemory, window: Window) -> None:
        """Six hours are over: they count for the baseline if all was well."""
        settings = self._settings
        bucket.clear_suspicions(older_than=window.end - settings.stale_seconds)
        self._alerts.settle_pending(bucket, window.end)
        if bucket.standing is None and window.start >= bucket.frozen_until:
            if bucket.suspected:
                bucket.baseline.hold(window.kept())
            else:
                bucket.baseline.add(window.kept(), settings)
        change = bucket.change
        if change is not None and change.ts < window.end - settings.usable_seconds:
            usable = bucket.baseline.usable(window.end, settings) is not None
            bucket.change = None if usable else change

    def _note_resumed(self, look: Look) -> None:
        """Say once in six hours that post-resume acceptance is worse than the rest."""
        bucket = look.bucket
        if look.window.end < bucket.resumed_noted + WINDOWS[_LONGEST]:
            return
        name = self._places.names[look.number]
        note = resumed_note(look, name[0], key_of(name), self._settings)
        if note is not None:
            bucket.resumed_noted = look.window.end
            self._book.note(note)
            if bucket.standing is not None:
                self._book.append_causes(bucket.standing.alert, [Cause("post_resume", note.text, note.ts)])
