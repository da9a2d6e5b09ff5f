"""Screen 3: what is asked of the engines and what they execute, the workloads, and the history with its way back."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType

from console.app import actions
from console.app.actions import Context
from console.app.drawing.line_view import LineView
from console.app.drawing.panel import Panel
from console.app.drawing.pick_list import PickList
from console.app.drawing.spans import paragraph, text_of
from console.app.frame.awaited import awaited
from console.app.frame.deck_screen import DeckScreen
from console.app.frame.guard import guarded
from console.app.frame.inquiry import Inquiry
from console.app.picture import Picture
from console.app.policy.concerned import bucket_of
from console.app.policy.facts import policy_lines
from console.app.policy.history_rows import NO_HISTORY, NO_HISTORY_HERE, entry_key, history_detail, history_row
from console.app.policy.workload_rows import no_workload, workload_detail, workload_header, workload_row
from console.feed.client import FeedError
from console.feed.messages import WorkloadView
from console.feed.protocol import History, HistoryEntry, HistoryParams

if TYPE_CHECKING:
    from console.app.explaining.section import Section

LOOK_INTERVAL: Final = 1.0
HISTORY_INTERVAL: Final = 10.0
"""Seconds: what can be undone changes with time too. Another version of the policy is looked up at once."""

COPIED_WIDTH: Final = 120


class PolicyScreen(DeckScreen):
    CONTEXT: ClassVar[Context] = "policy"
    BINDINGS: ClassVar[list[BindingType]] = actions.bindings("policy")

    def __init__(self) -> None:
        super().__init__()
        self._entries: list[HistoryEntry] = []
        self._error = ""
        self._inquiry = Inquiry(HISTORY_INTERVAL)
        self._wanted: float | None = None
        """Moment of the change that the cursor should go to, once the history is there."""
        self.has_history = False
        """The station has answered with its history, or refused to."""

    def body(self) -> ComposeResult:
        yield LineView(id="policy-facts")
        with Panel(id="workloads-panel"):
            yield LineView(id="workload-header")
            yield PickList(id="workloads")
        with Panel(id="history-panel"):
            yield PickList(id="history", forget=True)
        yield LineView(id="policy-detail")

    @property
    def workloads(self) -> PickList:
        return self.query_one("#workloads", PickList)

    @property
    def history(self) -> PickList:
        return self.query_one("#history", PickList)

    @property
    def selected(self) -> WorkloadView | None:
        """The workload that the cursor is on."""
        snapshot = self.deck.picture.snapshot
        views = snapshot.workloads if snapshot is not None else []
        return next((view for view in views if view.name == self.workloads.cursor), None)

    @property
    def marked_change(self) -> HistoryEntry | None:
        return self._marked if self.history.has_focus else None

    def on_mount(self) -> None:
        self.workloads.focus()
        self.set_interval(LOOK_INTERVAL, self._want_history)
        self._want_history()

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        self._want_history()

    def draw(self, picture: Picture) -> None:
        roomy = self.size.height >= 30
        self._view("policy-facts").show(lambda width, height: policy_lines(picture, width, roomy))
        self._draw_workloads(picture)
        self._draw_history()
        self._draw_detail()

    def _draw_workloads(self, picture: Picture) -> None:
        snapshot = picture.snapshot
        views = snapshot.workloads if snapshot is not None else []
        width = self.workloads.size.width
        self._view("workload-header").show(lambda width, height: [workload_header(width)] if views else [])
        rows = [(view.name, workload_row(view, snapshot, width)) for view in views] if snapshot is not None else []
        nothing = awaited("Workloads show", picture) if snapshot is None else no_workload(snapshot)
        self.workloads.show(rows, lambda width: paragraph(nothing, width, margin="  "))
        panel = self.query_one("#workloads-panel", Panel)
        panel.caption(f"workloads · {len(views)}" if views else "workloads")
        panel.set_class(not views, "-empty")
        lines = len(views) + 1 if views else len(paragraph(nothing, width, margin="  "))
        height = lines + (1 if self.has_class("-short") else 2)  # with the borders that the style sheet leaves
        if panel.styles.height is None or panel.styles.height.value != height:
            panel.styles.height = height

    def _draw_history(self) -> None:
        rows = [(entry_key(entry), history_row(entry)) for entry in self._entries]
        nothing = self._error or (NO_HISTORY_HERE if self.deck.picture.replaying else NO_HISTORY)
        if not self.has_history:
            nothing = awaited("What was changed shows", self.deck.picture)
        self.history.show(rows, lambda width: paragraph(nothing, width, margin="  "))
        self.query_one("#history-panel", Panel).caption("history · newest first", self._error if rows else "")

    def copied(self) -> str | None:
        """The marked line of the history, else the marked workload."""
        entry = self._marked
        if self.history.has_focus and entry is not None:
            return entry.text or entry.action
        workload, snapshot = self.selected, self.deck.picture.snapshot
        if workload is None or snapshot is None:
            return None
        return "\n".join([text_of(workload_row(workload, snapshot, COPIED_WIDTH)).strip(), workload_detail(workload)])

    def _draw_detail(self) -> None:
        """What the cursor is on, in full."""
        workload, entry = self.selected, self._marked
        text = ""
        if self.history.has_focus and entry is not None:
            text = history_detail(entry)
        elif workload is not None:
            text = workload_detail(workload)
        self._view("policy-detail").show(lambda width, height: paragraph(text, width, margin=" ")[:height])

    @property
    def _marked(self) -> HistoryEntry | None:
        return next((entry for entry in self._entries if entry_key(entry) == self.history.cursor), None)

    # The history

    def _want_history(self) -> None:
        picture = self.deck.picture
        version = picture.snapshot.policy_version if picture.snapshot is not None else None
        if self.is_current and self._inquiry.begin(picture, version):
            self._fetch_history()

    @work(exclusive=True, group="history", exit_on_error=False)
    async def _fetch_history(self) -> None:
        try:
            history = await self.deck.feed.request("policy_history", HistoryParams(), History, 4.0)
        except FeedError as error:
            self._error = f"The history can't be read: {error.message}"
        else:
            self._entries, self._error = history.entries, ""
        finally:
            self._inquiry.end()
        self.has_history = True
        self._draw_history()
        self._go_to_wanted()
        self._draw_detail()

    # Cursor

    def go_to(self, ts: float) -> None:
        """Put the cursor on the line of what was done at a moment, Unix seconds."""
        self._wanted = ts
        self._inquiry.forget()
        if self.is_mounted:
            self._want_history()

    def _go_to_wanted(self) -> None:
        """Without the focus the history would forget where it was put: that comes first, and then this again."""
        if self._wanted is None or not self._entries:
            return
        if not self.history.has_focus:
            self.history.focus()
            return
        wanted, self._wanted = self._wanted, None
        self.history.select(entry_key(min(self._entries, key=lambda entry: abs(entry.ts - wanted))))

    @on(PickList.Moved)
    def _moved(self) -> None:
        self._go_to_wanted()
        self._draw_detail()

    @on(PickList.Resized)
    def _resized(self) -> None:
        self.show(self.deck.picture)

    @on(PickList.Left)
    def _left(self, event: PickList.Left) -> None:
        if event.step > 0 and self.workloads.has_focus and self._entries:
            self.history.focus()
        elif event.step < 0 and self.history.has_focus:
            self.workloads.focus()

    # Actions

    def explained(self) -> list[Section]:
        from console.app.explaining.policy import policy_sections

        return policy_sections(self.deck.picture, self.selected, self.marked_change)

    def action_other_list(self) -> None:
        (self.workloads if self.history.has_focus else self.history).focus()

    @guarded
    def action_go_to_change(self) -> None:
        """From a line of the history to its effect, where a replay goes itself; how a workload stands, and why."""
        entry = self._marked if self.history.has_focus else None
        if entry is None:
            self.deck.explain("Explained", self.explained())
            return
        key = bucket_of(self.deck.picture, entry.workload, self.deck.bucket)
        if key is None:
            self.deck.tell("It has no bucket now: nothing of it was decoded in the last 6 h.")
        else:
            self.deck.go_to_moment(key, entry.ts)

    @guarded
    def action_keep(self) -> None:
        self.deck.desk.keep()

    @guarded
    def action_edit_schedule(self) -> None:
        self.deck.desk.schedule()

    @guarded
    def action_lane(self) -> None:
        workload = self.selected
        if workload is not None:
            self.deck.desk.lane(workload.name)
