"""Screen 2: one bucket through time, with what happened in the meantime, and what each draft position and K bring."""

from __future__ import annotations

from typing import ClassVar, Final

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container

from console.app import actions, columns
from console.app.actions import Context
from console.app.alert_lines import alert_lines
from console.app.bucket_facts import SPANS, BucketFacts, Mark
from console.app.bucket_readout import moment_text
from console.app.bucket_side import side
from console.app.bucket_timeline import timeline
from console.app.deck_screen import DeckScreen
from console.app.guard import guarded
from console.app.line_view import LineView
from console.app.panel import Panel
from console.app.picture import Picture
from console.app.spans import Line, clean, wrap
from console.feed.bucket_detail import BucketDetail, BucketDetailParams
from console.feed.client import FeedError
from console.feed.messages import AlertView, BucketView, Series
from console.feed.protocol import AlertsParams, SeriesParams
from store.figures import BucketKey
from store.judge.reports import AlertHistory

LOOK_SECONDS: Final = 1.0
READINGS_A_POINT: Final = 3.0
SERIES_SECONDS: Final = 30.0
"""The series are read so often while a point is made, and so far apart at most."""
DETAIL_SECONDS: Final = 15.0

NOTHING: Final = "No bucket yet: one comes with the first answer. 1 says how to send traffic."


