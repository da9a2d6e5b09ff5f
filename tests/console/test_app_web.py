"""`w`: how to open this console in a browser, and serving it from here."""

from __future__ import annotations

import threading

from console.app.frame.serving import ServingError
from console.app.frame.web_dialog import WebDialog, web_lines
from console.cli.web_child import web_child
from tests.console import scenes
from tests.console.driving import NARROW, running, text_on, until

ADDRESS = "http://127.0.0.1:40123/?token=abc"


class Served:
    """A `Serving` that serves nothing."""

    command = "specdeck web"

    def __init__(self, trouble: str = "") -> None:
        self.address: str | None = None
        self.trouble = trouble
        self.may_start = threading.Event()

    def start(self) -> str:
        assert self.may_start.wait(30)
        if self.trouble:
            raise ServingError(self.trouble)
        self.address = ADDRESS
        return ADDRESS

    def stop(self) -> None:
        self.address = None


async def test_it_is_served_from_here_copied_and_ended() -> None:
    serving = Served()
    async with running(scenes.live(), size=NARROW, serving=serving) as (app, _, pilot):
        await pilot.press("w")
        await until(pilot, lambda: "specdeck web --write" in text_on(app))
        await pilot.press("enter")
        await until(pilot, lambda: "starting" in text_on(app))
        serving.may_start.set()
        await until(pilot, lambda: ADDRESS in text_on(app))
        await pilot.press("y")
        assert app.clipboard == ADDRESS
        await pilot.press("escape", "w")  # it is served on
        await until(pilot, lambda: ADDRESS in text_on(app))
        await pilot.press("s")
        await until(pilot, lambda: serving.address is None and ADDRESS not in text_on(app))


async def test_what_keeps_it_from_being_served_is_told() -> None:
    serving = Served("port is [gone], and [red]markup is text")
    serving.may_start.set()
    async with running(scenes.live(), size=NARROW, serving=serving) as (app, _, pilot):
        await pilot.press("w", "enter")
        await until(pilot, lambda: "port is [gone], and [red]markup is text" in text_on(app))


async def test_a_console_in_a_browser_offers_no_other() -> None:
    async with running(scenes.live(), in_browser=True, serving=Served()) as (app, _, pilot):
        await pilot.press("w")
        await until(pilot, lambda: "in a browser already" in "".join(note.message for note in app._notifications))
        assert not isinstance(app.screen, WebDialog)


def test_over_ssh_it_says_how_to_reach_it() -> None:
    lines = web_lines("specdeck web", ADDRESS, 78, replaying=False, ssh=True)
    text = " ".join("".join(span for span, _ in line) for line in lines)
    assert "ssh -N -L 40123:127.0.0.1:40123" in text
    assert ADDRESS in text


def test_of_a_replay_it_says_that_each_tab_plays_for_itself() -> None:
    with web_child("--replay", "my trace.jsonl") as child:
        lines = web_lines(child.command, child.address, 76, replaying=True, ssh=False)
    text = "\n".join("".join(span for span, _ in line) for line in lines)
    assert "specdeck web --replay 'my trace.jsonl'" in text
    assert "for itself" in text
    assert "--write" not in text
