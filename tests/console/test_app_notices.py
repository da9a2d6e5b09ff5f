"""What comes to the operator by itself: notes on alerts and on what others did, live and in a replay."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace
from textual.pilot import Pilot

from console.app.application import SpecdeckApp
from console.feed.messages import ActView, AlertView, Snapshot
from console.notices.settings import NotifySettings
from tests.console import scenes
from tests.console.driving import WIDE, settled
from tests.console.memory_feed import MemoryFeed

HOSTILE = "[bold]x[/]\x1b]0;evil\x07\nrm -rf"
DOWN = AlertView(
    kind="engine_down", severity="critical", state="firing", text=f"engine {HOSTILE} is down", started=scenes.NOW,
    cause="e0",
)  # fmt: skip
SLOW = replace(DOWN, kind="telemetry_loss", severity="warn", text="12 frames lost", cause="lost")
ME = "ada@pts/3"


class Console:
    """A console whose clock is moved by hand, and what it told."""

    def __init__(self, intent: Any = "run", **notify: Any) -> None:
        self.now = scenes.NOW
        self.feed = MemoryFeed()
        self.app = SpecdeckApp(
            self.feed, now=lambda: self.now, actor=ME, notify=NotifySettings(**notify), intent=intent
        )
        self.bells = 0
        self.desktop: list[str] = []
        self.app.bell = self._bell  # type: ignore[method-assign]
        self.app.desktop_notification = lambda text, form: self.desktop.append(text)  # type: ignore[method-assign]
        self.pilot: Pilot[Any]
        self._seen = 0

    def _bell(self) -> None:
        self.bells += 1

    async def shows(self, snapshot: Snapshot, seconds: float = 2.0) -> list[str]:
        """Take in a picture and let time pass; the notes that came of it."""
        self.feed.say(snapshot)
        await settled(self.pilot)
        self.now += seconds
        self.app.notice_desk.tick()
        await self.pilot.pause()
        notes = [note.message for note in self.app._notifications]
        new, self._seen = notes[self._seen :], len(notes)
        return new


@asynccontextmanager
async def console(**options: Any) -> AsyncIterator[Console]:
    opened = Console(**options)
    async with opened.app.run_test(size=WIDE) as pilot:
        opened.pilot = pilot
        yield opened


def live(*alerts: AlertView, **changes: Any) -> Snapshot:
    return scenes.live(alerts=list(alerts), **changes)


async def test_an_alert_is_a_note_when_it_begins_gets_graver_and_is_over_and_a_critical_one_rings() -> None:
    async with console() as opened:
        assert await opened.shows(live()) == []
        assert await opened.shows(live(SLOW)) == ["▲ 12 frames lost"]
        assert opened.bells == 0
        worse = replace(SLOW, severity="critical")
        assert await opened.shows(live(worse)) == ["■ graver: 12 frames lost"]
        assert (opened.bells, opened.desktop) == (1, []), "the desktop is told only where the settings say so"
        assert await opened.shows(live()) == ["✓ over: 12 frames lost"]
        assert opened.bells == 1


async def test_a_station_that_fires_already_is_one_note_and_rings_nothing() -> None:
    async with console(desktop="warn") as opened:
        many = [replace(DOWN, cause=f"e{number}", text=f"engine e{number} is down") for number in range(10)]
        (note,) = await opened.shows(live(*many))
        assert note.startswith("10 alerts (10 critical):\n■ engine e0 is down")
        assert note.endswith("and 7 more")
        assert (opened.bells, opened.desktop) == (0, [])
        assert await opened.shows(live(*many, SLOW)) == ["▲ 12 frames lost"]
        assert opened.desktop == ["▲ 12 frames lost"]


async def test_a_storm_is_held_to_the_limit_and_its_rest_is_counted() -> None:
    async with console(a_minute=2) as opened:
        await opened.shows(live())
        notes: list[str] = []
        for number in range(8):
            notes += await opened.shows(live(replace(SLOW, started=scenes.NOW + number)))
        assert len(notes) == 2
        (rest,) = await opened.shows(live(), seconds=61.0)
        assert "held back by the limit" in rest


async def test_what_sleeps_is_quiet_and_channels_can_be_turned_off() -> None:
    async with console(note="off", bell="off", desktop="critical") as opened:
        await opened.shows(live())
        assert await opened.shows(live(replace(DOWN, snoozed_until=scenes.NOW + 3600))) == []
        assert opened.desktop == []
        assert await opened.shows(live(DOWN)) == []
        (said,) = opened.desktop
        assert (opened.bells, said.isprintable()) == (0, True)


async def test_a_hostile_name_is_literal_text_on_one_line() -> None:
    async with console() as opened:
        await opened.shows(live())
        assert await opened.shows(live(DOWN)) == ["■ engine [bold]x[/]·]0;evil··rm -rf is down"]


async def test_a_console_that_holds_its_picture_is_told_all_the_same() -> None:
    async with console() as opened:
        await opened.shows(live())
        await opened.pilot.press("p")
        assert await opened.shows(live(SLOW)) == ["▲ 12 frames lost"]


# What others did


def act(actor: str, action: str = "cap", policy: int | None = 4, ts: float = scenes.NOW) -> ActView:
    return ActView(ts=ts, actor=actor, action=action, text=f"{actor}: cap none → 2", policy=policy)


async def test_what_others_did_is_a_note_with_the_way_back_and_what_was_done_here_is_none() -> None:
    async with console() as opened:
        assert await opened.shows(live(acts=[act("bob@pts/9")])) == [], "done before this console was opened"
        acts = [act("bob@pts/9"), act(ME, ts=scenes.NOW + 1)]
        assert await opened.shows(live(acts=acts)) == []
        acts.append(act("bob@pts/9", ts=scenes.NOW + 2))
        assert await opened.shows(live(acts=acts)) == ["bob@pts/9: cap none → 2   (u undoes it)"]
        acts.append(act("station", "revert", ts=scenes.NOW + 3))
        assert await opened.shows(live(acts=acts)) == ["station: cap none → 2"]
        assert await opened.shows(live(acts=acts)) == []
        assert opened.bells == 0


# A replay


def replayed(ts: float, *alerts: AlertView, **view: Any) -> Snapshot:
    return replace(scenes.replayed(ts, int(ts), **view), alerts=list(alerts))


async def test_a_replay_tells_only_what_it_passes_slowly_and_rings_nothing() -> None:
    passed = (
        (10.0, True, 2.5, True), (1.0, True, 0.25, True), (50.0, True, 12.5, False), (None, True, 9.0, False),
        (10.0, False, 2.5, False), (10.0, True, 300.0, False), (10.0, True, -40.0, False),
    )  # fmt: skip
    async with console(intent="replay", desktop="info", a_minute=60) as opened:
        for number, (speed, playing, step, told) in enumerate(passed):
            view: dict[str, Any] = {"speed": speed, "playing": playing}
            ts = scenes.NOW + 1000.0 * number
            await opened.shows(replayed(ts, SLOW, **view))
            new = replace(DOWN, started=ts)
            notes = await opened.shows(replayed(ts + step, SLOW, new, **view))
            assert len(notes) == told, (speed, playing, step)
        assert (opened.bells, opened.desktop) == (0, [])
