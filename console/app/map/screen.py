"""Screen 5: the operating map, the cell under the cursor explained, and the rehearsal that goes on."""

from __future__ import annotations

from typing import ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal

from console.app import actions
from console.app.actions import Context
from console.app.drawing.line_view import LineView
from console.app.drawing.panel import Panel
from console.app.frame.deck_screen import DeckScreen
from console.app.frame.guard import guarded
from console.app.map import grid as map_grid
from console.app.map import words
from console.app.map.cell import cell_lines, cell_title
from console.app.map.chart import gain_chart, gain_title
from console.app.map.facts import map_facts, map_title
from console.app.map.grid_view import MapGrid
from console.app.map.nothing import nothing_lines
from console.app.picture import Picture
from console.app.rehearsal.words import goes_on, rehearsal_lines
from console.feed.client import FeedError
from console.feed.messages import RehearsalView, Snapshot
from console.feed.protocol import MapAnswer
from store.operating_map.records import OperatingMap

LOOK_INTERVAL: Final = 1.0
ASK_AGAIN_SECONDS: Final = 10.0
"""After an answer that failed."""

Asked = tuple[str, tuple[str, float] | None]
"""A station, and the map that it said it holds."""


class MapScreen(DeckScreen):
    CONTEXT: ClassVar[Context] = "map"
    BINDINGS: ClassVar[list[BindingType]] = actions.bindings("map")

    def __init__(self) -> None:
        super().__init__()
        self._map: OperatingMap | None = None
        self._error: FeedError | None = None
        self._asked: Asked | None = None
        self._asked_at = 0.0
        self._asking = False

    def body(self) -> ComposeResult:
        with Panel(id="rehearsal-panel"):
            yield LineView(id="rehearsal")
        yield LineView(id="map-nothing")
        with Panel(id="map-panel"):
            yield LineView(id="map-header")
            yield MapGrid(id="map-grid")
        yield LineView(id="map-facts")
        with Horizontal(id="map-lower"):
            with Panel(id="cell-panel"):
                yield LineView(id="cell")
            with Panel(id="gain-panel"):
                yield LineView(id="gain-chart")

    @property
    def grid(self) -> MapGrid:
        return self.query_one(MapGrid)

    @property
    def answered(self) -> bool:
        """The station has told what it holds, or that it can't."""
        return not self._asking and self._asked is not None

    def on_mount(self) -> None:
        self.grid.focus()
        self.set_interval(LOOK_INTERVAL, self._want_map)
        self._want_map()

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        self._want_map()

    def draw(self, picture: Picture) -> None:
        snapshot = picture.snapshot
        self._want_map()
        self._draw_rehearsal(snapshot.rehearsal if snapshot is not None else None)
        map_ = self._map if snapshot is not None and snapshot.map is not None else None
        self.set_class(map_ is None, "-empty")
        if map_ is None or snapshot is None:
            self.grid.show(None, False, None)
            self._view("map-nothing").show(lambda width, height: nothing_lines(picture, self._error, width))
            return
        self._draw_grid(map_, snapshot, picture)
        crowded = snapshot.rehearsal is not None or (snapshot.map is not None and bool(snapshot.map.stale))
        terse = crowded and self.has_class("-short")
        self._view("map-facts").show(lambda width, height: map_facts(map_, picture, width, terse))
        self._draw_cell(map_)

    def _draw_rehearsal(self, view: RehearsalView | None) -> None:
        panel = self.query_one("#rehearsal-panel", Panel)
        panel.display = view is not None
        if view is not None:
            named = f"rehearsal {view.id} · plan {view.plan}" if view.id else f"rehearsal of plan {view.plan}"
            panel.caption(named, "b breaks it off" if goes_on(view) else "")
            self._view("rehearsal").show(lambda width, height: rehearsal_lines(view, width))

    def _draw_grid(self, map_: OperatingMap, snapshot: Snapshot, picture: Picture) -> None:
        stale = bool(snapshot.map is not None and snapshot.map.stale)
        now = words.column_of(map_, snapshot.running)
        self.grid.show(map_, stale, now)
        found = self.grid.fitted()
        if found is not None:
            head = map_grid.header(map_, found, self.grid.column, now)
            self._view("map-header").show(lambda width, height: [head])
        panel = self.query_one("#map-panel", Panel)
        title = map_title(map_, picture.moment, self.size.width)
        running = "" if snapshot.running is None else f"▼ {snapshot.running} running now"
        panel.set_class(stale, "-old")
        panel.caption(f"▲ STALE · {title}" if stale else title, running)
        height = 2 + len(map_.workloads) + (1 if self.has_class("-short") else 2)  # with the borders
        if panel.styles.height is None or panel.styles.height.value != height:
            panel.styles.height = height

    def _draw_cell(self, map_: OperatingMap) -> None:
        cell = self.grid.selected
        if cell is None:
            return
        hint = " · enter explains" if self.has_class("-short") else ""
        self.query_one("#cell-panel", Panel).caption(f"{cell_title(map_, cell)}{hint}", "enter explains")
        self._view("cell").show(lambda width, height: cell_lines(map_, cell, width, height))
        self.query_one("#gain-panel", Panel).caption(gain_title(cell.workload))
        self._view("gain-chart").show(lambda width, height: gain_chart(map_, cell.workload, width, height))

    # The map

    def _want_map(self) -> None:
        """Ask for the map when the station holds another one than was read, and once whether it can hold one."""
        picture = self.deck.picture
        snapshot = picture.snapshot
        if snapshot is None or picture.link.state != "connected" or not self.is_current or self._asking:
            return
        if picture.paused_since is not None or (picture.replaying and snapshot.map is None):
            return
        wanted = snapshot.station, None if snapshot.map is None else (snapshot.map.id, snapshot.map.ts)
        missing = self._map is None and snapshot.map is not None
        failed = missing if self._error is None else self._error.code != "unknown_method"
        if wanted != self._asked or (failed and snapshot.ts - self._asked_at >= ASK_AGAIN_SECONDS):
            self._asked, self._asked_at, self._asking = wanted, snapshot.ts, True
            self._fetch_map()

    @work(exclusive=True, group="map", exit_on_error=False)
    async def _fetch_map(self) -> None:
        try:
            answer = await self.deck.feed.request("map_get", None, MapAnswer, 4.0)
        except FeedError as error:
            self._error = error
        else:
            self._map, self._error = answer.map, None
        finally:
            self._asking = False
        self.show(self.deck.picture)

    # Cursor

    @on(MapGrid.Moved)
    @on(MapGrid.Resized)
    def _moved(self) -> None:
        self.show(self.deck.picture)

    # Actions

    @guarded
    def action_explain_cell(self) -> None:
        from console.app.frame.pages import Page
        from console.app.map.explanation import explain_cell

        map_, cell, snapshot = self._map, self.grid.selected, self.deck.picture.snapshot
        if map_ is None:
            self.deck.tell("The operating map has not been read yet.", severity="warning")
        elif cell is not None and snapshot is not None:
            stale = snapshot.map.stale if snapshot.map is not None else []
            self.app.push_screen(Page("Explained", lambda width: explain_cell(map_, cell, stale, width)))

    @guarded
    def action_rehearse(self) -> None:
        self.deck.rehearsal_desk.start()

    @guarded
    def action_stop_rehearsal(self) -> None:
        self.deck.rehearsal_desk.stop()

    @guarded
    def action_deploy_map(self) -> None:
        self.deck.desk.deploy_map()
