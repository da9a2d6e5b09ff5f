"""The console: follows the feed, keeps one picture, and lets the screens draw it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import ClassVar, Final

import msgspec
from textual import work
from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.screen import Screen

from console.app import actions
from console.app.actions import ACTIONS, Context
from console.app.drawing.themes import DARK, THEME_WORDS, THEMES, Palette, next_theme
from console.app.frame.deck_screen import HEIGHTS, WIDTHS, DeckScreen
from console.app.frame.guard import guarded
from console.app.frame.outcome import EndedError, Intent, Outcome
from console.app.live.demo import DemoDesk
from console.app.live.screen import LiveScreen
from console.app.picture import Link, Picture
from console.app.policy.desk import PolicyDesk
from console.app.rehearsal.desk import RehearsalDesk
from console.app.replay.clock import Expected
from console.app.replay.desk import Opening, ReplayDesk
from console.app.replay.keys import ReplayKeys
from console.feed.client import Feed, FeedError, Silence, Update
from console.feed.messages import Snapshot
from console.feed.protocol import Method
from store.figures import BucketKey

TICK_SECONDS: Final = 1.0
ASK_AGAIN_SECONDS: Final = 10.0
NEVER_CONNECTED_SECONDS: Final = 15.0

OnDisconnect = Callable[[], str | None]
"""Called in a thread when the station is away, and again every 10 s while it stays away; may start one.

Returns one line for the operator about what it does, or None. Raises EndedError: no station will come back.
"""


def _bucket_screen() -> Screen[None]:
    from console.app.bucket.screen import BucketScreen

    return BucketScreen()


def _policy_screen() -> Screen[None]:
    from console.app.policy.screen import PolicyScreen

    return PolicyScreen()


def _alerts_screen() -> Screen[None]:
    from console.app.alerts.screen import AlertsScreen

    return AlertsScreen()


def _map_screen() -> Screen[None]:
    from console.app.map.screen import MapScreen

    return MapScreen()


def _engine_screen() -> Screen[None]:
    from console.app.engine.screen import EngineScreen

    return EngineScreen()


class SpecdeckApp(ReplayKeys, App[Outcome], inherit_bindings=False):
    """The Textual application. `run()` returns an `Outcome`, or None when it broke."""

    CSS_PATH = Path(__file__).with_name("app.tcss")
    TITLE = "specdeck"
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    DEFAULT_MODE = "live"
    MODES: ClassVar = {
        "live": LiveScreen,
        "bucket": _bucket_screen,
        "policy": _policy_screen,
        "alerts": _alerts_screen,
        "map": _map_screen,
        "engine": _engine_screen,
    }
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
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        self.feed = feed
        self.keymap: dict[str, str] = keymap or {}
        """The operator's own keys by action id."""
        self.desk = PolicyDesk(self)
        self.rehearsal_desk = RehearsalDesk(self)
        self.replay_desk = ReplayDesk(self, opening)
        self.demo_desk = DemoDesk(self)
        self.bucket: BucketKey | None = None
        """The bucket that was looked at last; the screens hand it on."""
        self.bucket_order: list[BucketKey] = []
        """As the Live screen shows them."""
        self._now = now
        self._on_disconnect = on_disconnect
        self._asked_at = 0.0
        self._home_loop: asyncio.AbstractEventLoop | None = None
        self._ending: Outcome | None = None
        self.picture = Picture(Link("connecting", now()), now(), read_only=read_only, intent=intent)
        for known in THEMES:
            self.register_theme(known)
        self.theme = THEME_WORDS.get(theme or "", DARK.name)
        self._palettes: dict[str, Palette] = {}

    @property
    def palette(self) -> Palette:
        """Styles of the present theme."""
        if self.theme not in self._palettes:
            self._palettes[self.theme] = Palette(self.theme_variables)
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

    # The feed

    @work(exclusive=True, group="feed")
    async def _follow(self) -> None:
        async for update in self.feed.snapshots():
            self.receive(update)

    def receive(self, update: Update) -> None:
        """Take in what the feed says: a snapshot, or that there is none."""
        if isinstance(update, Silence):
            self._missed(update)
        elif self.picture.paused_since is None:
            self.desk.see(update)
            self._set(link=self._connected(), snapshot=update)
            self.replay_desk.see(update)
        else:
            self._set(link=self._connected())

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
        self._draw()

    def _tick(self) -> None:
        self.picture = replace(self.picture, now=self._now())
        if self.picture.intent == "replay" and self.picture.link.state == "connecting":
            self._ask_for_station()  # it may have ended over a trace that is none
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

    # Between screens

    def show_bucket(self, key: BucketKey | None, ts: float | None = None) -> None:
        """The Bucket screen of a bucket, its cursor on a moment; the Live screen where no bucket is meant."""
        if key is None:
            self.action_live()
            return
        from console.app.bucket.screen import BucketScreen

        self.bucket = key
        self.switch_mode("bucket")
        screen = self.screen
        if isinstance(screen, BucketScreen) and not screen.look_at(ts):
            self.tell("That moment is more than 6 h ago, further back than series are held.", severity="warning")

    def show_change(self, ts: float) -> None:
        """The Policy screen, its history at what was done at a moment."""
        from console.app.policy.screen import PolicyScreen

        self.switch_mode("policy")
        screen = self.screen
        if isinstance(screen, PolicyScreen):
            screen.go_to(ts)

    # Talking to the operator and to the station

    def tell(self, text: str, *, severity: str = "information") -> None:
        """A passing note, always literal text."""
        self.notify(text, severity="warning" if severity == "warning" else "information", markup=False, timeout=6)

    async def act(self, method: Method, params: msgspec.Struct, done: str) -> None:
        """Ask the station to do something and tell how it went."""
        try:
            await self.feed.request(method, params, object, 10.0)
        except FeedError as error:
            self.tell(error.message, severity="warning")
        else:
            self.tell(done)

    # Actions

    def action_live(self) -> None:
        self.switch_mode("live")

    def action_bucket(self) -> None:
        self.switch_mode("bucket")

    def action_policy(self) -> None:
        self.switch_mode("policy")

    def action_alerts(self) -> None:
        self.switch_mode("alerts")

    def action_map(self) -> None:
        self.switch_mode("map")

    def action_engine(self) -> None:
        self.switch_mode("engine")

    @guarded
    def action_pause(self) -> None:
        paused = None if self.picture.paused_since is not None else self._now()
        self.picture = replace(self.picture, paused_since=paused)
        self._draw()

    def action_theme(self) -> None:
        self.theme = next_theme(self.theme)

    def action_help(self) -> None:
        from console.app.frame.pages import HelpPage

        screen = self.screen
        self.push_screen(HelpPage(screen.CONTEXT if isinstance(screen, DeckScreen) else "everywhere"))

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
            self.exit(Outcome.DETACH)
            return
        self.push_screen(LeaveDialog(self.picture), self._left)

    def action_interrupt(self) -> None:
        from console.app.frame.dialogs import LeaveDialog

        if isinstance(self.screen, LeaveDialog):
            self.exit(Outcome.DETACH)
        else:
            self.action_leave()

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
