"""Alerts of events: what comes again soon is one alert, what lasts goes on until it is over."""

from __future__ import annotations

import pytest

from store.judge.inputs import (
    ClockStep,
    EngineDown,
    EngineStarted,
    EngineUp,
    PolicyKept,
    PolicyMismatch,
    RowsQuarantined,
    TelemetryLost,
)
from tests.store.judge_traffic import HOUR, T0, VERSION_A, Feed, name


@pytest.fixture
def feed() -> Feed:
    feed = Feed({0: name()})
    feed.skip(10.0)
    return feed


def test_a_loss_is_an_alert_and_more_of_them_are_the_same_one(feed: Feed) -> None:
    for number in range(10):
        feed.event(TelemetryLost("e0", T0 + 60 * number, T0 + 60 * number - 2, 7))
    (alert,) = feed.fired
    assert (alert.kind, alert.severity, alert.state, alert.started) == ("telemetry_loss", "warn", "firing", T0 - 2)
    assert (alert.evidence["gaps"], alert.evidence["frames_lost"]) == (10, 70)


def test_a_loss_is_over_when_nothing_more_is_lost_and_a_later_one_is_another(feed: Feed) -> None:
    feed.event(TelemetryLost("e0", T0 + 60, T0 + 58, 7))
    feed.skip(HOUR)
    assert [(alert.state, alert.ended) for alert in feed.fired] == [("resolved", T0 + 60)]
    feed.event(TelemetryLost("e0", T0 + 3 * HOUR, None, 1))
    assert [alert.state for alert in feed.fired] == ["resolved", "firing"]


def test_engines_do_not_share_their_alerts(feed: Feed) -> None:
    feed.event(TelemetryLost("e0", T0 + 60, None, 7))
    feed.event(TelemetryLost("e1", T0 + 60, None, 7))
    assert [alert.engine for alert in feed.fired] == ["e0", "e1"]


def test_quarantined_rows_and_clock_steps_are_counted(feed: Feed) -> None:
    feed.event(RowsQuarantined("e0", T0 + 10, 3))
    feed.event(RowsQuarantined("e0", T0 + 20, 4))
    feed.event(ClockStep("e0", T0 + 30, -3.5))
    rows, step = feed.fired
    assert (rows.kind, rows.evidence["rows"]) == ("quarantine", 7)
    assert (step.kind, step.evidence["seconds"]) == ("clock_step", -3.5)


@pytest.mark.parametrize("back", [EngineUp("e0", T0 + 90), EngineStarted("e0", T0 + 90, VERSION_A)])
def test_an_engine_is_down_until_it_is_up(feed: Feed, back: EngineUp | EngineStarted) -> None:
    feed.event(EngineDown("e0", T0 + 60, "killed by signal 9"))
    (alert,) = feed.fired
    assert (alert.kind, alert.severity, alert.evidence["why"]) == ("engine_down", "critical", "killed by signal 9")
    feed.skip(25.0)
    assert feed.firing
    feed.event(back)
    feed.skip(2 * HOUR)
    assert [(alert.state, alert.ended) for alert in feed.fired] == [("resolved", T0 + 90)]


def test_an_engine_that_stays_down_is_down_for_days(feed: Feed) -> None:
    feed.event(EngineDown("e0", T0 + 60))
    feed.skip(100 * HOUR)
    assert feed.firing


def test_a_mismatch_lasts_until_it_ended_and_one_that_comes_and_goes_is_one_alert(feed: Feed) -> None:
    def mismatch(started: float, ended: float | None) -> PolicyMismatch:
        return PolicyMismatch("e0", started, ended, "schedule:1-4:4", "static:4", 4, "dropped under data parallelism")

    feed.event(mismatch(T0 + 20, None))
    (alert,) = feed.firing
    assert (alert.kind, alert.severity) == ("policy_mismatch", "critical")
    assert alert.evidence["reason"] == "dropped under data parallelism"
    feed.skip(HOUR)
    assert feed.firing
    feed.event(mismatch(T0 + 20, feed.now))
    again = feed.now + 60
    for _ in range(3):
        feed.event(mismatch(again, None))
    feed.event(PolicyKept("e0", again + 30))
    feed.skip(HOUR)
    feed.event(PolicyKept("e0", feed.now))
    assert [(alert.state, alert.ended) for alert in feed.fired] == [("resolved", again + 30)]


def test_what_was_over_before_the_end_of_a_trace_is_over_though_no_window_follows(feed: Feed) -> None:
    feed.event(EngineDown("e0", T0 + 20, ""))
    feed.event(EngineUp("e0", T0 + 40))
    feed.judge.finish(T0 + 45)
    assert [alert.state for alert in feed.fired] == ["firing"]
    feed.judge.finish(T0 + 40 + feed.judge.settings.quiet_seconds)
    feed.collect()
    assert [(alert.state, alert.ended) for alert in feed.fired] == [("resolved", T0 + 40)]
