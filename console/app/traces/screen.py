"""Screen 6: the recording that goes on, the traces that are there, and what is in the marked one."""

from __future__ import annotations

from typing import ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType

from console.app import actions
from console.app.actions import Context
from console.app.drawing.line_view import LineView
from console.app.drawing.panel import Panel
from console.app.drawing.pick_list import PickList
from console.app.drawing.spans import Line, clean
from console.app.frame.deck_screen import DeckScreen
from console.app.frame.guard import guarded
from console.app.picture import Picture
from console.app.traces.desk import TracesDesk
from console.app.traces.lines import counted, nothing_lines, trace_detail, trace_header, trace_row
from console.app.traces.words import recording_lines
from console.feed.client import FeedError
from console.feed.traces import TraceLook, Traces, TracesParams

LOOK_INTERVAL: Final = 1.0
LOOKS_BETWEEN: Final = 5
"""Files come and go seldom: what is not being looked into is asked for again every so many looks."""

NONE_YET: Final = "No trace yet."
HOW_TO_RECORD: Final = "r records what happens from now on; it comes here when it has ended."
HOW_TO_OPEN: Final = (
    "`specdeck replay FILE` opens a trace that lies elsewhere, `specdeck export OUT` writes all there is."
)
HELD: Final = "The picture is held, and nothing is asked meanwhile: p lets it go on."
OLDER: Final = (
    "This station is older than the console and does not tell which traces there are. `specdeck trace info FILE` and "
    "`specdeck replay FILE` look into one."
)