class BucketScreen(DeckScreen):
    CONTEXT: ClassVar[Context] = "bucket"
    BINDINGS: ClassVar[list[BindingType]] = actions.bindings("bucket")

    def __init__(self) -> None:
        super().__init__()
        self._span = 0
        self._at: float | None = None
        self._series: Series | None = None
        self._detail: BucketDetail | None = None
        self._past: list[AlertView] = []
        self._trouble = ""
        self._asked: tuple[BucketKey | None, int, float, float] | None = None
        """Of what and when the series and the detail were read last: times of snapshots."""
        self.has_answers = False
        """The station has answered for the bucket and window that are shown, or refused to."""

    def body(self) -> ComposeResult:
        with Container(id="bucket-body"):
            with Panel(id="timeline-panel"):
                yield LineView(id="timeline")
            with Panel(id="side-panel"):
                yield LineView(id="side")
        yield LineView(id="no-bucket")

    @property
    def key(self) -> BucketKey | None:
        """The bucket that is shown: the one that was chosen, else the first there is."""
        snapshot = self.deck.picture.snapshot
        chosen = self.deck.bucket
        if chosen is not None or snapshot is None or not snapshot.buckets:
            return chosen
        return snapshot.buckets[0].key

    @property
    def selected(self) -> BucketView | None:
        return self.deck.picture.bucket(self.key)

    @property
    def looking_at(self) -> tuple[BucketKey | None, str, float | None]:
        """Bucket, window and moment."""
        return self.key, SPANS[self._span].name, self._at

    def on_mount(self) -> None:
        self.set_interval(LOOK_SECONDS, self._look)
        self._look()

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        self._look()

    def look_at(self, ts: float | None) -> bool:
        """Put the cursor on a moment, in the shortest window that holds it; False where none does."""
        moment = self.deck.picture.moment
        self._at = ts
        if ts is not None:
            held = [span.seconds * (1 - 1 / span.points) for span in SPANS]
            reach = [place for place, seconds in enumerate(held) if moment - ts < seconds]
            self._span = reach[0] if reach else len(SPANS) - 1
            if not reach:
                self._at = None
        self._renew()
        return ts is None or self._at is not None

    # Drawing

    def draw(self, picture: Picture) -> None:
        facts = self._facts(picture)
        self.set_class(facts is None, "-empty")
        if facts is None:
            self._view("no-bucket").show(lambda width, height: _wrapped(NOTHING, width))
            return
        self._view("timeline").show(lambda width, height: timeline(facts, width, height))
        self._view("side").show(lambda width, height: side(facts, width, height))
        title = " · ".join([columns.bucket_name(facts.key), f"last {facts.span.name}", moment_text(facts)]).rstrip(" ·")
        self.query_one("#timeline-panel", Panel).caption(title, facts.trouble if facts.known else "")
        self.query_one("#side-panel", Panel).caption(self._version(facts))

    def _version(self, facts: BucketFacts) -> str:
        n = facts.bucket.figures.sequences if facts.bucket is not None else None
        window = facts.bucket.window_label if facts.bucket is not None else ""
        return "" if n is None else f"n {n:,} sequences in {window}"

    def _facts(self, picture: Picture) -> BucketFacts | None:
        key = self.key
        if key is None:
            return None
        fits = self._asked is not None and self._asked[:2] == (key, self._span)
        return BucketFacts(
            key=key,
            bucket=picture.bucket(key),
            span=SPANS[self._span],
            series=self._series if fits else None,
            detail=self._detail if self._detail is not None and self._detail.key == key else None,
            alerts=tuple(self._alerts(picture, key)),
            engine=picture.engines[0] if picture.engines else None,
            at=self._at,
            trouble=self._trouble if fits else "",
        )

    def _alerts(self, picture: Picture, key: BucketKey) -> list[AlertView]:
        now = picture.snapshot.alerts if picture.snapshot is not None else []
        newest = {alert.id for alert in now if alert.id is not None}
        found = [*now, *(alert for alert in self._past if alert.id not in newest)]
        return [alert for alert in found if alert.bucket in (key, None) and alert.state != "pending"]

    # What the station is asked

    def _look(self) -> None:
        """Read anew what is due."""
        picture, key = self.deck.picture, self.key
        snapshot = picture.snapshot
        if snapshot is None or key is None or picture.link.state != "connected" or not self.is_current:
            return
        if picture.paused_since is not None and self.has_answers:
            return
        enough = 0.001 if picture.replaying else 1.0
        last = self._asked
        new = last is None or last[:2] != (key, self._span)
        series_at, detail_at = (0.0, 0.0) if last is None or new else last[2:]
        span = SPANS[self._span]
        pause = min(SERIES_SECONDS, span.seconds / span.points / READINGS_A_POINT)
        want_series = abs(snapshot.ts - series_at) >= pause * enough
        want_detail = last is None or last[0] != key or abs(snapshot.ts - detail_at) >= DETAIL_SECONDS * enough
        if not want_series and not want_detail:
            return
        if new:
            self.has_answers, self._series = False, None
        self._asked = (key, self._span, snapshot.ts, snapshot.ts if want_detail or new else detail_at)
        self._fetch(key, self._span, want_detail)

    @work(exclusive=True, group="bucket", exit_on_error=False)
    async def _fetch(self, key: BucketKey, place: int, in_detail: bool) -> None:
        feed, span, parts = self.deck.feed, SPANS[place], columns.key_parts(key)
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
        self.draw(self.deck.picture)

    def _renew(self) -> None:
        """Another bucket, window or moment is shown; before there is a screen, it will be."""
        if not self.is_mounted:
            return
        self.draw(self.deck.picture)
        self._look()

    # Actions

    @guarded
    def action_earlier(self) -> None:
        self._move(-1)

    @guarded
    def action_later(self) -> None:
        self._move(1)

    def _move(self, step: int) -> None:
        facts = self._facts(self.deck.picture)
        if facts is None or facts.index is None:
            return
        index = facts.index + step
        self._set_at(facts.points[index].ts - facts.cell / 2 if 0 <= index < len(facts.points) else self._at)

    def _set_at(self, ts: float | None) -> None:
        self._at = ts
        self.draw(self.deck.picture)

    @guarded
    def action_newest(self) -> None:
        self._set_at(None)

    @guarded
    def action_next_mark(self) -> None:
        self._to_mark(1)

    @guarded
    def action_previous_mark(self) -> None:
        self._to_mark(-1)

    def _to_mark(self, step: int) -> None:
        """From one mark to the next, and round; cells with several count once."""
        facts = self._facts(self.deck.picture)
        places = sorted({facts.number_of(mark.ts) for mark in facts.marks}) if facts is not None else []
        if facts is None or not places:
            self.deck.tell("Nothing happened here in this window.")
            return
        here = facts.index if self._at is not None else None
        if here is None:
            chosen = places[0] if step > 0 else places[-1]
        elif step > 0:
            chosen = next((place for place in places if place > here), places[0])
        else:
            chosen = next((place for place in reversed(places) if place < here), places[-1])
        self._set_at(facts.points[chosen].ts - facts.cell / 2)

    @guarded
    def action_shorter(self) -> None:
        self._change_span(-1)

    @guarded
    def action_longer(self) -> None:
        self._change_span(1)

    def _change_span(self, step: int) -> None:
        place = self._span + step
        if not 0 <= place < len(SPANS):
            edge = "the shortest" if step < 0 else "the longest: a station holds six hours of series"
            self.deck.tell(f"{SPANS[self._span].name} is {edge}.")
            return
        self._span = place
        self._renew()

    @guarded
    def action_next_bucket(self) -> None:
        self._go(1)

    @guarded
    def action_previous_bucket(self) -> None:
        self._go(-1)

    def _go(self, step: int) -> None:
        """To the next bucket in the order of the Live screen, round at the end; the moment stays."""
        snapshot = self.deck.picture.snapshot
        if snapshot is None:
            return
        there = {bucket.key for bucket in snapshot.buckets}
        order = [key for key in self.deck.bucket_order if key in there] or [bucket.key for bucket in snapshot.buckets]
        place = order.index(self.key) if self.key in order else -step
        self.deck.bucket = order[(place + step) % len(order)]
        self._renew()

    @guarded
    def action_explain_bucket(self) -> None:
        """On a control mark its line of the policy's history, else how the figures come about."""
        from console.app.pages import ExplainPage

        control = self._control_here()
        if control is not None:
            self.deck.show_change(control.ts)
            return
        bucket, snapshot = self.selected, self.deck.picture.snapshot
        if bucket is not None and snapshot is not None:
            self.app.push_screen(ExplainPage(bucket, snapshot))

    def _control_here(self) -> Mark | None:
        facts = self._facts(self.deck.picture)
        if facts is None or facts.index is None or self._at is None:
            return None
        return next((mark for mark in reversed(facts.marks_at(facts.index)) if mark.kind == "control"), None)

    @guarded
    def action_this_lane(self) -> None:
        key = self.key
        if key is not None and key.workload is not None:
            self.deck.desk.lane(key.workload)

    def action_back_to_live(self) -> None:
        """The moment goes first, then the screen."""
        if self._at is not None:
            self._set_at(None)
        else:
            self.deck.action_live()


def _wrapped(text: str, width: int) -> list[Line]:
    return [((f"  {part}", "dim"),) for part in wrap(clean(text), max(8, width - 4))]
