"""Acceptance alerts: one for each cause and bucket, and none where acceptance did not get worse."""

from __future__ import annotations

from itertools import pairwise

import pytest

from store.figures import BucketKey
from store.judge.inputs import ControlDone, EngineStarted
from tests.store.judge_traffic import DAY, HOUR, T0, VERSION_A, VERSION_B, Feed, Flow, name

CHAT = {0: name()}


def key(workload: str = "chat", version: str = VERSION_A) -> BucketKey:
    return BucketKey(workload, "0-512", "0", version)


def test_a_fall_of_nine_points_is_one_drift_that_began_with_the_first_window_that_showed_it() -> None:
    feed = Feed(CHAT)
    feed.history(2, {0: Flow(0.70)})
    assert feed.alerts == {}
    fell = feed.now
    feed.serve(300, {0: Flow(0.61)})
    (pending,) = feed.alerts.values()
    assert (pending.state, pending.started, pending.pending_since) == ("pending", None, fell + 300)
    feed.serve(2 * HOUR, {0: Flow(0.61)})
    (alert,) = feed.fired
    assert (alert.kind, alert.severity, alert.state) == ("drift", "warn", "firing")
    assert (alert.engine, alert.bucket) == ("e0", key())
    assert (alert.started, alert.confirmed, alert.window_seconds) == (fell + 300, fell + 600, 300)
    assert alert.evidence["fall_points"] == pytest.approx(9.0, abs=0.1)
    assert alert.evidence["against"] == "baseline"
    assert alert.evidence["depth"] == 4
    assert alert.evidence["bound_points"] < 0  # type: ignore[operator]


def test_one_window_alone_is_no_alert() -> None:
    feed = Feed(CHAT)
    feed.history(2, {0: Flow(0.70)})
    for _ in range(6):
        feed.serve(300, {0: Flow(0.45)})
        feed.serve(HOUR - 300, {0: Flow(0.70)})
    assert feed.fired == []
    assert feed.alerts, "each was pending for a window"
    assert all(alert.state == "resolved" and alert.started is None for alert in feed.alerts.values())


@pytest.mark.parametrize("fall", [0.0, 0.02, 0.045])
def test_a_fall_within_the_threshold_is_no_alert_however_sure_it_is(fall: float) -> None:
    feed = Feed(CHAT)
    feed.history(2, {0: Flow(0.70, sequences=400, spread=0.01)})
    feed.history(1, {0: Flow(0.70 - fall, sequences=400, spread=0.01)})
    feed.serve(HOUR, {0: Flow(0.70 - fall, sequences=400, spread=0.01)})
    assert feed.alerts == {}


def test_a_fall_that_chance_could_have_made_is_no_alert() -> None:
    feed = Feed(CHAT)
    feed.history(2, {0: Flow(0.60, sequences=30, spread=0.39)})
    feed.serve(600, {0: Flow(0.50, sequences=30, spread=0.39)})
    assert feed.alerts == {}


def test_what_five_minutes_cannot_tell_from_chance_an_hour_can() -> None:
    feed = Feed(CHAT)
    feed.history(2, {0: Flow(0.60, sequences=30, spread=0.2)})
    fell = feed.now
    feed.serve(3 * HOUR, {0: Flow(0.52, sequences=30, spread=0.2)})
    (alert,) = feed.fired
    assert (alert.kind, alert.window_seconds) == ("drift", HOUR)
    assert alert.started == fell + HOUR


def test_a_changed_draft_length_moves_no_acceptance_at_a_common_depth() -> None:
    feed = Feed(CHAT)
    for k in (2, 4, 8, 2, 8, 4):
        feed.history(1.5, {0: Flow(2 / k, k=k, accepted=2)})
    assert feed.alerts == {}
    assert feed.judge.views()[0].depth == 4


def test_a_slow_drift_is_one_alert_and_its_steep_steps_are_causes() -> None:
    feed = Feed(CHAT)
    feed.history(3, {0: Flow(0.78)})
    fell = feed.now
    for rate in (0.69, 0.61, 0.48, 0.30):
        feed.serve(2 * HOUR, {0: Flow(rate)})
    (alert,) = feed.fired
    assert (alert.kind, alert.bucket, alert.state) == ("drift", key(), "firing")
    assert alert.started == fell + 300
    steps = [cause.ts for cause in alert.causes if cause.kind == "shift"]
    assert steps == [fell + 4 * HOUR, fell + 6 * HOUR]
    assert alert.severity == "critical", "a step this steep wants somebody now"
    assert len(feed.alerts) == 1


