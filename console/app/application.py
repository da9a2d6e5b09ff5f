"""The console: follows the feed, keeps one picture, and lets the screens draw it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

import msgspec
from textual import work
from textual._styles_cache import StylesCache
from textual.app import SystemCommand
from textual.await_complete import AwaitComplete
from textual.binding import BindingType
from textual.screen import Screen

from console.app import actions
from console.app.actions import ACTIONS, Context
from console.app.commands.log import CommandLog, LoggedFeed
from console.app.drawing.spans import clean
from console.app.drawing.themes import DARK, THEME_WORDS, THEMES, Palette, next_theme
from console.app.frame.deck_screen import HEIGHTS, WIDTHS, DeckScreen
from console.app.frame.guard import guarded
from console.app.frame.news import Held
from console.app.frame.outcome import EndedError, Intent, Outcome
from console.app.frame.serving import Serving
from console.app.going import Going
from console.app.live.demo import DemoDesk
from console.app.picture import Link, Picture
from console.app.replay.clock import Expected
from console.app.replay.desk import Opening, ReplayDesk
from console.app.replay.keys import ReplayKeys
from console.app.traces.returning import Return
from console.feed.client import Feed, FeedError, Silence, Update
from console.feed.messages import Snapshot
from console.feed.protocol import Method
from console.notices.settings import NotifySettings
from store.figures import BucketKey

if TYPE_CHECKING:
    from console.app.explaining.section import Section
    from console.app.notices.desk import NoticeDesk
    from console.app.policy.desk import PolicyDesk
    from console.app.rehearsal.desk import RehearsalDesk

TICK_SECONDS: Final = 1.0
ASK_AGAIN_SECONDS: Final = 10.0
NEVER_CONNECTED_SECONDS: Final = 15.0

OnDisconnect = Callable[[], str | None]
"""Called in a thread when the station is away, and again every 10 s while it stays away; may start one.

