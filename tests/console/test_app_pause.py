"""`p` holds the picture: for how long, what came in meanwhile, and what can't wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from console.app.frame.news import Held, News, news_mark, news_words
from console.feed.client import Silence
from console.feed.messages import AlertView, Snapshot
from tests.console import scenes
from tests.console.driving import NARROW, WIDE, running, settled, text_on

DOWN = AlertView(kind="engine_down", severity="critical", state="firing", text="engine e0 is down: signal 9",
                 started=scenes.NOW + 20)  # fmt: skip


def later(number: int, rows: int, *alerts: AlertView, **changes: Any) -> Snapshot:
    found = scenes.live(number=number, alerts=list(alerts), tokens_per_second=999.0, **changes)
    return replace(found, store=replace(found.store, rows=found.store.rows + rows))


@pytest.mark.parametrize(
    ("size", "told"), [(WIDE, "PAUSED 2:05 +1,240 rows · +2 alerts"), (NARROW, "PAUSED 2:05 +1,240 +2▲")],
    ids=["120x36", "80x24"],
)  # fmt: skip
async def test_a_held_picture_says_how_long_and_what_came_since(size: tuple[int, int], told: str) -> None:
    async with running(scenes.live(), size=size) as (app, feed, pilot):
        await pilot.press("p")
        assert "PAUSED 0:00 " in text_on(app)
        assert "Held since 14:15:00: nothing new. p shows the newest." in text_on(app)
        moment = scenes.NOW + 125
        app._now = lambda: moment
        feed.say(later(2, 700, scenes.drifting()[0]))
        feed.say(later(3, 1240, *scenes.alerting().alerts[:1]))
        await settled(pilot)
        app._tick()
        assert told in text_on(app)
        assert "212 tok/s" in text_on(app)
        await pilot.press("p")
        assert "999 tok/s" in text_on(app), "the newest at once"
        assert "PAUSED" not in text_on(app)
        assert app.picture.news is None


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["120x36", "80x24"])
async def test_a_critical_alert_is_said_at_once_and_stays_in_sight(size: tuple[int, int]) -> None:
    async with running(scenes.live(alerts=scenes.drifting()), size=size) as (app, feed, pilot):
        await pilot.press("p")
        assert "chat 0-512 (0,0.5]: acceptance" in text_on(app)
        for number in (2, 3):
            feed.say(later(number, 10, *scenes.drifting(), DOWN))
        await settled(pilot)
        assert "■ engine e0 is down: signal 9" in text_on(app)
        assert "new while held" in text_on(app)
        feed.say(later(4, 10, *scenes.drifting()))
        await settled(pilot)
        assert "engine e0" not in text_on(app).splitlines()[-2], "it is over"


async def test_without_a_picture_there_is_nothing_to_hold() -> None:
    async with running() as (app, feed, pilot):
        await pilot.press("p")
        feed.say(scenes.live())
        await settled(pilot)
        assert "212 tok/s" in text_on(app)
        assert app.picture.paused_since is None


async def test_a_station_that_went_away_meanwhile_is_not_shown_as_there_when_the_picture_goes_on() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        await pilot.press("p")
        feed.say(later(2, 5))
        feed.say(Silence(scenes.NOW - 2, "no snapshot"))
        await settled(pilot)
        await pilot.press("p")
        assert "DISCONNECTED" in text_on(app)


def shown(*alerts: AlertView, rows: int = 0) -> Snapshot:
    return later(1, rows, *alerts)


OLD, NEW = scenes.drifting()[0], replace(scenes.drifting()[0], id=99)
PENDING = replace(NEW, state="pending")
GRAVER = replace(DOWN, started=DOWN.started + 5, text="another")

CASES: dict[str, tuple[list[Snapshot], News]] = {
    "what-fired-before-is-no-news": ([shown(OLD, rows=7)], News(7, 0)),
    "another-text-of-the-same-is-none-either": ([shown(replace(OLD, text="worse"))], News(0, 0)),
    "what-is-over-again-counts": ([shown(OLD, NEW), shown(OLD, rows=3)], News(3, 1)),
    "what-is-pending-doesnt": ([shown(OLD, PENDING)], News(0, 0)),
    "the-newest-critical-one-is-told": ([shown(OLD, GRAVER, DOWN)], News(0, 2, GRAVER)),
    "a-store-begun-anew-took-nothing-away": ([shown(OLD, rows=-400_000)], News(0, 0)),
    "a-station-that-observes-has-no-rows": ([replace(shown(OLD), policy=None)], News(None, 0)),
}


@pytest.mark.parametrize(("seen", "expected"), CASES.values(), ids=CASES)
def test_news(seen: list[Snapshot], expected: News) -> None:
    held = Held(shown(OLD))
    assert [held.see(one) for one in seen][-1] == expected
    assert held.newest is seen[-1]


@pytest.mark.parametrize(
    ("form", "news", "text"),
    [
        (news_words, None, ""),
        (news_words, News(None, 0), ""),
        (news_words, News(12_400, 1), "+12,400 rows · +1 alert"),
        (news_mark, News(12_400, 3), "+12.4k +3▲"),
        (news_mark, News(0, 0), ""),
    ],
)
def test_news_in_words(form: Callable[[News | None], str], news: News | None, text: str) -> None:
    assert form(news) == text