def test_a_creeping_decline_is_called_gradual() -> None:
    feed = Feed(CHAT)
    feed.history(3, {0: Flow(0.78)})
    for step in range(96):
        feed.serve(300, {0: Flow(0.78 - 0.001 * step)})
    (alert,) = feed.fired
    assert [cause.kind for cause in alert.causes] == ["gradual"]


def test_a_moving_baseline_follows_a_slow_decline_and_the_pinned_reference_does_not() -> None:
    feed = Feed(CHAT)
    feed.history(7, {0: Flow(0.78)})
    for day in range(30):
        feed.history(1, {0: Flow(0.78 - 0.003 * day)})
        if feed.fired:
            break
    (alert,) = feed.fired
    assert alert.evidence["against"] == "pinned"
    assert alert.evidence["reference"] == pytest.approx(0.78, abs=0.001)
    assert alert.evidence["fall_points"] == pytest.approx(5.3, abs=0.4)


def test_a_step_of_twenty_points_is_one_shift_that_absorbs_the_drift() -> None:
    feed = Feed(CHAT)
    feed.history(2, {0: Flow(0.70)})
    fell = feed.now
    feed.serve(6 * HOUR, {0: Flow(0.50)})
    (alert,) = feed.fired
    assert (alert.kind, alert.severity, alert.started) == ("shift", "critical", fell + 300)
    assert len(feed.alerts) == 1


def test_a_shift_needs_no_baseline() -> None:
    feed = Feed(CHAT)
    feed.serve(2 * HOUR, {0: Flow(0.70)})
    feed.serve(HOUR, {0: Flow(0.55)})
    (alert,) = feed.fired
    assert (alert.kind, alert.evidence["against"]) == ("shift", "before")


def test_a_moment_inside_a_window_hides_no_shift() -> None:
    feed = Feed(CHAT)
    feed.serve(2 * HOUR, {0: Flow(0.70)})
    feed.serve(300, {0: Flow(0.61)})
    feed.serve(HOUR, {0: Flow(0.52)})
    (alert,) = feed.fired
    assert alert.kind == "shift"


def test_a_single_high_window_is_no_level_to_fall_from() -> None:
    feed = Feed(CHAT)
    feed.serve(HOUR, {0: Flow(0.50)})
    feed.serve(300, {0: Flow(0.75)})
    feed.serve(HOUR, {0: Flow(0.50)})
    assert feed.fired == []


def test_a_new_version_that_accepts_less_is_one_shift_that_names_it() -> None:
    feed = Feed({0: name(), 1: name(version=VERSION_B)})
    feed.event(EngineStarted("e0", T0, VERSION_A))
    feed.history(3, {0: Flow(0.313, k=7)})
    pushed = feed.now + 100
    feed.event(EngineStarted("e0", pushed, VERSION_B))
    feed.skip(300)
    feed.serve(HOUR, {1: Flow(0.237, k=7)})
    (alert,) = feed.fired
    assert (alert.kind, alert.severity, alert.bucket) == ("shift", "critical", key(version=VERSION_B))
    (cause,) = alert.causes
    assert (cause.kind, cause.ts) == ("version", pushed)
    assert "drafter drafter@a → drafter@b" in cause.text
    assert alert.evidence["reference"] == pytest.approx(0.313, abs=1e-3)


def test_a_new_version_that_is_as_good_is_silent() -> None:
    feed = Feed({0: name(), 1: name(version=VERSION_B)})
    feed.event(EngineStarted("e0", T0, VERSION_A))
    feed.history(2, {0: Flow(0.50)})
    feed.event(EngineStarted("e0", feed.now, VERSION_B))
    feed.history(2, {1: Flow(0.47)})
    assert feed.alerts == {}