class TracesScreen(DeckScreen):
    CONTEXT: ClassVar[Context] = "traces"
    BINDINGS: ClassVar[list[BindingType]] = actions.bindings("traces")

    def __init__(self) -> None:
        super().__init__()
        self._found: Traces | None = None
        self._error: FeedError | None = None
        self._asking = False
        self._asked: object = None
        self._looks = 0
        self._go_to: str | None = None

    def body(self) -> ComposeResult:
        with Panel(id="recording-panel"):
            yield LineView(id="recording")
        with Panel(id="traces-panel"):
            yield LineView(id="trace-header")
            yield PickList(id="trace-list")
        yield LineView(id="trace-detail")

    @property
    def picks(self) -> PickList:
        return self.query_one("#trace-list", PickList)

    @property
    def selected(self) -> TraceLook | None:
        return next((look for look in self._traces if look.path == self.picks.cursor), None)

    @property
    def answered(self) -> bool:
        """The station has told what there is, or that it can't."""
        return self._found is not None or self._error is not None

    def copied(self) -> str | None:
        """The marked trace's path."""
        return None if self.selected is None else self.selected.path

    def on_mount(self) -> None:
        returned = self.deck.returned
        self._go_to = returned.path if returned is not None else None
        self.picks.focus()
        self.set_interval(LOOK_INTERVAL, self._look)
        self._want()

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        self._want()

    def draw(self, picture: Picture) -> None:
        self._want()
        self._draw_recording(picture)
        width = self.picks.size.width - 1
        rows = [(look.path, trace_row(look, picture.now, width)) for look in self._traces]
        nothing = self._nothing(picture)
        self.picks.show(rows, lambda width: nothing_lines(nothing, width))
        head = trace_header(width) if rows else ()
        self._view("trace-header").show(lambda width, height: [head])
        title = f"traces · {counted(self._found)}" if self._found is not None else "traces"
        below = self._error.message if self._error is not None and rows else ""
        if self._found is not None and self._found.looking and not below:
            below = "looking into them…"
        self.query_one("#traces-panel", Panel).caption(title, below)
        self._draw_detail()

    @property
    def _traces(self) -> list[TraceLook]:
        return self._found.traces if self._found is not None else []

    def _draw_recording(self, picture: Picture) -> None:
        view = picture.snapshot.recording if picture.snapshot is not None else None
        panel = self.query_one("#recording-panel", Panel)
        panel.display = view is not None
        if view is None:
            return
        panel.set_class(bool(view.note) and view.state != "written", "-failed")
        panel.caption("recording", "b ends it and writes the file" if view.state == "on" else "")
        now = picture.now
        self._view("recording").show(lambda width, height: recording_lines(view, now, width))

    def _draw_detail(self) -> None:
        look = self.selected

        def detail(width: int, height: int) -> list[Line]:
            if look is None:
                return []
            return [((" ", "text"), *line) for line in trace_detail(look, width - 2)[:height]]

        self._view("trace-detail").show(detail)

    def _nothing(self, picture: Picture) -> list[str]:
        if self._error is not None:
            older = self._error.code == "unknown_method"
            return [OLDER if older else f"The traces can't be listed: {clean(self._error.message)}"]
        if self._found is None and picture.paused_since is not None:
            return [HELD]
        if self._found is None:
            return [
                "Looking for traces…" if picture.link.state == "connected" else "The station tells which there are."
            ]
        able = not picture.read_only and not picture.replaying
        places = ", ".join(clean(place.path) for place in self._found.places)
        return [f"{NONE_YET} {HOW_TO_RECORD if able else ''}".strip(), f"Looked into {places}.", HOW_TO_OPEN]

    # The list

    def _look(self) -> None:
        self._looks += 1
        self._want()

    def _want(self) -> None:
        """Ask for the list where it may be another: at once after a recording, often while files are looked into."""
        picture = self.deck.picture
        snapshot = picture.snapshot
        if not self.is_current or self._asking or picture.paused_since is not None:
            return
        if snapshot is None or picture.link.state != "connected":
            return
        view, marked = snapshot.recording, self.selected
        whole = marked.path if marked is not None and marked.state == "begun" else None
        about = (snapshot.station, None if view is None else (view.id, view.state))
        waits = self._looks if self._found is not None and (self._found.looking or whole is not None) else None
        wanted = (about, whole, waits, self._looks // LOOKS_BETWEEN)
        if wanted != self._asked:
            self._asked, self._asking = wanted, True
            self._fetch(whole)

    @work(exclusive=True, group="traces", exit_on_error=False)
    async def _fetch(self, whole: str | None) -> None:
        try:
            params = TracesParams(here=self.deck.here, whole=whole)
            self._found = await self.deck.feed.request("traces", params, Traces, 8.0)
        except FeedError as error:
            self._error = error
        else:
            self._error = None
        finally:
            self._asking = False
        self.draw(self.deck.picture)
        if self._go_to is not None and self.picks.select(self._go_to):
            self._go_to = None
            self._draw_detail()

    # Cursor

    @on(PickList.Moved)
    def _moved(self) -> None:
        self._draw_detail()

    @on(PickList.Resized)
    def _resized(self) -> None:
        self.show(self.deck.picture)

    # Actions

    @guarded
    def action_open_trace(self) -> None:
        if self.selected is not None:
            TracesDesk(self.deck).open(self.selected)
        else:
            self.deck.tell("No trace is marked.")

    @guarded
    def action_record(self) -> None:
        if self._found is not None:
            TracesDesk(self.deck).record(self._found)
        else:
            self.deck.tell(self._why_none_yet())

    def _why_none_yet(self) -> str:
        if self._error is not None and self._error.code == "unknown_method":
            return OLDER
        if self.deck.picture.paused_since is not None:
            return HELD
        return "The station has not said yet where its traces lie; again in a moment."

    @guarded
    def action_end_recording(self) -> None:
        TracesDesk(self.deck).end(self._found)

    def action_next_place(self) -> None:
        """The first trace of the place after that of the marked one."""
        marked = self.selected
        places = list(dict.fromkeys(look.place for look in self._traces))
        if marked is None or len(places) < 2:
            return
        after = places[(places.index(marked.place) + 1) % len(places)]
        self.picks.select(next(look.path for look in self._traces if look.place == after))

    def action_traces_back(self) -> None:
        self.deck.action_live()
