"""Screen 1: the bucket table, and what the selected bucket did in the last quarter of an hour."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.widgets import Input

from console.app import actions
from console.app.actions import Context
from console.app.drawing import numbers
from console.app.drawing.line_view import LineView
from console.app.drawing.panel import Panel
from console.app.frame.deck_screen import DeckScreen
from console.app.frame.guard import guarded
from console.app.live import columns
from console.app.live.charts import alpha_chart, alpha_title, load_chart, spark_line
from console.app.live.columns import RowFacts, fit_columns, make_columns
from console.app.live.fixed_window import TableWindow
from console.app.live.row_order import SORT_NAMES, RowOrder
from console.app.live.startup import before_buckets
from console.app.live.table import BucketHeader, BucketTable
from console.app.live.versions import telling
from console.app.live.window_desk import ASK_SECONDS, WindowDesk
from console.app.picture import Picture
from console.feed.client import FeedError
from console.feed.messages import BucketView, EngineView, Series, Snapshot
from console.feed.protocol import BalanceParams, SeriesParams
from store.figures import BucketKey

if TYPE_CHECKING:
    from console.app.balance.reader import BalanceReader
    from console.app.explaining.section import Section

CHART_SECONDS: Final = 900.0
SERIES_INTERVAL: Final = 1.0
CHART_POINTS: Final = 120
BALANCE_SECONDS: Final = 300.0
"""Where the bucket's window is not known."""