def test_a_version_that_does_not_mend_a_fall_is_not_blamed_for_it() -> None:
    feed = Feed({0: name(), 1: name(version=VERSION_B)})
    feed.event(EngineStarted("e0", T0, VERSION_A))
    feed.history(2, {0: Flow(0.70)})
    feed.serve(2 * HOUR, {0: Flow(0.61)})
    feed.event(EngineStarted("e0", feed.now, VERSION_B))
    feed.serve(2 * HOUR, {1: Flow(0.61)})
    old, new = feed.fired
    assert (old.state, old.causes[-1].kind) == ("resolved", "gone")
    assert (new.kind, new.state, new.causes[-1].kind) == ("drift", "firing", "not_fixed")


def test_a_new_configuration_of_the_same_version_is_named_and_half_the_fall_is_enough() -> None:
    feed = Feed(CHAT)
    feed.event(EngineStarted("e0", T0, VERSION_A, "graph mode full"))
    feed.serve(3 * HOUR, {0: Flow(0.50)})
    changed = feed.now + 40
    feed.event(EngineStarted("e0", changed, VERSION_A, "graph mode none"))
    feed.skip(300)
    feed.serve(HOUR, {0: Flow(0.43)})
    (alert,) = feed.fired
    assert alert.kind == "shift"
    assert [(cause.kind, cause.ts) for cause in alert.causes] == [("configuration", changed)]


def test_a_restart_that_changes_nothing_is_no_cause() -> None:
    feed = Feed(CHAT)
    feed.event(EngineStarted("e0", T0, VERSION_A, "as ever"))
    feed.history(2, {0: Flow(0.70)})
    feed.event(EngineStarted("e0", feed.now, VERSION_A, "as ever"))
    feed.serve(HOUR, {0: Flow(0.50)})
    (alert,) = feed.fired
    assert alert.causes == []


def test_what_the_operator_did_at_that_time_is_named_unless_it_was_elsewhere() -> None:
    feed = Feed(CHAT)
    feed.history(2, {0: Flow(0.70)})
    feed.event(ControlDone(feed.now - 60, "operator", "mode", None, "static:4 → static:2"))
    feed.event(ControlDone(feed.now - 30, "operator", "lane", "code", "vanilla"))
    feed.serve(HOUR, {0: Flow(0.50)})
    (alert,) = feed.fired
    assert [cause.text for cause in alert.causes] == ["operator: mode: static:4 → static:2"]


def test_a_busy_policy_does_not_bury_what_the_operator_did() -> None:
    feed = Feed(CHAT)
    feed.history(2, {0: Flow(0.70)})
    feed.event(ControlDone(feed.now - 200, "operator", "cap", None, "none → 2"))
    for number in range(300):
        feed.event(ControlDone(feed.now - 190 + number / 10, "adaptive", "k", "chat", str(number)))
    feed.serve(HOUR, {0: Flow(0.50)})
    (alert,) = feed.fired
    assert [cause.text for cause in alert.causes] == [
        "adaptive: k for chat: 297", "adaptive: k for chat: 298", "adaptive: k for chat: 299",
        "operator: cap: none → 2",
    ]  # fmt: skip


def test_a_changed_engine_does_not_concern_another_one() -> None:
    feed = Feed({0: name(), 1: name(engine="e1")})
    for engine in ("e0", "e1"):
        feed.event(EngineStarted(engine, T0, VERSION_A, "graph mode full"))
    feed.serve(3 * HOUR, {0: Flow(0.50), 1: Flow(0.50)})
    feed.event(EngineStarted("e0", feed.now + 40, VERSION_A, "graph mode none"))
    feed.skip(300)
    feed.serve(HOUR, {0: Flow(0.43), 1: Flow(0.43)})
    assert [(alert.engine, alert.kind) for alert in feed.fired] == [("e0", "shift")]


def test_another_temperature_is_another_bucket() -> None:
    feed = Feed({0: name(), 1: name(temperature="(0.5,1]")})
    feed.history(2, {0: Flow(0.60)})
    feed.serve(DAY, {1: Flow(0.35)})
    assert feed.fired == []


def test_the_traffic_mix_makes_a_note_and_no_alert() -> None:
    feed = Feed({0: name("code"), 1: name("writing")})
    feed.history(2, {0: Flow(0.447, sequences=100), 1: Flow(0.205, sequences=100)})
    assert feed.notes == []
    feed.serve(2 * HOUR, {0: Flow(0.447, sequences=40), 1: Flow(0.205, sequences=160)})
    assert feed.fired == []
    (note,) = feed.notes
    assert note.kind == "mix"
    assert note.evidence["mix_points"] == pytest.approx(7.3, abs=0.1)
    assert note.evidence["rates_points"] == pytest.approx(0.0, abs=0.1)
    assert "writing" in note.text