Returns one line for the operator about what it does, or None. Raises EndedError: no station will come back.
"""


class SpecdeckApp(ReplayKeys, Going, inherit_bindings=False):
    """The Textual application. `run()` returns an `Ending`, or None when it broke."""

    CSS_PATH = Path(__file__).with_name("app.tcss")
    TITLE = "specdeck"
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings("everywhere"), *actions.bindings("replay")]

    def __init__(
        self,
        feed: Feed,
        *,
        read_only: bool = False,
        on_disconnect: OnDisconnect | None = None,
        intent: Intent = "run",
        opening: Opening | None = None,
        keymap: dict[str, str] | None = None,
        theme: str | None = None,
        notify: NotifySettings = NotifySettings(),  # noqa: B008  # frozen
        actor: str = "operator",
        folder: Path | None = None,
        back: bool = False,
        returned: Return | None = None,
        in_browser: bool = False,
        serving: Serving | None = None,
        now: Callable[[], float] = time.time,
        behind: Callable[[], bool] = lambda: False,
    ) -> None:
        """`actor`: under what name the feed asks. `folder`: in which it was started; None where that is gone. `behind`:
        the terminal has not taken the last picture yet, so that the next may as well be left out."""
        super().__init__()
        self.actor = actor
        self.command_log = CommandLog(now)
        self.feed: Feed = LoggedFeed(feed, self.command_log)
        self.keymap: dict[str, str] = keymap or {}
        """The operator's own keys by action id."""
        self.notify_settings = notify
        self.replay_desk = ReplayDesk(self, opening)
        self.demo_desk = DemoDesk(self)
        self.bucket: BucketKey | None = None
        """The bucket that was looked at last; the screens hand it on."""
        self.bucket_order: list[BucketKey] = []
        """As the Live screen shows them."""
        self.folder = folder
        self.returned = returned
        """The trace that was opened from here before."""
        self._left_by = Outcome.BACK if back else Outcome.DETACH
        self._now = now
        self._behind = behind
        self._on_disconnect = on_disconnect
        self._serving = serving
        self._asked_at = 0.0
        self._held: Held | None = None
        self._home_loop: asyncio.AbstractEventLoop | None = None
        self._ending: Outcome | None = None
        self.picture = Picture(
            Link("connecting", now()), now(), read_only=read_only, intent=intent, in_browser=in_browser
        )
        for known in THEMES:
            self.register_theme(known)
        self.theme = THEME_WORDS.get(theme or "", DARK.name)
        self._palettes: dict[str, Palette] = {}

    @property
    def here(self) -> str | None:
        """The directory that the console was started in; None where it is gone."""
        return None if self.folder is None else str(self.folder)

    # What a first paint does not need is imported after it

    @cached_property
    def desk(self) -> PolicyDesk:
        from console.app.policy.desk import PolicyDesk

        return PolicyDesk(self)

    @cached_property
    def rehearsal_desk(self) -> RehearsalDesk:
        from console.app.rehearsal.desk import RehearsalDesk

        return RehearsalDesk(self)

    @cached_property
    def notice_desk(self) -> NoticeDesk:
        from console.app.notices.desk import NoticeDesk

        return NoticeDesk(self, self.notify_settings, self.actor)

    @property
    def palette(self) -> Palette:
        """Styles of the present theme."""
        if self.theme not in self._palettes:
            self._palettes[self.theme] = Palette(self.theme_variables, self.console.color_system == "standard")
        return self._palettes[self.theme]

    def end(self, outcome: Outcome) -> None:
        """Leave with `outcome`; may be called from any thread, at any time."""
        self._ending = outcome
        if self._home_loop is not None:
            self._home_loop.call_soon_threadsafe(self.exit, outcome)

    def on_mount(self) -> None:
        self._home_loop = asyncio.get_running_loop()
        if self._ending is not None:
            self.exit(self._ending)
        if self.keymap:
            self.set_keymap(self.keymap)
        self.set_interval(TICK_SECONDS, self._tick)
        self.call_after_refresh(self._follow)  # the first paint waits for nothing
        if self.returned is not None:
            self._come_back(self.returned)

    def _come_back(self, returned: Return) -> None:
        self.switch_mode("traces")
        if returned.why:
            self.tell(f"It can't be shown: {clean(returned.why)}", severity="warning")

    # The feed

    @work(exclusive=True, group="feed")
    async def _follow(self) -> None:
        async for update in self.feed.snapshots():
            self.receive(update)

    def receive(self, update: Update) -> None:
        """Take in what the feed says: a snapshot, or that there is none."""
        if isinstance(update, Snapshot):
            self.notice_desk.see(update)  # also while the picture is held still
        if isinstance(update, Silence):
            self._missed(update)
        elif self._held is None:
            self._take_in(update)
        else:
            self.picture = replace(self.picture, news=self._held.see(update))
            self._set(link=self._connected())

    def _take_in(self, snapshot: Snapshot) -> None:
        self.desk.see(snapshot)
        self._set(link=self._connected(), snapshot=snapshot)
        self.replay_desk.see(snapshot)

    def _connected(self) -> Link:
        link = self.picture.link
        return link if link.state == "connected" else Link("connected", self._now())

    def _missed(self, silence: Silence) -> None:
        link = self.picture.link
        if link.state == "connected":
            self._asked_at = 0.0
            link = Link("lost", silence.since or link.since)
        action = silence.reason if silence.incompatible else link.action
        self._set(link=replace(link, reason=silence.reason, action=action))
        if not silence.incompatible:
            self._ask_for_station()

    def _ask_for_station(self) -> None:
        """Tell the command that opened this console that the station is away."""
        link, now = self.picture.link, self._now()
        patience = 0.0 if self.picture.replaying else NEVER_CONNECTED_SECONDS
        pause = TICK_SECONDS if self.picture.replaying else ASK_AGAIN_SECONDS
        waited = link.state == "lost" or now - link.since >= patience
        if self._on_disconnect is not None and waited and now - self._asked_at >= pause:
            self._asked_at = now
            self._call_on_disconnect(self._on_disconnect)

    @work(thread=True, exclusive=True, group="disconnect", exit_on_error=False)
    def _call_on_disconnect(self, on_disconnect: OnDisconnect) -> None:
        try:
            action = on_disconnect()
        except EndedError as error:
            action = str(error)
            if self.picture.snapshot is None:
                self.end(Outcome.NOTHING)
        except Exception as error:  # whatever it is, the operator reads it and the console goes on
            action = f"restarting the station failed: {error}"
        self.call_from_thread(self._set, link_action=action or "")

    def _set(
        self, *, link: Link | None = None, snapshot: Snapshot | None = None, link_action: str | None = None
    ) -> None:
        link = link or self.picture.link
        if link_action is not None and link.state != "connected":
            link = replace(link, action=link_action)
        self.picture = replace(self.picture, link=link, snapshot=snapshot or self.picture.snapshot, now=self._now())
        self._draw_unasked()

    def _tick(self) -> None:
        self.picture = replace(self.picture, now=self._now())
        if self.picture.intent == "replay" and self.picture.link.state == "connecting":
            self._ask_for_station()  # it may have ended over a trace that is none
        self.notice_desk.tick()
        self._draw_unasked()

    def _draw_unasked(self) -> None:
        """Draw what no key asked for: while the terminal is behind the next picture will do, and keys stay quick."""
        if not self._behind():
            self._draw()

    def _draw(self) -> None:
        if not self.is_running:
            return  # it is ending: its screens stand there without their widgets
        for screen in self.screen_stack:
            if isinstance(screen, DeckScreen):
                screen.show(self.picture)

    # A replay

    def expect(self, expected: Expected | None) -> None:
        """Show what was asked of the replay, or no longer."""
        if expected != self.picture.expected:
            self.picture = replace(self.picture, expected=expected)
            self._draw()

    def mark_loop(self, begin: float | None) -> None:
        """Show where a loop begins whose end is not marked yet, or no longer."""
        self.picture = replace(self.picture, loop_from=begin)
        self._draw()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The keys of a replay are keys only in one."""
        known = ACTIONS.get(action)
        if known is not None and known.context == "replay" and self.picture.replay is None:
            return False
        return super().check_action(action, parameters)

    # What the keys of the Live screen have chosen, for the key line of every screen

    def show_window(self, label: str) -> None:
        """The window that was fixed for the bucket table; empty for none."""
        self.picture = replace(self.picture, window=label)
        self._draw()

    def show_compared(self, key: BucketKey | None) -> None:
        """The bucket that waits for another to be compared with; None for none."""
        self.picture = replace(self.picture, compared=key)
        self._draw()

    def pop_screen(self) -> AwaitComplete:
        """Textual keeps what it painted of the last 1024 widgets, dead ones too: some 50 MB of closed dialogs."""
        popped = super().pop_screen()
        StylesCache.get_inner_outer.cache_clear()
        return popped

    # Talking to the station

    async def act(self, method: Method, params: msgspec.Struct, done: str) -> None:
        """Ask the station to do something and tell how it went."""
        try:
            await self.feed.request(method, params, object, 10.0)
        except FeedError as error:
            self.tell(error.message, severity="warning")
        else:
            self.tell(done)

    # Actions

    @guarded
    def action_pause(self) -> None:
        """Hold the picture; or let it go on, at once with the newest that came meanwhile."""
        held, snapshot = self._held, self.picture.snapshot
        if held is None and snapshot is None:
            self.tell("There is no picture to hold yet.")
            return
        self._held = Held(snapshot) if held is None and snapshot is not None else None
        since = self._now() if self._held is not None else None
        self.picture = replace(self.picture, paused_since=since, news=None)
        if held is not None and held.newest is not None and self.picture.link.state == "connected":
            self._take_in(held.newest)
        self._draw()

    def action_theme(self) -> None:
        self.theme = next_theme(self.theme)

    def explain(self, title: str, sections: Sequence[Section]) -> None:
        """A page of how figures come about."""
        from console.app.frame.pages import ExplainPage

        if sections:
            self.push_screen(ExplainPage(title, sections))
        else:
            self.tell("There is no figure here yet.")

    def action_how(self) -> None:
        from console.app.explaining.status import status_sections

        screen = self.screen
        here = screen.explained() if isinstance(screen, DeckScreen) else []
        others = [one for one in status_sections(self.picture) if all(one.blocks != other.blocks for other in here)]
        self.explain("Explained", [*here, *others])

    def action_help(self) -> None:
        from console.app.frame.pages import HelpPage

        screen = self.screen
        self.push_screen(HelpPage(screen.CONTEXT if isinstance(screen, DeckScreen) else "everywhere"))

    @guarded
    def action_web(self) -> None:
        from console.app.frame.web_dialog import WebDialog

        self.push_screen(WebDialog(self._serving))

    @guarded
    def action_mode(self) -> None:
        self.desk.mode()

    @guarded
    def action_fallback(self) -> None:
        self.desk.fallback()

    @guarded
    def action_cap_down(self) -> None:
        self.desk.cap(-1)

    @guarded
    def action_cap_up(self) -> None:
        self.desk.cap(1)

    @guarded
    def action_undo(self) -> None:
        screen = self.screen
        self.desk.undo(screen.marked_change if isinstance(screen, DeckScreen) else None)

    def action_leave(self) -> None:
        from console.app.frame.dialogs import LeaveDialog

        if self.picture.replaying:  # nothing serves here that could be kept or stopped
            self.exit(self._left_by)
            return
        self.push_screen(LeaveDialog(self.picture), self._left)

    def action_interrupt(self) -> None:
        from console.app.frame.dialogs import LeaveDialog

        if isinstance(self.screen, LeaveDialog):
            self.exit(Outcome.DETACH)
        else:
            self.action_leave()

    def action_suspend_process(self) -> None:
        if self._driver is not None and self._driver.can_suspend:
            super().action_suspend_process()
        else:
            self.tell("No shell would bring this console back: it was not started as a shell's job.")

    def _left(self, outcome: Outcome | None) -> None:
        if outcome is not None:
            self.exit(outcome)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The command palette: the actions of this screen that can be done now."""
        context = screen.CONTEXT if isinstance(screen, DeckScreen) else "everywhere"
        contexts: tuple[Context, ...] = (context, "replay", "everywhere")
        for action in chain.from_iterable(actions.in_context(one) for one in dict.fromkeys(contexts)):
            target = self if action.context in ("everywhere", "replay") else screen
            method = getattr(target, f"action_{action.id}")
            if actions.unmet(action, self.picture) is None and action.id not in ("command_palette", "interrupt"):
                yield SystemCommand(action.label, action.description, method)
