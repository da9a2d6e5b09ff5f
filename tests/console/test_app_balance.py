"""What speculation cost and saved, on screen: the line under the charts, the page, and when the station is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from console.app.balance.amounts import amount, places, share
from console.app.balance.line import balance_line
from console.app.balance.page import BalancePage
from console.app.balance.page_lines import page_lines
from console.app.balance.reader import ASK_SECONDS, SHARE_OF_TIME, TOO_OLD, BalanceReader
from console.app.drawing.spans import text_of, width_of
from console.app.picture import Link, Picture
from console.feed.client import FeedError
from tests.console import scenes
from tests.console.driving import NARROW, WIDE, make_app, running, settled, text_on, until
from tests.console.memory_feed import MemoryFeed

SIZES = pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "120x36"])


pytestmark = pytest.mark.usefixtures("in_utc")


def opened(calibrating: bool = False) -> Callable[[Pilot[Any]], Any]:
    async def run(pilot: Pilot[Any]) -> None:
        await settled(pilot)
        feed = pilot.app.feed  # type: ignore[attr-defined]
        if calibrating:
            feed.balance = scenes.calibrating_balance()
            pilot.app.screen.balance = BalanceReader()  # type: ignore[attr-defined]
        await pilot.press("b")
        await until(pilot, lambda: "engine time" in text_on(pilot.app))  # type: ignore[arg-type]

    return run


# Pictures


@SIZES
def test_the_page_shows_who_paid(snap_compare: Any, size: tuple[int, int]) -> None:
    app, _ = make_app(scenes.live())
    assert snap_compare(app, terminal_size=size, run_before=opened())


def test_the_page_while_it_calibrates(snap_compare: Any) -> None:
    app, _ = make_app(scenes.live())
    assert snap_compare(app, terminal_size=NARROW, run_before=opened(calibrating=True))


def test_the_line_stands_under_the_charts(snap_compare: Any) -> None:
    app, _ = make_app(scenes.live())
    assert snap_compare(app, terminal_size=WIDE, run_before=settled)


# The line


def line(workload: str, width: int = 120, **changes: Any) -> str:
    return text_of(balance_line(replace(scenes.balance(), **changes), workload, width))


def test_the_line_says_what_was_saved_and_who_paid() -> None:
    paid = "its drafts cost 19 s, of which repeat paid 4.1 s, chat 3.2 s"
    assert line("code") == f" ● code saved 39 s ±5.2 s of engine time in 5 min · {paid}"
    assert ": 104 s for 142 s of vanilla · its drafts cost 19 s, of which" in line("code", 200)
    assert line("creative").startswith(" ▲ creative lost 4.3 s")
    assert "it drafted nothing" in line(scenes.HOSTILE)
    assert "it paid 1.4 s for others'" in line(scenes.HOSTILE)


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120])
def test_the_line_fits(width: int) -> None:
    for one in scenes.balance().workloads:
        assert width_of(balance_line(scenes.balance(), one.workload, width)) <= width


def test_where_nothing_is_known_of_the_workload_there_is_no_line() -> None:
    assert line("nobody") == ""
    assert balance_line(None, "code", 80) == ()


def test_while_it_calibrates_the_line_says_so() -> None:
    text = text_of(balance_line(scenes.calibrating_balance(), "code", 120))
    assert text.startswith(" ◐ code calibrating")
    assert "31 % of its time" in text


# The page


@pytest.mark.parametrize("width", [56, 71, 108])
def test_the_page_fits_and_its_sums_are_there(width: int) -> None:
    lines = page_lines(scenes.balance(), width)
    assert all(width_of(line) <= width for line in lines)
    text = [text_of(line) for line in lines]
    table = text[next(n for n, line in enumerate(text) if line.startswith("Who paid")) + 1 :]
    paid = [[float(cell) for cell in line.split()[-(len(table[0].split()) - 2) :]] for line in table[1:7]]
    assert [sum(row[:-1]) for row in paid] == pytest.approx([row[-1] for row in paid])
    *payers, together = paid
    assert [sum(column) for column in zip(*payers, strict=True)] == pytest.approx(together)


def test_more_workloads_than_fit_are_put_together() -> None:
    many = [replace(scenes.balance().workloads[0], workload=f"w{n}") for n in range(12)]
    paid = [[float(n + m % 3) for m in range(12)] for n in range(12)]
    text = "\n".join(text_of(line) for line in page_lines(scenes.balance(workloads=many, paid=paid), 71))
    assert "others" in text
    assert f"{sum(map(sum, paid)):.1f}" in text


def test_amounts_can_be_added_up() -> None:
    assert (places([1234.0, 2.0]), places([12.0, None]), places([])) == (0, 1, 2)
    assert [amount(value, 1) for value in (12.34, -0.04, -3.14, None)] == ["12.3", "0.0", "−3.1", "—"]
    assert (amount(4.0, 1, signed=True), amount(0.0, 1, signed=True)) == ("+4.0", "0.0")
    assert [share(value) for value in (1.0, 0.999, 0.31, None)] == ["100 %", "99 %", "31 %", "—"]


# When the station is asked


def picture(ts: float = scenes.NOW, replaying: bool = False) -> Picture:
    scene = scenes.replayed() if replaying else scenes.live()
    return Picture(Link("connected", ts), ts, replace(scene, ts=ts))


async def test_a_long_answer_is_not_asked_for_again_soon() -> None:
    clock = [100.0]
    reader, feed = BalanceReader(lambda: clock[0]), MemoryFeed()

    async def slow(*_: Any) -> Any:
        clock[0] += 1.5
        return scenes.balance()

    params = reader.due(picture(), 300.0)
    assert params is not None
    assert reader.due(picture(), 300.0) is None  # one question at a time
    await reader.read(feed, params)
    clock[0] += ASK_SECONDS
    params = reader.due(picture(scenes.NOW + 2), 300.0)
    assert params is not None
    feed.request = slow  # type: ignore[assignment]
    await reader.read(feed, params)
    clock[0] += SHARE_OF_TIME * 1.5 - 2
    assert reader.due(picture(scenes.NOW + 40), 300.0) is None
    clock[0] += 2
    assert reader.due(picture(scenes.NOW + 42), 300.0) is not None


def test_a_replay_that_stands_still_is_asked_once() -> None:
    clock = [100.0]
    reader = BalanceReader(lambda: clock[0])
    assert reader.due(picture(replaying=True), 300.0) is not None
    reader._open = False
    clock[0] += 60
    assert reader.due(picture(replaying=True), 300.0) is None
    assert reader.due(picture(scenes.NOW + 0.1, replaying=True), 300.0) is not None


async def test_a_station_that_knows_no_such_question_is_no_trouble() -> None:
    async with running(scenes.live(), size=NARROW) as (app, feed, pilot):
        feed.balance = None
        await pilot.press("b")
        await until(pilot, lambda: TOO_OLD[:30] in text_on(app))
        assert isinstance(app.screen, BalancePage)
        await pilot.press("b")
        assert not isinstance(app.screen, BalancePage)
        assert not app._notifications


async def test_the_last_answer_stays_where_no_newer_one_comes() -> None:
    reader, feed = BalanceReader(), MemoryFeed()
    params = reader.due(picture(), 300.0)
    assert params is not None
    await reader.read(feed, params)
    feed.request = _refusing  # type: ignore[assignment]
    await reader.read(feed, params)
    assert reader.answer == scenes.balance()
    assert reader.trouble == "the disk is gone"


async def _refusing(*_: Any) -> Any:
    raise FeedError("failed", "the disk is gone")


async def test_a_low_screen_asks_nothing_until_the_page_is_opened() -> None:
    async with running(scenes.live(), size=NARROW) as (_, feed, pilot):
        assert feed.actions("balance") == []
        await pilot.press("b")
        await until(pilot, lambda: len(feed.actions("balance")) == 1)
        (asked,) = feed.actions("balance")
        assert (asked["window"], asked["at"]) == (300.0, scenes.NOW)