def test_a_worse_drafter_is_no_mix() -> None:
    feed = Feed({0: name("code"), 1: name("writing")})
    feed.history(2, {0: Flow(0.447, sequences=100), 1: Flow(0.205, sequences=100)})
    feed.serve(2 * HOUR, {0: Flow(0.30, sequences=100), 1: Flow(0.205, sequences=100)})
    assert feed.notes == []
    assert [alert.bucket for alert in feed.fired] == [key("code")]


def test_a_new_version_is_no_mix() -> None:
    feed = Feed({0: name(), 1: name(version=VERSION_B)})
    feed.event(EngineStarted("e0", T0, VERSION_A))
    feed.history(2, {0: Flow(0.5)})
    feed.event(EngineStarted("e0", feed.now, VERSION_B))
    feed.serve(2 * HOUR, {1: Flow(0.4)})
    assert feed.notes == []


def test_post_resume_steps_are_no_drift_and_are_told_once() -> None:
    feed = Feed(CHAT)
    feed.history(2, {0: Flow(0.62)})
    feed.serve(3 * HOUR, {0: Flow(0.62, resumed=0.0)})
    assert feed.fired == []
    (note,) = feed.notes
    assert note.kind == "post_resume"
    assert (note.evidence["present"], note.evidence["reference"]) == (0.0, pytest.approx(0.62, abs=1e-3))


def test_post_resume_steps_that_are_as_good_as_others_are_not_worth_a_word() -> None:
    feed = Feed(CHAT)
    feed.serve(DAY, {0: Flow(0.62, resumed=0.60)})
    assert feed.notes == []


def test_with_nothing_drafted_there_is_no_alert_and_the_bucket_is_blind() -> None:
    feed = Feed(CHAT)
    feed.history(2, {0: Flow(0.62)})
    (view,) = feed.judge.views()
    assert (view.state, view.depth, view.probe_wanted) == ("ok", 4, False)
    assert view.baseline == pytest.approx(0.62, abs=1e-3)
    for _ in range(7):
        feed.cell({0: Flow(0.0, k=0)})
        feed.skip(10.0)
    (view,) = feed.judge.views()
    assert (view.state, view.probe_wanted) == ("blind", True)
    assert view.baseline == pytest.approx(0.62, abs=1e-3), "what it was is still known"
    feed.serve(DAY, {0: Flow(0.0, k=0)})
    assert feed.fired == []
    feed.serve(300, {0: Flow(0.62)})
    assert feed.judge.views()[0].state == "ok"


def test_before_there_is_a_reference_a_bucket_is_learning() -> None:
    feed = Feed(CHAT)
    feed.history(0.5, {0: Flow(0.62)})
    assert feed.judge.views()[0].state == "learning"
    feed.history(1, {0: Flow(0.62)})
    assert feed.judge.views()[0].state == "ok"


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_a_single_request_raises_nothing(rate: float) -> None:
    feed = Feed(CHAT)
    feed.history(2, {0: Flow(0.5)})
    feed.serve(12 * HOUR, {0: Flow(rate, sequences=1, steps=200, spread=0.0)}, same=True)
    assert feed.alerts == {}


def test_an_alert_ends_when_two_windows_in_a_row_are_well_and_a_second_fall_is_another_alert() -> None:
    feed = Feed(CHAT)
    feed.history(2, {0: Flow(0.70)})
    feed.serve(2 * HOUR, {0: Flow(0.61)})
    feed.serve(2 * HOUR, {0: Flow(0.665)})
    assert feed.firing, "3.5 points below is not yet well"
    mended = feed.now
    feed.serve(2 * HOUR, {0: Flow(0.69)})
    (alert,) = feed.fired
    assert (alert.state, alert.ended) == ("resolved", mended + 600)
    feed.serve(2 * HOUR, {0: Flow(0.61)})
    assert [one.state for one in feed.fired] == ["resolved", "firing"]


