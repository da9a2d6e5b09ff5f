"""Speedup alerts: two windows in a row on the wrong side, with what changed; none where nothing is drafted."""

from __future__ import annotations

import numpy as np
import pytest

from store.judge.inputs import EngineLoad, EngineStarted, LoadCells
from store.judge.moments import moments
from store.judge.settings import JudgeSettings
from store.judge.spans import speedup_span
from tests.store.judge_traffic import DAY, HOUR, T0, VERSION_A, VERSION_B, Feed, Flow, Load, name

NAMES = {0: name("code"), 1: name("chat")}
FAST = Load(2.08, drafted=400, accepted=240, running=1.0)
BUSY = Load(0.77, drafted=400, accepted=120, running=8.0)


def kinds(feed: Feed) -> list[str]:
    return [alert.kind for alert in feed.fired]


def test_more_load_is_a_speedup_alert_with_its_cause_and_no_acceptance_alert() -> None:
    feed = Feed(NAMES)
    feed.run(HOUR, {0: FAST})
    assert feed.alerts == {}
    grew = feed.now
    busy = Load(0.77, drafted=400, accepted=240, running=8.0)
    for _ in range(6):
        feed.cell({0: Flow(0.3)})
        feed.run(300, {0: busy})
    (alert,) = feed.fired
    assert (alert.kind, alert.severity, alert.bucket, alert.engine) == ("speedup_floor", "critical", None, "e0")
    assert (alert.started, alert.confirmed) == (grew + 300, grew + 600)
    assert alert.evidence["speedup"] == pytest.approx(0.77, abs=0.01)
    assert [cause.kind for cause in alert.causes] == ["load"]
    assert "1.0 sequences running before, 8.0 since" in alert.causes[0].text


def test_a_speedup_below_the_floor_warns_and_below_one_is_critical() -> None:
    feed = Feed(NAMES)
    feed.run(1200, {0: FAST._replace(speedup=1.3)})
    (alert,) = feed.fired
    assert (alert.severity, alert.state) == ("warn", "firing")
    feed.run(600, {0: FAST._replace(speedup=0.9)})
    (alert,) = feed.fired
    assert (alert.severity, alert.state) == ("critical", "firing")


def test_the_floor_is_a_setting() -> None:
    feed = Feed(NAMES, JudgeSettings(speedup_floor=1.0))
    feed.run(1200, {0: FAST._replace(speedup=1.3)})
    assert feed.alerts == {}


@pytest.mark.parametrize("speedup", [1.49, 1.5, 1.51])
def test_an_interval_that_reaches_the_floor_is_no_alert(speedup: float) -> None:
    feed = Feed(NAMES)
    feed.run(1800, {0: FAST._replace(speedup=speedup, wobble=0.2)})
    assert feed.alerts == {}


def test_the_calibration_error_widens_the_interval() -> None:
    feed = Feed(NAMES)
    for number in range(120):
        ts = T0 + 10 * number
        feed.judge.load(
            LoadCells(
                ts, np.array([0]), np.array([1300.0]), np.array([1000.0]), np.array([9]), np.array([5]), np.array([9]),
                (EngineLoad("e0", 1.0, 4.0, calibration_error=0.10),),
            )
        )  # fmt: skip
    feed.skip(3600)
    assert feed.fired == []


def test_an_alert_is_over_when_the_speedup_is_well_above_the_floor_twice() -> None:
    feed = Feed(NAMES)
    feed.run(1200, {0: FAST._replace(speedup=1.3)})
    feed.run(1200, {0: FAST._replace(speedup=1.52)})
    assert feed.firing, "above the floor, but not by the margin"
    mended = feed.now
    feed.run(1200, {0: FAST})
    (alert,) = feed.fired
    assert (alert.state, alert.ended) == ("resolved", mended + 600)


