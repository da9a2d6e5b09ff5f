"""What the console shows of a station that only observes: what can't be known is said to be unknown, never a zero."""

from __future__ import annotations

import msgspec
import pytest

from console.app.actions import ACTIONS, unmet
from console.app.drawing.spans import text_of
from console.app.engine.facts import engine_lines
from console.app.frame.statusline import status_line
from console.app.live.startup import before_buckets
from console.app.picture import Link, Picture
from console.cli.status_text import describe
from console.feed.messages import EngineView, Snapshot
from console.feed.protocol import ProcessesResult
from console.station.exposition import exposition
from tests.console import scenes

SEEN = EngineView(engine="e0", owned=False, state="serving", detail="observed", last_frame_age=2.0, running=3)


def observed(engine: EngineView = SEEN) -> Snapshot:
    return scenes.live(
        policy=None, policy_version=None, gateway=None, engines=[engine], running=engine.running, waiting=engine.waiting
    )


def picture(snapshot: Snapshot) -> Picture:
    return Picture(Link("connected", scenes.NOW), scenes.NOW, snapshot)


def test_the_status_line_says_that_mode_and_load_are_unknown() -> None:
    line = text_of(status_line(picture(observed()), 120))
    assert "mode unknown" in line
    assert "run 3" in line
    assert "wait —" in line
    assert "K " not in line.partition("specdeck")[2].partition("run")[0]
    assert "off" not in line


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_engine_screen_says_that_the_policy_is_unknown_and_promises_none(width: int) -> None:
    text = "\n".join(map(text_of, engine_lines(picture(observed()), width, roomy=True)))
    assert "unknown" in text
    for claim in ("no policy sent yet", "up to 0", "synchronous", "configured", "off"):
        assert claim not in text


def test_what_an_engine_that_starts_has_not_said_is_a_dash() -> None:
    """Its model is known by how it is started, the rest when it announces itself."""
    young = EngineView(engine="e0", owned=True, state="starting", target="m", max_k=4, configured=scenes.STATIC_4)
    text = "\n".join(map(text_of, engine_lines(picture(scenes.live(engines=[young])), 120, roomy=False)))
    assert "up to 4, batch K —" in text
    assert "synchronous" not in text
    assert "up to 0" not in text


def test_before_the_first_figures_no_traffic_is_suggested_that_would_not_reach_it() -> None:
    nothing = msgspec.structs.replace(observed(), buckets=[], total=None)
    text = "\n".join(map(text_of, before_buckets(picture(nothing), 100)))
    assert "only observed" in text
    for wrong in ("specdeck demo", "curl", "workload ×"):
        assert wrong not in text


def test_the_mode_can_not_be_changed_and_the_reason_is_given() -> None:
    why = unmet(ACTIONS["mode"], picture(observed()))
    assert why is not None
    assert "only observes" in why
    assert unmet(ACTIONS["mode"], picture(scenes.live())) is None


def test_status_says_unknown_where_a_mode_would_stand() -> None:
    text = describe(observed(), ProcessesResult([], {}, "/x.duckdb", None))
    assert "policy     unknown: this station only observes" in text
    assert "running 3, waiting —" in text
    assert "policy and executed K unknown" in text
    for claim in ("None", "off", "version"):
        assert claim not in text


def test_what_is_unknown_has_no_sample_in_the_metrics() -> None:
    served = exposition(observed()).decode()
    assert 'specdeck_engine_running{engine="e0"} 3.0' in served
    for name in ("specdeck_policy_version", "specdeck_engine_waiting", "specdeck_engine_executed_k"):
        assert f"\n{name}" not in served
