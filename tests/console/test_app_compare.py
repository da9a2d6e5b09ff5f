"""`=`: two buckets, or one with its past and with another model version, as `specdeck compare` holds them together."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from console.app.application import SpecdeckApp
from console.app.compare.asking import ask
from console.app.compare.dialog import CompareDialog
from console.app.compare.lines import comparison_lines, verdict
from console.app.compare.page import ComparePage
from console.app.compare.questions import Question, of_one, two_buckets
from console.app.drawing.spans import text_of, width_of
from console.feed.client import FeedError
from store.comparing.compare import hold
from store.comparing.sides import Depth, Measured
from store.figures import BucketKey
from tests.console import scenes
from tests.console.driving import NARROW, WIDE, running, settled, text_on, until
from tests.console.memory_feed import MemoryFeed
from tests.console.side_scenes import OLDER

CODE, REPEAT, CHAT = scenes.four_workloads()[:3]
PAST = {"before": 0, "yesterday": 1, "baseline": 2, "versions": 3}
SIZES = pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "120x36"])


def page(question: Question, width: int = 88) -> str:
    answer = asyncio.run(ask(MemoryFeed(), question))
    lines = comparison_lines(question, answer, width)
    assert max(map(width_of, lines)) <= width
    return "\n".join(text_of(line) for line in lines)


def of(bucket: Any, which: str) -> Question:
    return of_one(bucket, [], scenes.NOW)[PAST[which]]


def answered(app: SpecdeckApp) -> bool:
    return isinstance(app.screen, ComparePage) and app.screen.answered


@SIZES
async def test_two_buckets_are_held_together_over_the_same_time(size: tuple[int, int]) -> None:
    async with running(scenes.live(), size=size) as (app, feed, pilot):
        await pilot.press("=")
        assert "is marked" in next(iter(app._notifications)).message
        assert "= compare with…" in text_on(app)
        assert next(line.strip(" │") for line in text_on(app).splitlines() if " code " in line).startswith("=● code")
        await pilot.press("down", "=")
        await until(pilot, lambda: answered(app))
        await settled(pilot)
        shown = text_on(app)
        assert "A  code 0-512 temp 0" in shown
        assert "B  repeat 512-2048 temp 0" in shown
        assert "Acceptance is 28.0 points higher in B (95 %:" in shown
        (asked,) = feed.actions("side")
        assert asked == {"by": ["workload", "context", "temperature", "model_version"], "start": scenes.NOW - 300,
                         "end": scenes.NOW}  # fmt: skip
        await pilot.press("escape")
        assert len(app.screen_stack) == 1
        assert app.picture.compared is None


@SIZES
async def test_the_same_key_twice_asks_with_what_of_its_past(size: tuple[int, int]) -> None:
    async with running(scenes.live(), size=size) as (app, feed, pilot):
        await pilot.press("=", "=")
        await settled(pilot)
        assert isinstance(app.screen, CompareDialog)
        for line in ("the 5 min before", "the same 5 min yesterday", "its 7-day baseline", "every other model version"):
            assert line in text_on(app)
        await pilot.press("down", "enter")
        await until(pilot, lambda: answered(app))
        day = 86_400.0
        assert [(one["start"], one["end"]) for one in feed.actions("side")] == [
            (scenes.NOW - 300, scenes.NOW), (scenes.NOW - day - 300, scenes.NOW - day),
        ]  # fmt: skip
        await settled(pilot)
        assert "the same 5 min yesterday  20 Sep" in text_on(app)


async def test_a_mark_is_dropped_and_a_bucket_that_is_gone_is_marked_no_more() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        await pilot.press("slash", *"chat", "enter", "=", "escape")
        await settled(pilot)
        assert app.picture.compared is None
        assert "filter: chat" in text_on(app), "one thing at a time"
        await pilot.press("escape", "=")
        feed.say(scenes.live(number=2, buckets=[REPEAT]))
        await settled(pilot)
        await pilot.press("=")
        assert app.picture.compared == REPEAT.key


async def test_a_refusal_is_on_the_page() -> None:
    async with running(scenes.live()) as (app, feed, pilot):
        feed.no_sides = FeedError("unknown_method", "no method 'side'")
        await pilot.press("=", "down", "=")
        await until(pilot, lambda: answered(app))
        await settled(pilot)
        assert "this station is older than the console and takes no sides" in text_on(app)


async def test_it_works_in_a_replay() -> None:
    async with running(scenes.replayed(playing=False)) as (app, feed, pilot):
        await pilot.press("=", "=", "enter")
        await until(pilot, lambda: answered(app))
        assert len(feed.actions("side")) == 2


def test_the_past_shows_figures_differences_what_was_set_and_what_was_lost() -> None:
    shown = page(of(CODE, "before"))
    assert "B  code 0-512 temp 0  last 5 min" in shown
    assert "the 5 min before" in shown
    assert "Acceptance is 8.0 points lower in B (95 %: 4.9 to 11.1)." in shown
    assert _row(shown, "acceptance α") == [".61", "±.02", ".53", "±.03", "−.08", "±.03", "*"]
    assert _row(shown, "n sequences") == ["400", "118"]
    assert _row(shown, "rows at each K") == ["4", "100%", "4", "100%"]
    assert "cap A" in shown
    assert "1 gaps, 12 frames lost" in shown
    assert "K differed" not in shown


def test_across_k_alpha_is_not_compared_and_acceptance_at_the_common_depth_is() -> None:
    shown = page(of(CHAT, "yesterday"))
    assert "The sides verified drafts of other lengths: α falls with K alone and is not compared." in shown
    assert "Acceptance at depth 2, which both reached, is." in shown.replace("\n", " ")
    assert _row(shown, "acceptance α")[-2:] == ["K", "differed"]
    assert [line[:12] for line in shown.splitlines() if "at depth" in line[:12]] == ["  at depth 1", "  at depth 2"]
    assert _row(shown, "rows at each K")[:2] == ["2", "100%"]


def test_a_side_on_which_there_was_nothing_says_so() -> None:
    shown = page(of(REPEAT, "baseline"))
    assert "Nothing of it was recorded in A: there is nothing to compare." in shown
    assert "Drift is judged by the judge's own baseline" in shown
    assert _row(shown, "n sequences") == ["—", "64"]


def test_other_model_versions_are_found_in_the_last_week() -> None:
    shown = page(of(CODE, "versions"))
    assert f"A is {OLDER}" in shown
    assert "Acceptance is 13.0 points higher in B" in shown
    assert "There is no other model version" in page(of(CHAT, "versions"))


def test_what_holds_for_one_workload_alone_is_told_between_two() -> None:
    shown = page(two_buckets(CODE, scenes.four_workloads()[3], scenes.NOW), 72)
    assert _row(shown, "  lane A") == ["speculative"]
    assert _row(shown, "  B ") == ["vanilla"]


def test_versions_side_by_side_keep_their_pasts_apart() -> None:
    alone = of_one(CODE, [CODE.key, CHAT.key], scenes.NOW)[0]
    beside = of_one(CODE, [CODE.key, scenes.key("code", version=OLDER)], scenes.NOW)[0]
    assert alone.by == ("workload", "context", "temperature")
    assert beside.by == ("workload", "context", "temperature", "model_version")
    observed = replace(CODE, key=BucketKey(None, None, None, "m"))
    assert of_one(observed, [observed.key], scenes.NOW)[0].by == ("model_version",)


def measured(alpha: float, error: float, steps: int = 900, **changes: Any) -> Measured:
    found = replace(CODE.figures, alpha=alpha, alpha_low=alpha - error, alpha_high=alpha + error, **changes)
    return Measured(found, [Depth(alpha, alpha - error, alpha + error, steps, 90)])


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (measured(0.5, 0.02), measured(0.6, 0.02), "Acceptance is 10.0 points higher in B (95 %: 7.2 to 12.8)."),
        (measured(0.6, 0.02), measured(0.5, 0.02), "Acceptance is 10.0 points lower in B (95 %: 7.2 to 12.8)."),
        (measured(0.5, 0.2), measured(0.6, 0.2), "The intervals tell neither acceptance nor speedup apart."),
        (measured(0.5, 0.02), measured(0.6, 0.02, few=True), "Few: under 10 sequences or 30 draft steps on a side"),
        (
            measured(0.7, 0.02, drafted_histogram={"1": 90}), measured(0.5, 0.02),
            "Acceptance at depth 1 is 20.0 points lower in B",
        ),
        (None, measured(0.5, 0.02), "Nothing of it was recorded in A"),
        (None, None, "Nothing of it was recorded in A and B"),
    ],
    ids=["higher", "lower", "noise", "few", "depth", "no-a", "none"],
)  # fmt: skip
def test_what_it_comes_to_is_said_in_sentences(a: Measured | None, b: Measured | None, said: str) -> None:
    found = hold(("code", None, None, None, None), a, b)
    assert any(text.startswith(said) for text, _ in verdict(found)), verdict(found)


def _row(shown: str, label: str) -> list[str]:
    line = next(line for line in shown.splitlines() if line.startswith(label))
    return line.removeprefix(label).split()
