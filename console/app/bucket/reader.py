"""What the Bucket screen has asked the station for, when it is due again, and what came of it."""

from __future__ import annotations

from typing import Final, NamedTuple

from console.app.alerts.lines import alert_lines
from console.app.bucket.facts import SPANS, BucketFacts
from console.app.live import columns
from console.app.picture import Picture
from console.feed.bucket_detail import BucketDetail, BucketDetailParams
from console.feed.client import Feed, FeedError
from console.feed.messages import AlertView, Series
from console.feed.protocol import AlertsParams, SeriesParams
from store.figures import BucketKey
from store.judge.reports import AlertHistory

READINGS_A_POINT: Final = 3.0
SERIES_SECONDS: Final = 30.0
"""The series are read so often while a point is made, and so far apart at most."""
DETAIL_SECONDS: Final = 15.0
IN_A_REPLAY: Final = 0.001
"""Part of these times after which a replay is asked again: a seek may lead anywhere."""


class Asked(NamedTuple):
    """Of which bucket and window, and at which times of the picture the series and the detail."""

    key: BucketKey
    place: int
    series_at: float
    detail_at: float


class BucketReader:
    def __init__(self) -> None:
        self._asked: Asked | None = None
        self._series: Series | None = None
        self._detail: BucketDetail | None = None
        self._past: list[AlertView] = []
        self._trouble = ""
        self.has_answers = False
        """The station has answered for the bucket and window that were asked for last, or refused to."""

    def due(self, key: BucketKey, place: int, ts: float, replaying: bool) -> bool | None:
        """None while nothing has to be read; else whether the detail has to be too. It is then taken to be read.

        Args:
            place: number of the window in `SPANS`.
            ts: time of the picture, Unix seconds.
        """
        last, patience, span = self._asked, IN_A_REPLAY if replaying else 1.0, SPANS[place]
        pause = min(SERIES_SECONDS, span.seconds / span.points / READINGS_A_POINT)
        same = last is not None and last.key == key
        in_detail = last is None or not same or abs(ts - last.detail_at) >= DETAIL_SECONDS * patience
        if last is None or not self.knows(key, place):
            self.has_answers, self._series = False, None
        elif abs(ts - last.series_at) < pause * patience and not in_detail:
            return None
        self._asked = Asked(key, place, ts, ts if in_detail or last is None else last.detail_at)
        return in_detail

    async def read(self, feed: Feed, key: BucketKey, place: int, in_detail: bool) -> None:
        """Ask the station; what it refuses is told instead."""
        span, parts = SPANS[place], columns.key_parts(key)
        try:
            params = SeriesParams(key=parts, seconds=span.seconds, points=span.points, detail=True)
            self._series = await feed.request("series", params, Series, 4.0)
            self._trouble = ""
            if in_detail:
                self._detail = await feed.request("bucket_detail", BucketDetailParams(key=parts), BucketDetail, 6.0)
                history = await feed.request("alerts", AlertsParams(window=SPANS[-1].seconds), AlertHistory, 4.0)
                self._past = [line.view for line in alert_lines(history.alerts, [])]
        except FeedError as error:
            self._trouble = error.message
        self.has_answers = True

    def knows(self, key: BucketKey, place: int) -> bool:
        """Whether the station was asked for this bucket and window last."""
        return self._asked is not None and (self._asked.key, self._asked.place) == (key, place)

    def facts(self, picture: Picture, key: BucketKey, place: int, at: float | None) -> BucketFacts:
        """What is known of a bucket now; `at`: the moment that is read out."""
        fits = self.knows(key, place)
        return BucketFacts(
            key=key,
            bucket=picture.bucket(key),
            span=SPANS[place],
            series=self._series if fits else None,
            detail=self._detail if self._detail is not None and self._detail.key == key else None,
            alerts=tuple(self._alerts(picture, key)),
            engine=picture.engines[0] if picture.engines else None,
            at=at,
            trouble=self._trouble if fits else "",
        )

    def _alerts(self, picture: Picture, key: BucketKey) -> list[AlertView]:
        """Those that fired, of this bucket or of a whole engine."""
        now = picture.snapshot.alerts if picture.snapshot is not None else []
        newest = {alert.id for alert in now if alert.id is not None}
        found = [*now, *(alert for alert in self._past if alert.id not in newest)]
        return [alert for alert in found if alert.bucket in (key, None) and alert.state != "pending"]
