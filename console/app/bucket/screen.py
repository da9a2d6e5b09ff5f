"""Screen 2: one bucket through time, with what happened in the meantime, and what each draft position and K bring."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container

from console.app import actions
from console.app.actions import Context
from console.app.bucket.cursor import next_mark, next_point, shortest_span
from console.app.bucket.facts import SPANS, BucketFacts, Mark
from console.app.bucket.reader import BucketReader
from console.app.bucket.readout import moment_text, readout_text
from console.app.bucket.side import side
from console.app.bucket.timeline import timeline
from console.app.drawing import numbers
from console.app.drawing.line_view import LineView
from console.app.drawing.panel import Panel
from console.app.drawing.spans import paragraph
from console.app.frame.awaited import awaited
from console.app.frame.deck_screen import DeckScreen
from console.app.frame.guard import guarded
from console.app.live import columns
from console.app.picture import Picture
from console.feed.messages import BucketView
from store.figures import BucketKey

if TYPE_CHECKING:
    from console.app.explaining.section import Section

LOOK_SECONDS: Final = 1.0

NOTHING: Final = "No bucket yet: one comes with the first answer. 1 says how to send traffic."
NOT_SERVING: Final = "No bucket yet, and no engine serves: 1 says how far it is, or why not."
NOTHING_HERE: Final = "No bucket at this moment of the record. space plays on, g goes to a time."


class BucketScreen(DeckScreen):
    CONTEXT: ClassVar[Context] = "bucket"
    BINDINGS: ClassVar[list[BindingType]] = actions.bindings("bucket")

    def __init__(self) -> None:
        super().__init__()
        self._span = 0
        self._at: float | None = None
        self._reader = BucketReader()
        self._fetching: tuple[BucketKey, int] | None = None
        """Bucket and window that the station is being asked for."""

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

    def explained(self) -> list[Section]:
        from console.app.explaining.bucket_screen import bucket_screen_sections

        picture = self.deck.picture
        facts = self._facts(picture)
        return [] if facts is None or picture.snapshot is None else bucket_screen_sections(facts, picture.snapshot)

    @property
    def has_answers(self) -> bool:
        """The station has answered for what is shown, or refused to."""
        return self._reader.has_answers

    @property
    def looking_at(self) -> tuple[BucketKey | None, str, float | None]:
        """Bucket, window and moment."""
        return self.key, SPANS[self._span].name, self._at

    @property
    def window(self) -> str | None:
        return SPANS[self._span].name

    def copied(self) -> str | None:
        """The moment that is read out, a line for each series."""
        facts = self._facts(self.deck.picture)
        return None if facts is None else "\n".join(readout_text(facts))

    def on_mount(self) -> None:
        self.set_interval(LOOK_SECONDS, self._look)
        self._look()

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        self._look()

    def look_at(self, ts: float | None) -> bool:
        """Put the cursor on a moment, in the shortest window that holds it; False where none does."""
        self._at = ts
        if ts is not None:
            place = shortest_span(ts, self.deck.picture.moment)
            self._span, self._at = (len(SPANS) - 1, None) if place is None else (place, ts)
        self._renew()
        return ts is None or self._at is not None

    # Drawing

    def draw(self, picture: Picture) -> None:
        facts = self._facts(picture)
        self.set_class(facts is None, "-empty")
        if facts is None:
            self._view("no-bucket").show(lambda width, height: paragraph(_nothing(picture), width, margin="  "))
            return
        self._view("timeline").show(lambda width, height: timeline(facts, width, height))
        self._view("side").show(lambda width, height: side(facts, width, height))
        title = " · ".join([columns.bucket_name(facts.key), f"last {facts.span.name}", moment_text(facts)]).rstrip(" ·")
        self.query_one("#timeline-panel", Panel).caption(title, facts.trouble if facts.known else "")
        self.query_one("#side-panel", Panel).caption(self._sample(facts))

    def _sample(self, facts: BucketFacts) -> str:
        """What the figures by position are made from."""
        figures = facts.bucket.figures if facts.bucket is not None else None
        if facts.bucket is None or figures is None or figures.sequences is None:
            return ""
        n = numbers.many(figures.sequences, "sequence")
        return f"n {n} in {facts.bucket.window_label}{' · few' if figures.few else ''}"

    def _facts(self, picture: Picture) -> BucketFacts | None:
        key = self.key
        return None if key is None else self._reader.facts(picture, key, self._span, self._at)

    # What the station is asked

    def _look(self) -> None:
        """Read anew what is due."""
        picture, key = self.deck.picture, self.key
        snapshot = picture.snapshot
        if snapshot is None or key is None or picture.link.state != "connected" or not self.is_current:
            return
        if picture.paused_since is not None and self._reader.knows(key, self._span):
            return
        if self._fetching == (key, self._span):
            return  # let it come to its end: a question that is dropped costs the station as much as one that is heard
        in_detail = self._reader.due(key, self._span, snapshot.ts, picture.replaying)
        if in_detail is not None:
            self._fetching = (key, self._span)
            self._fetch(key, self._span, in_detail)

    @work(exclusive=True, group="bucket", exit_on_error=False)
    async def _fetch(self, key: BucketKey, place: int, in_detail: bool) -> None:
        try:
            await self._reader.read(self.deck.feed, key, place, in_detail)
        finally:
            if self._fetching == (key, place):
                self._fetching = None
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
        if facts is None or not facts.known:
            self.deck.tell("There is no series to go along yet.", severity="warning")
            return
        self._set_at(next_point(facts, step))

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
        facts = self._facts(self.deck.picture)
        moment = None if facts is None else next_mark(facts, step)
        if moment is None:
            self.deck.tell("Nothing happened here in this window.")
        else:
            self._set_at(moment)

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
        control = self._control_here()
        if control is not None:
            self.deck.show_change(control.ts)
        else:
            self.deck.explain("Explained", self.explained())

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


def _nothing(picture: Picture) -> str:
    if picture.snapshot is None:
        return awaited("A bucket shows", picture)
    if picture.replaying:
        return NOTHING_HERE
    return NOTHING if picture.serving else NOT_SERVING