def test_a_workload_fails_when_it_wastes_most_and_gains_next_to_nothing() -> None:
    feed = Feed(NAMES)
    feed.run(1200, {0: FAST, 1: Load(1.1, drafted=400, accepted=100)})
    (alert,) = [one for one in feed.fired if one.bucket is not None]
    assert (alert.kind, alert.severity) == ("failing_workload", "warn")
    assert alert.bucket is not None
    assert alert.bucket.workload == "chat"
    assert alert.evidence["waste"] == 0.75


@pytest.mark.parametrize(
    "load", [Load(1.1, drafted=400, accepted=300), Load(1.6, drafted=400, accepted=100)], ids=["accepts", "gains"]
)
def test_waste_alone_and_slowness_alone_are_no_failure(load: Load) -> None:
    feed = Feed(NAMES)
    feed.run(1200, {1: load})
    assert "failing_workload" not in kinds(feed)


def test_a_workload_at_k_zero_beside_a_drafting_one_does_not_fail() -> None:
    feed = Feed(NAMES)
    feed.run(HOUR, {0: FAST, 1: Load(0.4, drafted=0, accepted=0)})
    assert "failing_workload" not in kinds(feed)


def test_where_nothing_is_drafted_there_is_no_speculation_to_judge() -> None:
    feed = Feed(NAMES)
    feed.run(HOUR, {0: Load(0.97, drafted=0, accepted=0, executed_k=0.0)})
    assert feed.alerts == {}


def test_turning_speculation_off_ends_the_alert() -> None:
    feed = Feed(NAMES)
    feed.run(1200, {0: BUSY})
    assert set(kinds(feed)) == {"speedup_floor", "failing_workload"}
    feed.run(900, {0: Load(0.97, drafted=0, accepted=0, executed_k=0.0)})
    assert [(alert.state, alert.causes[-1].kind) for alert in feed.fired] == [("resolved", "gone")] * 2


def test_an_alert_of_an_engine_that_is_gone_ends_after_a_day() -> None:
    feed = Feed(NAMES)
    feed.run(1200, {0: BUSY})
    last = feed.now
    feed.skip(2 * DAY)
    assert {(alert.state, alert.ended) for alert in feed.fired} == {("resolved", last + DAY)}


def test_time_without_a_vanilla_equivalent_is_not_judged() -> None:
    feed = Feed(NAMES)
    feed.run(1200, {0: BUSY._replace(speedup=float("nan"))})
    assert feed.alerts == {}
    feed.run(1200, {0: BUSY._replace(speedup=float("nan")), 1: BUSY})
    assert "speedup_floor" not in kinds(feed), "half of the time is not known"


def test_a_version_and_a_draft_length_are_named() -> None:
    feed = Feed(NAMES)
    feed.event(EngineStarted("e0", T0, VERSION_A))
    feed.run(HOUR, {0: FAST})
    feed.event(EngineStarted("e0", feed.now, VERSION_B))
    feed.run(1200, {0: FAST._replace(speedup=0.8, executed_k=1.0)})
    (alert,) = feed.fired
    assert {cause.kind for cause in alert.causes} == {"version", "draft_length"}


def test_one_bad_window_is_no_alert() -> None:
    feed = Feed(NAMES)
    for _ in range(5):
        feed.run(300, {0: BUSY})
        feed.run(600, {0: FAST})
    assert feed.fired == []


def test_where_one_cell_outweighs_all_others_there_is_no_interval() -> None:
    """Effective n is then next to 1, and Student's t so large that its bound is no number."""
    taken = np.array([320_000.0, *[4_000.0] * 5])
    gained = taken * np.linspace(1.0, 1.6, len(taken))
    _, sums = moments(taken[:, None], gained[:, None], np.zeros(len(taken), dtype=int))
    assert speedup_span(sums[0, 0], 0.95, 0.02) is None
    even = np.full(6, 4_000.0)
    _, sums = moments(even[:, None], (even * np.linspace(1.0, 1.6, 6))[:, None], np.zeros(6, dtype=int))
    assert speedup_span(sums[0, 0], 0.95, 0.02) is not None
