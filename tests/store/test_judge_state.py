"""A judge that was stopped and restored behaves as one that never stopped; what it knows fits into JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.figures import BucketKey
from store.judge.alerts import Alert
from store.judge.inputs import ControlDone, EngineDown, EngineStarted, TelemetryLost
from store.judge.judge import Judge
from store.judge.settings import JudgeSettings
from tests.store.judge_random_traffic import T0 as START
from tests.store.judge_random_traffic import cells, falling
from tests.store.judge_traffic import DAY, HOUR, T0, VERSION_A, VERSION_B, Feed, Flow, Load, name

NAMES = {0: name(), 1: name("code"), 2: name(version=VERSION_B)}


def live_through(*, stops: bool) -> Feed:
    """Days in which all kinds of things happen. `stops`: every hour another judge goes on."""
    feed = Feed(NAMES)
    random = np.random.default_rng(5)
    feed.event(EngineStarted("e0", T0, VERSION_A, "c"))
    for hour in range(64):
        flows = {0: Flow(0.7 if hour < 40 else 0.58), 1: Flow(0.5 + random.normal(0, 0.01), resumed=0.1)}
        if hour == 30:
            feed.event(TelemetryLost("e0", feed.now, feed.now - 3, 5))
        if hour == 50:
            feed.event(EngineDown("e0", feed.now))
            feed.event(EngineStarted("e0", feed.now + 5, VERSION_B, "c"))
        if hour > 50:
            flows = {2: Flow(0.6), 1: Flow(0.5)}
        feed.event(ControlDone(feed.now, "adaptive", "k", "chat", f"{hour}"))
        feed.serve(HOUR / 2, flows)
        feed.run(HOUR / 2, {0: Load(1.9 if hour < 20 else 1.2), 1: Load(1.1, accepted=90)})
        feed.cell(flows)
        if stops:
            feed.judge = Judge.restore(json.loads(json.dumps(feed.judge.state())), feed.names)
    return feed


def test_a_restored_judge_goes_on_as_if_it_had_never_stopped() -> None:
    through, stopped = live_through(stops=False), live_through(stops=True)
    assert len(through.fired) >= 5
    assert stopped.alerts == through.alerts
    assert stopped.notes == through.notes
    assert stopped.judge.state() == through.judge.state()


def test_live_and_replay_agree_however_time_is_told() -> None:
    random = np.random.default_rng(3)
    served = list(cells(random, falling(random, 12, 12.0, 0.1), START, 52))
    names = {number: name(f"w{number}") for number in range(12)}
    replay, live = Judge(names), Judge(names)
    for cell in served:
        replay.sequences(cell)
        for second in range(0, 10, 3):
            live.advance(cell.ts + second)
        live.sequences(cell)
    for judge in (replay, live):
        judge.advance(START + 60 * HOUR)
    seen = live.changes()
    assert seen.alerts
    assert seen == replay.changes()


_ORDER = {"pending": 0, "firing": 1, "resolved": 2}


@settings(deadline=None, max_examples=12)
@given(st.lists(st.sampled_from([0.75, 0.7, 0.66, 0.6, 0.45, 0.2, None]), min_size=4, max_size=14), st.booleans())
def test_whatever_happens_alerts_go_forward_only_and_a_bucket_has_one_at_a_time(
    rates: list[float | None], accepting: bool
) -> None:
    feed = Feed(NAMES)
    feed.history(2, {0: Flow(0.7)})
    seen: dict[int, Alert] = {}
    for rate in rates:
        feed.serve(1500, {0: Flow(0.0, k=0) if rate is None else Flow(rate)})
        if accepting and rate == 0.2:
            feed.judge.accept_level("e0", BucketKey("chat", "0-512", "0", VERSION_A), feed.now)
            feed.collect()
        assert len(feed.judge.alerts()) <= 1
        for number, alert in feed.alerts.items():
            before = seen.get(number, alert)
            assert _ORDER[before.state] <= _ORDER[alert.state]
            assert (alert.ended is not None) == (alert.state == "resolved")
            assert before.started in (None, alert.started)
        seen = dict(feed.alerts)


def test_the_state_holds_in_a_store_that_numbers_buckets_and_sequences_otherwise() -> None:
    feed = Feed({0: name(), 1: name("code")})
    feed.serve(2 * DAY, {0: Flow(0.7), 1: Flow(0.4)})
    other = Feed({0: name("code"), 7: name()})
    other.judge = Judge.restore(feed.judge.state(), other.names, renumbered=True)
    other.now = feed.now
    other.serve(HOUR, {7: Flow(0.6), 0: Flow(0.4)})
    (alert,) = other.fired
    assert alert.bucket is not None
    assert alert.bucket.workload == "chat"


def test_what_is_not_such_a_state_is_refused_with_its_place() -> None:
    state: dict[str, Any] = Judge(NAMES).state()
    with pytest.raises(ValueError, match="version 99"):
        Judge.restore(state | {"version": 99}, NAMES)
    with pytest.raises(ValueError, match="acceptance"):
        Judge.restore(state | {"acceptance": {"key": 3}}, NAMES)


def test_a_bucket_that_is_gone_for_a_month_is_forgotten_and_memory_stays_bounded() -> None:
    names = {number: name(f"w{number}") for number in range(400)}
    feed = Feed(names, JudgeSettings(forget_seconds=DAY))
    sizes = []
    for day in range(8):
        feed.serve(HOUR, {50 * day + number: Flow(0.5, sequences=4) for number in range(50)})
        feed.skip(DAY - HOUR)
        sizes.append(len(json.dumps(feed.judge.state())))
    assert len(feed.judge.views()) <= 100
    assert max(sizes) < 1.3 * sizes[1]