def test_while_an_alert_fires_the_baseline_learns_nothing_and_does_not_age() -> None:
    feed = Feed(CHAT)
    feed.history(3, {0: Flow(0.70)})
    feed.history(20, {0: Flow(0.60)})
    (alert,) = feed.firing
    assert alert.evidence["reference"] == pytest.approx(0.70, abs=1e-3)
    feed.serve(DAY, {0: Flow(0.70)})
    assert feed.firing == []
    assert feed.judge.views()[0].baseline == pytest.approx(0.70, abs=2e-3)


def test_an_accepted_level_is_the_new_reference_at_once() -> None:
    feed = Feed(CHAT)
    feed.history(3, {0: Flow(0.70)})
    feed.serve(2 * HOUR, {0: Flow(0.60)})
    (alert,) = feed.firing
    assert feed.judge.accept_alert(alert.id, feed.now)
    feed.collect()
    (alert,) = feed.fired
    assert (alert.state, alert.ended, alert.causes[-1].kind) == ("resolved", feed.now, "accepted")
    feed.history(2, {0: Flow(0.60)})
    assert feed.firing == []
    feed.serve(2 * HOUR, {0: Flow(0.51)})
    (again,) = feed.firing
    assert again.evidence["reference"] == pytest.approx(0.60, abs=1e-3)


def test_a_level_can_be_accepted_without_an_alert_and_not_of_a_bucket_that_nobody_knows() -> None:
    feed = Feed(CHAT)
    assert not feed.judge.accept_level("e0", key(), T0)
    feed.serve(2 * HOUR, {0: Flow(0.70)})
    assert feed.judge.accept_level("e0", key(), feed.now)
    feed.serve(600, {0: Flow(0.62, sequences=200)})
    assert [alert.kind for alert in feed.fired] == ["drift"], "it need not grow old for a day"


def test_an_alert_of_a_bucket_without_traffic_ends_after_a_day() -> None:
    feed = Feed(CHAT)
    feed.history(2, {0: Flow(0.70)})
    feed.serve(HOUR, {0: Flow(0.50)})
    last = feed.now - 300 + 10
    feed.skip(3 * DAY)
    (alert,) = feed.fired
    assert (alert.state, alert.ended, alert.causes[-1].kind) == ("resolved", last + DAY, "gone")


def test_the_same_sequences_in_the_next_window_confirm_nothing_for_an_hour() -> None:
    feed = Feed(CHAT)
    feed.history(2, {0: Flow(0.70)})
    fell = feed.now
    feed.serve(2 * HOUR, {0: Flow(0.61)}, same=True)
    (alert,) = feed.fired
    assert alert.confirmed == fell + 300 + HOUR


def test_alerts_are_acknowledged_and_snoozed_and_go_on() -> None:
    feed = Feed(CHAT)
    feed.history(2, {0: Flow(0.70)})
    feed.serve(HOUR, {0: Flow(0.50)})
    (alert,) = feed.firing
    feed.judge.acknowledge(alert.id, "ada", feed.now)
    feed.judge.snooze(alert.id, feed.now + HOUR)
    feed.collect()
    (alert,) = feed.firing
    assert (alert.acknowledged, alert.snoozed_until) == ("ada", feed.now + HOUR)
    with pytest.raises(LookupError, match="no alert 77"):
        feed.judge.snooze(77, feed.now)


def test_each_bucket_has_at_most_one_acceptance_alert_at_a_time() -> None:
    feed = Feed(CHAT)
    feed.history(2, {0: Flow(0.80)})
    for rate in (0.7, 0.5, 0.8, 0.4, 0.6, 0.3, 0.8, 0.2):
        feed.serve(HOUR, {0: Flow(rate)})
    for one, other in pairwise(feed.fired):
        assert one.ended is not None
        assert one.ended <= other.pending_since


def test_the_end_of_a_trace_ends_its_windows() -> None:
    feed = Feed(CHAT)
    feed.history(2, {0: Flow(0.60, spread=0.2)})
    feed.serve(1.5 * HOUR, {0: Flow(0.53, spread=0.2)})
    assert feed.fired == [], "an hour and a half hold one whole hour"
    feed.judge.finish(feed.now)
    feed.collect()
    assert [alert.kind for alert in feed.fired] == ["drift"]
