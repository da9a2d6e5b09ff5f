"""The replay's clock: it stays on the record and in its loop, and nothing but a seek makes it jump."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from console.replaying.clock import Clock, ClockError

MOMENTS = st.floats(1_790_000_000.0, 1_790_010_000.0)
ANY_MOMENTS = MOMENTS | st.sampled_from([0.0, -1e18, 1e18])
SPEEDS = st.sampled_from([0.1, 0.5, 1.0, 50.0, 1000.0])


class Machine(RuleBasedStateMachine):
    @initialize(start=MOMENTS, length=st.floats(0, 7200), complete=st.booleans())
    def begin(self, start: float, length: float, complete: bool) -> None:
        self.wall = 100.0
        self.clock = Clock(start, start + length, complete=complete)

    @rule(passed=st.floats(0, 30), backward=st.booleans())
    def time_passes(self, passed: float, backward: bool) -> None:
        before, was_playing = self.clock.ts, self.clock.playing
        self.wall += -passed if backward else passed
        self.clock.tick(self.wall)
        if not was_playing or backward:
            assert self.clock.ts == before
        elif self.clock.loop is None:
            assert self.clock.ts >= before
            assert self.clock.playing or self.clock.ts == self.clock.end, "it stops by itself only at the end"

    @rule()
    def play(self) -> None:
        before, stopped_at_end = self.clock.ts, self.clock.ts == self.clock.end and self.clock.complete
        self.clock.play(self.wall)
        again = stopped_at_end and self.clock.loop is None
        assert self.clock.ts == (self.clock.start if again else before)
        assert self.clock.playing

    @rule()
    def pause(self) -> None:
        before = self.clock.ts
        self.clock.pause(self.wall)
        assert self.clock.ts == before
        assert not self.clock.playing

    @rule(speed=SPEEDS | st.none(), passed=st.floats(0, 5))
    def a_change_of_speed_counts_from_then_on(self, speed: float | None, passed: float) -> None:
        self.wall += passed
        expected = self.clock.tick(self.wall)
        self.clock.set_speed(speed, self.wall)
        assert self.clock.ts == expected
        assert self.clock.speed == speed

    @rule(ts=ANY_MOMENTS, passed=st.floats(0, 60))
    def what_was_sought_and_paused_stays(self, ts: float, passed: float) -> None:
        self.clock.seek(ts, self.wall)
        self.clock.pause(self.wall)
        assert self.clock.ts == min(max(ts, self.clock.start), self.clock.end)
        self.wall += passed
        assert self.clock.tick(self.wall) == min(max(ts, self.clock.start), self.clock.end)

    @rule(first=MOMENTS, last=MOMENTS)
    def set_loop(self, first: float, last: float) -> None:
        before = self.clock.loop
        try:
            self.clock.set_loop((first, last), self.wall)
        except ClockError:
            assert self.clock.loop == before
            assert max(first, self.clock.start) >= min(last, self.clock.end)

    @precondition(lambda self: self.clock.loop is not None)
    @rule(share=st.floats(0, 1), turns=st.floats(0, 5))
    def a_loop_is_never_left_by_playing(self, share: float, turns: float) -> None:
        first, last = loop = self.clock.loop
        self.clock.seek(first + share * (last - first), self.wall)
        self.clock.move(turns * (last - first))
        assert self.clock.loop == loop
        assert first <= self.clock.ts <= last

    @rule()
    def end_the_loop(self) -> None:
        before = self.clock.ts
        self.clock.set_loop(None, self.wall)
        assert self.clock.ts == before

    @precondition(lambda self: not self.clock.complete)
    @rule(more=st.floats(0, 600), complete=st.booleans())
    def more_is_taken_in(self, more: float, complete: bool) -> None:
        before, playing = self.clock.ts, self.clock.playing
        self.clock.extend(self.clock.end + more, complete=complete)
        assert (self.clock.ts, self.clock.playing) == (before, playing)

    @invariant()
    def it_stands_on_the_record(self) -> None:
        assert self.clock.start <= self.clock.ts <= self.clock.end

    @invariant()
    def it_stands_in_its_loop(self) -> None:
        if self.clock.loop is not None:
            assert self.clock.loop[0] <= self.clock.ts <= self.clock.loop[1]


Machine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
test_any_use_of_a_clock = Machine.TestCase


def test_a_clock_that_came_to_the_end_of_what_is_loaded_waits_there_and_goes_on() -> None:
    clock = Clock(0.0, 10.0, complete=False)
    clock.set_speed(10.0, 0.0)
    clock.play(0.0)
    assert clock.tick(5.0) == 10.0
    assert clock.playing
    clock.extend(100.0, complete=True)
    assert clock.tick(6.0) == 20.0, "what passed while it waited is not made up for"
    assert clock.tick(60.0) == 100.0
    assert not clock.playing


@pytest.mark.parametrize("speed", [0.0, -1.0, 0.01, 1001.0, float("nan")])
def test_a_speed_out_of_range_is_refused(speed: float) -> None:
    clock = Clock(0.0, 10.0)
    with pytest.raises(ClockError, match="speed"):
        clock.set_speed(speed, 0.0)
    assert clock.speed == 1.0