class LiveScreen(DeckScreen):
    CONTEXT: ClassVar[Context] = "live"
    BINDINGS: ClassVar[list[BindingType]] = actions.bindings("live")

    def __init__(self) -> None:
        super().__init__()
        self._order = RowOrder()
        self._rows: list[RowFacts] = []
        self._series: Series | None = None
        self._series_key: BucketKey | None = None
        self._series_ts = 0.0
        self._asking = 0
        self._windows = WindowDesk(self)
        self._shown: Snapshot | None = None
        """The snapshot, with the figures of a window that was fixed."""

    def body(self) -> ComposeResult:
        yield LineView(id="nothing-yet")
        with Panel(id="buckets"):
            yield BucketHeader(id="bucket-header")
            yield BucketTable(id="bucket-table")
            yield Input(id="filter", placeholder="part of a workload, context, temperature or state", compact=True)
        with Horizontal(id="charts"):
            with Panel(id="alpha-panel"):
                yield LineView(id="alpha-chart")
            with Panel(id="load-panel"):
                yield LineView(id="load-chart")
        yield LineView(id="balance")
        yield LineView(id="spark")

    @property
    def table(self) -> BucketTable:
        return self.query_one(BucketTable)

    @property
    def selected(self) -> BucketView | None:
        """With the figures that the table shows."""
        cursor = self.table.cursor
        buckets = self._shown.buckets if self._shown is not None else []
        return next((bucket for bucket in buckets if bucket.key == cursor), None)

    @property
    def window(self) -> str | None:
        return self.table_window.label or None

    @property
    def table_window(self) -> TableWindow:
        return self._windows.window

    def explained(self) -> list[Section]:
        from console.app.explaining.bucket import bucket_sections

        facts = next((facts for facts in self._rows if facts.bucket.key == self.table.cursor), None)
        if facts is None or self._shown is None:
            return []
        return bucket_sections(replace(facts, bucket=self.table_window.named(facts.bucket)), self._shown)

    @property
    def has_series(self) -> bool:
        """The charts show the selected bucket."""
        return self._series is not None and self._series_key == self.table.cursor

    def copied(self) -> str | None:
        """The selected row, a line for each figure."""
        from console.app.live.as_text import named_figures

        cursor = self.table.cursor
        facts = next((facts for facts in self._rows if facts.bucket.key == cursor), None)
        return None if facts is None else "\n".join(named_figures(facts))

    def select(self, key: BucketKey) -> bool:
        """Put the cursor on a bucket, out of a filter that hides it; False where it has no row."""
        if self._order.needle and self.deck.picture.bucket(key) is not None:
            self.action_back()
        return self.table.select(key)

    def on_mount(self) -> None:
        self.set_interval(ASK_SECONDS, self._windows.look)
        self.query_one("#filter").display = False
        self.table.focus()
        self.set_interval(SERIES_INTERVAL, self._want_series)
        self.set_interval(SERIES_INTERVAL, self._want_balance)

    def draw(self, picture: Picture) -> None:
        self._shown = snapshot = self.table_window.through(picture)
        empty = snapshot is None or not snapshot.buckets
        self.set_class(empty, "-empty")
        if empty:
            self._view("nothing-yet").show(lambda width, height: before_buckets(picture, width, height))
        if snapshot is None or empty:
            return
        self._draw_table(picture, snapshot)
        self._draw_charts(picture)
        if not self.balance.answered:
            self._want_balance()
        moved = abs(snapshot.ts - self._series_ts) > CHART_SECONDS / CHART_POINTS
        if picture.replay is not None and moved and not self._asking:
            self._want_series()  # a seek, or a quick replay: the charts go with the figures
        if picture.replay is not None and not picture.replay.playing:
            self._windows.look()

    def _draw_table(self, picture: Picture, snapshot: Snapshot) -> None:
        alerts = {alert.bucket: alert for alert in reversed(picture.firing) if alert.bucket is not None}
        held = {view.name: view for view in snapshot.workloads}
        versions = telling(bucket.key.model_version or "" for bucket in snapshot.buckets)
        self._rows = [
            RowFacts(
                bucket, snapshot.ts, alerts.get(bucket.key), held.get(bucket.key.workload or ""),
                versions[bucket.key.model_version or ""], bucket.key == picture.compared,
            )
            for bucket in snapshot.buckets
        ]  # fmt: skip
        shown = self._order.arrange(self._rows)
        self.deck.bucket_order = [facts.bucket.key for facts in shown]
        max_k = max([engine.max_k or 0 for engine in snapshot.engines] or [0]) or 4
        layout = fit_columns(make_columns(max_k, len(versions) > 1), self.table.size.width)
        self.query_one(BucketHeader).show(layout, self._order.sorted_by)
        self.table.show(shown, layout)
        self._title(snapshot, len(shown))

    def _title(self, snapshot: Snapshot, shown: int) -> None:
        windows = {bucket.window_label for bucket in snapshot.buckets}
        chosen = windows.pop() if len(windows) == 1 else "by sample size"
        count = f"{shown} of {len(snapshot.buckets)}" if self._order.needle else f"{shown}"
        words = self.table_window.words(self.deck.picture, chosen)
        noun = "bucket" if len(snapshot.buckets) == 1 else "buckets"
        title = f"{count} {noun} · {words} · order: {SORT_NAMES[self._order.sorted_by]}"
        self.query_one("#buckets", Panel).caption(title, self._pooled(snapshot))

    def _pooled(self, snapshot: Snapshot) -> str:
        parts = [f"filter: {self._order.needle} · esc drops it"] if self._order.needle else []
        if snapshot.total is not None:
            parts.append(f"pooled α {numbers.fraction(snapshot.total.pooled_acceptance)}")
            parts.append(f"waste {numbers.fraction(snapshot.total.waste_ratio)}")
        if self.table_window.label:
            parts.append("alerts are judged over windows of their own")
        return " · ".join(parts)

    def _draw_charts(self, picture: Picture) -> None:
        bucket = self.selected
        series = self._series if self.has_series else None
        self.query_one("#alpha-panel", Panel).caption(alpha_title(bucket, CHART_SECONDS))
        self.query_one("#load-panel", Panel).caption("K executed and load")
        engine = picture.engines[0] if picture.engines else None
        self._view("alpha-chart").show(lambda width, height: alpha_chart(series, width, height), (series,))
        self._view("load-chart").show(
            lambda width, height: load_chart(series, width, height, engine), (series, _policy_of(engine))
        )
        named = None if bucket is None else self.table_window.named(bucket)
        self._view("spark").show(lambda width, height: [spark_line(named, width)])
        self._draw_balance()

    # Series of the selected bucket

    def _want_series(self) -> None:
        picture = self.deck.picture
        idle = picture.link.state != "connected" or picture.paused_since is not None
        hidden = not self.query_one("#charts").display or not self.is_current
        if idle or hidden or self.table.cursor is None or picture.snapshot is None:
            return
        if picture.replay is not None and self.has_series and picture.snapshot.ts == self._series_ts:
            return  # a replay that stands still
        self._series_ts = picture.snapshot.ts
        self._fetch_series(self.table.cursor)

    @work(exclusive=True, group="series", exit_on_error=False)
    async def _fetch_series(self, key: BucketKey) -> None:
        params = SeriesParams(key=columns.key_parts(key), seconds=CHART_SECONDS, points=CHART_POINTS)
        self._asking += 1
        try:
            series = await self.deck.feed.request("series", params, Series, 4.0)
        except FeedError:
            return  # the status line already says when the station is away; the last curve stays
        finally:
            self._asking -= 1
        self._series, self._series_key = series, key
        self._draw_charts(self.deck.picture)

    # What speculation cost and saved the selected bucket's workload

    @cached_property
    def balance(self) -> BalanceReader:
        from console.app.balance.reader import BalanceReader  # not before the first paint

        return BalanceReader()

    def _want_balance(self) -> None:
        if not self.query_one("#balance").display or not self.is_current or self.selected is None:
            return
        params = self.balance.due(self.deck.picture, self._window())
        if params is not None:
            self._fetch_balance(params)

    @work(group="balance", exit_on_error=False)
    async def _fetch_balance(self, params: BalanceParams) -> None:
        await self.balance.read(self.deck.feed, params)
        self._draw_balance()

    def _draw_balance(self) -> None:
        from console.app.balance.line import balance_line

        bucket, answer = self.selected, self.balance.answer
        workload = bucket.key.workload if bucket is not None else None
        self._view("balance").show(lambda width, height: [balance_line(answer, workload, width)])

    def _window(self) -> float:
        """Seconds of the window that the selected bucket is shown for."""
        window = self.selected.figures.window if self.selected is not None else None
        return max(1.0, window.end - window.start) if window is not None else BALANCE_SECONDS

    def come_to(self, key: BucketKey) -> None:
        """Come from another screen to its bucket. At once: a message would come after keys that were typed ahead."""
        self.show(self.deck.picture)
        self.select(key)

    @on(BucketTable.Selected)
    def _selected(self, event: BucketTable.Selected) -> None:
        self.deck.bucket = event.key
        self._draw_charts(self.deck.picture)
        self._want_series()

    @on(BucketTable.Resized)
    def _resized(self, event: BucketTable.Resized) -> None:
        self.show(self.deck.picture)

    @on(BucketHeader.SortBy)
    def _sort_by(self, event: BucketHeader.SortBy) -> None:
        self._order.sort(event.column, self._rows)
        self.show(self.deck.picture)

    # Filter

    @on(Input.Changed, "#filter")
    def _filter_changed(self, event: Input.Changed) -> None:
        self._order.needle = event.value
        self.show(self.deck.picture)

    @on(Input.Submitted, "#filter")
    def _filter_done(self) -> None:
        self._hide_filter()

    def _hide_filter(self) -> None:
        self.query_one("#filter").display = False
        self.table.focus()

    # Actions

    @guarded
    def action_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.display = True
        field.focus()

    @guarded
    def action_sort(self) -> None:
        self._order.sort(self._order.next_sort(), self._rows)
        self.show(self.deck.picture)

    @guarded
    def action_sort_again(self) -> None:
        self._order.sort(self._order.sorted_by or self._order.next_sort(), self._rows)
        self.show(self.deck.picture)

    @guarded
    def action_balance(self) -> None:
        from console.app.balance.page import BalancePage

        self.app.push_screen(BalancePage(self.balance, self._window))

    @guarded
    def action_bucket_lane(self) -> None:
        bucket = self.selected
        if bucket is not None and bucket.key.workload is not None:
            self.deck.desk.lane(bucket.key.workload)

    @guarded
    def action_shorter_window(self) -> None:
        self._windows.change(-1)

    @guarded
    def action_longer_window(self) -> None:
        self._windows.change(1)

    @guarded
    def action_compare(self) -> None:
        bucket = self.selected
        if bucket is not None and self._shown is not None:
            from console.app.compare.desk import CompareDesk

            CompareDesk(self.deck).press(bucket, self._shown.buckets, self._shown.ts)

    @guarded
    def action_demo_traffic(self) -> None:
        self.deck.demo_desk.toggle()

    def action_back(self) -> None:
        if self.deck.picture.compared is not None:
            self.deck.show_compared(None)
            return
        self._order.reset()
        with self.prevent(Input.Changed):
            self.query_one("#filter", Input).value = ""
        self._hide_filter()
        self.show(self.deck.picture)

    @guarded
    def action_explain(self) -> None:
        self.deck.explain("Explained", self.explained())


def _policy_of(engine: EngineView | None) -> tuple[object, ...] | None:
    """What the load chart tells of an engine."""
    if engine is None:
        return None
    executed = engine.executed_k, engine.executed_limit, engine.unexplained
    return engine.max_k, engine.configured, engine.resolved, executed
