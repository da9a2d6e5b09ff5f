"""When something is told and when not: transitions of alerts, the limit of a channel, and the words."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace

from console.app.notices.terminal import notification
from console.feed.messages import AlertView
from console.notices.limiter import SPAN_SECONDS, Limiter, Message
from console.notices.watch import AlertWatch, Notice
from console.notices.words import LONGEST, counts, lines, one_line

T0 = 1_790_000_000.0
DRIFT = AlertView(kind="drift", severity="warn", state="firing", text="chat fell", started=T0, id=7)
DOWN = AlertView(
    kind="engine_down", severity="critical", state="firing", text="engine e0 is down", started=T0, cause="down e0"
)
HOSTILE = "\x1b]52;c;ZXZpbA==\x07\x9b31m\nhttps://evil.example/\u202ex\ud800"


def told(watch: AlertWatch, *alerts: AlertView, now: float = T0) -> list[tuple[str, str]]:
    return [(notice.what, notice.text) for notice in watch.see(alerts, now)]


def test_an_alert_is_told_once_when_it_begins_gets_graver_and_is_over() -> None:
    watch = AlertWatch()
    worse = replace(DRIFT, severity="critical", kind="shift")
    assert told(watch, replace(DRIFT, state="pending")) == []
    assert told(watch, DRIFT) == [("fires", "chat fell")]
    assert told(watch, DRIFT) == []
    assert told(watch, worse) == [("graver", "chat fell")]
    assert told(watch, DRIFT) == told(watch, worse) == [], "no worse than it was"
    assert told(watch) == [("over", "chat fell")]
    assert told(watch) == []


def test_facts_of_one_moment_are_told_apart_and_one_that_comes_back_is_another() -> None:
    watch = AlertWatch()
    other = replace(DOWN, text="engine e1 is down", cause="down e1")
    assert len(told(watch, DOWN, other)) == 2
    assert told(watch, other, replace(DOWN, state="resolved", ended=T0 + 9)) == [("over", DOWN.text)]
    assert told(watch, other, replace(DOWN, text="again", started=T0 + 60)) == [("fires", "again")]
    assert told(watch, replace(other, text="in other words"), replace(DOWN, started=T0 + 60)) == []


def test_what_is_acknowledged_or_asleep_is_quiet_and_told_anew_when_it_wakes() -> None:
    watch = AlertWatch()
    asleep = replace(DRIFT, snoozed_until=T0 + 60)
    assert told(watch, asleep) == []
    assert told(watch, asleep, now=T0 + 61) == [("fires", "chat fell")]
    assert told(watch, replace(DRIFT, acknowledged="ada")) == []
    assert told(watch) == [], "whoever acknowledged it looks after its end"


# The limit


def notice(number: int, severity: Any = "warn", what: Any = "fires") -> Notice:
    return Notice(what, severity, str(number))


@settings(max_examples=60, stateful_step_count=40, deadline=None)
class Flooded(RuleBasedStateMachine):
    """Whatever comes and however time goes."""

    def __init__(self) -> None:
        super().__init__()
        self.limiter = Limiter(3, gather=1.0, room=5)
        self.now = T0
        self.number = 0
        self.came: Counter[bool] = Counter()
        self.told: Counter[bool] = Counter()
        self.sent: list[float] = []

    @rule(seconds=st.sampled_from([0.0, 0.2, 1.0, 7.0, 59.0, 61.0, 4000.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(severities=st.lists(st.sampled_from(["info", "warn", "critical"]), max_size=8))
    def more_comes(self, severities: list[str]) -> None:
        for severity in severities:
            self.number += 1
            self.came[severity == "critical"] += 1
            self.limiter.add([notice(self.number, severity)], self.now)

    @rule(lost=st.booleans())
    def it_is_sent_or_lost(self, lost: bool) -> None:
        message = self.limiter.due(self.now)
        if message is None:
            return
        self.sent.append(self.now)
        assert message.notices
        assert message.held_back <= len(message.notices)
        if lost:
            self.limiter.give_up(message.notices, more=message.left_out, more_critical=message.left_out_critical)
            return
        for one in message.notices:
            self.told[one.severity == "critical"] += 1
        self.told[True] += message.left_out_critical
        self.told[False] += message.left_out - message.left_out_critical

    @invariant()
    def never_more_than_the_limit(self) -> None:
        assert all(self.sent[index + 3] - self.sent[index] >= SPAN_SECONDS for index in range(len(self.sent) - 3))

    @invariant()
    def bounded(self) -> None:
        assert self.limiter.waiting <= 5

    def teardown(self) -> None:
        for _ in range(10):
            self.now += 61.0
            self.limiter.add([notice(0, "info")], self.now)
            self.came[False] += 1
            self.now += 1.0
            self.it_is_sent_or_lost(False)
        assert self.told == self.came, "all of it was told, or counted"


TestFlooded = Flooded.TestCase


def test_a_burst_is_one_message_the_gravest_first_and_no_critical_one_gives_way() -> None:
    limiter = Limiter(2, room=3)
    limiter.add([notice(1, "critical"), notice(2), notice(3, "info"), notice(4, what="over"), notice(5)], T0)
    assert limiter.due(T0 + 0.5) is None, "what happens together is told together"
    message = limiter.due(T0 + 1)
    assert message is not None
    assert [one.text for one in message.notices] == ["1", "2", "5"]
    assert (message.left_out, message.left_out_critical) == (2, 0)
    assert limiter.due(T0 + 2) is None


def test_what_the_limit_holds_back_comes_later_and_says_so() -> None:
    limiter = Limiter(1)
    for second in (0, 10, 20):
        limiter.add([notice(second)], T0 + second)
        limiter.due(T0 + second + 1)
    message = limiter.due(T0 + 61)
    assert message is not None
    assert ([one.text for one in message.notices], message.held_back) == (["10", "20"], 2)
    assert "2 of them held back" in one_line(message)


def test_an_alert_that_came_and_went_while_it_waited_is_told_once_and_as_grave_as_it_was() -> None:
    watch, limiter = AlertWatch(), Limiter(1)
    for alerts in ([DRIFT, DOWN], [replace(DRIFT, severity="critical"), DOWN], [DOWN]):
        limiter.add(watch.see(alerts, T0), T0)
    message = limiter.due(T0 + 1)
    assert message is not None
    assert [(one.what, one.severity) for one in message.notices] == [("fires", "critical"), ("passed", "critical")]
    assert "✓ came and went: chat fell" in lines(message)
    ended = message.notices[1].alert
    assert ended is not None
    assert (ended.state, ended.ended) == ("resolved", T0)


def test_a_clock_that_is_set_back_silences_nobody() -> None:
    limiter = Limiter(1)
    limiter.add([notice(1)], T0)
    assert limiter.due(T0 + 1) is not None
    limiter.add([notice(2)], T0 + 2)
    assert limiter.due(T0 - 86_400) is None
    assert limiter.due(T0 - 86_400 + 61) is not None


# The words


def test_one_is_told_with_its_sentence_and_many_are_counted() -> None:
    notices = [Notice("fires", "critical", f"engine e{number} is down", DOWN) for number in range(4)]
    assert lines(Message(notices[:1])) == ["■ engine e0 is down"]
    many = [*notices, Notice("over", "warn", "chat fell", DRIFT), Notice("done", "info", "ada@pts/3: cap none → 2")]
    assert counts(many) == "5 alerts (4 critical, 1 over) and 1 act of others"
    assert lines(Message(many, left_out=3, left_out_critical=1))[-2:] == [
        "and 3 more", "(3 more could not be told, 1 of them critical: the Alerts screen has all)",
    ]  # fmt: skip


@pytest.mark.parametrize("form", ["osc9", "osc777"])
@pytest.mark.parametrize("tmux", [False, True], ids=["bare", "tmux"])
def test_nothing_hostile_gets_out_of_a_line_nor_of_its_sequence(form: Any, tmux: bool) -> None:
    message = Message([Notice("fires", "critical", HOSTILE * 50, DOWN)])
    (line,) = lines(message)
    assert len(line) <= LONGEST + 2
    assert line.isprintable()
    assert "://" not in line
    sequence = notification(HOSTILE * 50, form, tmux=tmux)
    begin, end = ("\x1bPtmux;\x1b\x1b]", "\x07\x1b\\") if tmux else ("\x1b]", "\x07")
    assert sequence.startswith(begin)
    assert sequence.endswith(end)
    inside = sequence[len(begin) : -len(end)]
    assert inside.isprintable()
    inside.encode()
