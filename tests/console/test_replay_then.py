"""What a replay shows of a moment: the policy, the alerts and the marks as they stood then, never what came later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from console.feed.messages import ReplayMark
from console.feed.protocol import AlertsParams, ExportParams, HistoryParams, ReplayAct
from console.feed.server import FeedError
from console.replaying.acts import replay_act
from console.replaying.alerts_then import alerts_then
from console.replaying.marks import MARKS_A_KIND, neighbour, thinned
from console.replaying.opened import opened
from console.replaying.player import Player
from console.replaying.policy_then import PolicyHistory
from console.replaying.queries import alerts, export, policy_history
from engine.records import ControlRecord, GapRecord, PolicyMode, Record
from store.alerts import write_changes
from store.database import Store, StoreBusy
from store.ingest import Ingest
from store.judge.alerts import Alert, Cause, Changes
from store.trace import TraceWriter
from tests.store.builders import T0, engine, row, sequence, step

STATIC = {"mode": "static", "k": 4}
OFF = {"mode": "off"}


def control(ts: float, action: str, before: Any, after: Any, version: int | None, **more: Any) -> ControlRecord:
    return ControlRecord(T0 + ts, more.pop("actor", "operator"), action, more.pop("workload", None), before, after,
                         version, **more)  # fmt: skip


CONTROLS = [
    control(10, "mode", STATIC, OFF, 2),
    control(20, "cap", {"cap": None}, {"cap": 2}, 3),
    control(30, "lane", {}, {"lane": "vanilla"}, 4, workload="code"),
    control(40, "fallback", {}, {"fallback": True}, 5, workload="chat", actor="adaptive", why="chat brings nothing"),
    control(50, "mode", OFF, {"mode": "adaptive"}, 6, numbers={"confirm_by": T0 + 80}),
    control(60, "confirm", None, None, 7),
    control(70, "drill", None, {"anything": [1]}, None),
    control(80, "cap", {"cap": 2}, {"cap": "two"}, 8),
]


def held(ts: float) -> Any:
    return PolicyHistory(CONTROLS, PolicyMode(mode="static", k=4)).at(T0 + ts)


def test_the_policy_is_the_one_that_held_then() -> None:
    assert held(9).state is None, "nobody has set one yet"
    assert (held(10).state.policy.mode, held(10).state.version) == ("off", 2)
    assert (held(19).state.cap, held(20).state.cap) == (None, 2)
    lanes = {view.name: view.lane for view in held(45).workloads({"code": 1})}
    assert lanes == {"code": "vanilla", "chat": "speculative"}
    (chat, _) = held(55).workloads({})
    assert (chat.fallback, chat.since, chat.why) == (True, T0 + 40, "chat brings nothing")


def test_after_many_changes_the_policy_is_as_if_all_were_followed() -> None:
    many = [control(n, "cap", {"cap": n - 1}, {"cap": n}, n) for n in range(1, 1000)]
    history = PolicyHistory(many, PolicyMode(mode="off"))
    assert [history.at(T0 + n).state.cap for n in (1, 199, 200, 201, 600, 999, 5000)] == [
        1,
        199,
        200,
        201,
        600,
        999,
        999,
    ]


def test_a_raise_waits_to_be_confirmed_until_it_was() -> None:
    waiting = held(55).unconfirmed()
    assert (waiting.confirm_by, waiting.reverts_to.mode, waiting.cap) == (T0 + 80, "off", 2)
    assert held(60).unconfirmed() is None
    assert held(60).state.policy.mode == "adaptive"


def test_a_record_that_no_policy_can_follow_changes_nothing() -> None:
    assert held(90).state.cap == 2


def alert(number: int, pending: float, confirmed: float | None, ended: float | None, **more: Any) -> Alert:
    state: Any = "resolved" if ended is not None else "firing" if confirmed is not None else "pending"
    return Alert(id=number, kind="drift", severity="warn", engine="e0", bucket=None, state=state,
                 pending_since=T0 + pending, started=None if confirmed is None else T0 + pending,
                 confirmed=None if confirmed is None else T0 + confirmed,
                 ended=None if ended is None else T0 + ended,
                 evidence={"depth": 1, "fall_points": 9.0, "against": "baseline", "n": 40}, **more)  # fmt: skip


ALERTS = [
    alert(1, 100, 160, 300, causes=[Cause("version", "another version", T0 + 90), Cause("load", "load", T0 + 200)],
          acknowledged="eve", acknowledged_at=T0 + 250),
    alert(2, 120, None, 150),
    alert(3, 400, 460, None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("ts", "stood"),
    [(99, {}), (130, {1: "pending", 2: "pending"}), (155, {1: "pending"}), (160, {1: "firing"}), (300, {}),
     (999, {3: "firing"})],
)  # fmt: skip
def test_alerts_are_in_the_state_they_had(ts: float, stood: dict[int, str]) -> None:
    assert {one.id: one.state for one in alerts_then(ALERTS, T0 + ts)} == stood


def test_an_alert_knows_nothing_that_came_later() -> None:
    (then,) = alerts_then(ALERTS, T0 + 170)
    assert ([cause.kind for cause in then.causes], then.acknowledged, then.ended) == (["version"], None, None)
    (later,) = alerts_then(ALERTS, T0 + 260)
    assert ([cause.kind for cause in later.causes], later.acknowledged) == (["version", "load"], "eve")


MARKS = [ReplayMark(T0 + ts, kind) for ts, kind in ((1, "alert"), (2, "control"), (3, "alert"), (5, "alert"))]


@pytest.mark.parametrize(
    ("ts", "count", "found"), [(0, 1, 1), (1, 1, 3), (0, 3, 5), (0, 9, 5), (4, -1, 3), (3, -1, 1), (1, -1, None)]
)
def test_the_next_mark_is_the_next(ts: float, count: int, found: float | None) -> None:
    mark = neighbour(MARKS, "alert", T0 + ts, count)
    assert (None if mark is None else mark.ts - T0) == found


def test_marks_are_thinned_to_what_a_bar_can_tell_apart() -> None:
    many = [ReplayMark(T0 + n / 100, kind) for n in range(10_000) for kind in ("gap", "control")]
    kept = thinned(many, T0, T0 + 100)
    assert len(kept) == 2 * MARKS_A_KIND
    assert kept[0].ts == T0


def trace_of(folder: Path, records: list[Record], after: bytes = b"") -> Path:
    path = folder / "night.jsonl"
    with TraceWriter(path) as writer:
        for record in records:
            writer.write(record)
    path.write_bytes(path.read_bytes() + after)
    return path


RECORDS: list[Record] = [
    engine(),
    sequence("a"),
    *(step(number, [row("a")], T0 + number) for number in range(1, 31)),
    control(10, "mode", STATIC, OFF, 2),
    GapRecord("e0", T0 + 25, 0, since=T0 + 22.5, reason="engine restarted"),
]
RECORDS.sort(key=lambda record: record.ts)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECDECK_CACHE_DIR", str(tmp_path / "cache"))


def ready(player: Player) -> Player:
    loading = player.opened.loading
    if loading is not None:
        loading._thread.join(30)
        assert player.opened.complete
    player.more()
    player.take()
    return player


def test_a_trace_that_breaks_off_is_played_as_far_as_it_goes(tmp_path: Path) -> None:
    path = trace_of(tmp_path, RECORDS, b'{"type":"unheard-of"}\n{"type":"gap"}\n')
    with opened(path, None, lambda: None) as found:
        player = ready(Player(found))
        replay_act(player, ReplayAct(act="seek", share=1.0))
        shown = player.take()
        assert shown.replay is not None
        assert shown.ts == T0 + 30, "to the last record before the fault"
        assert "unknown type 'unheard-of'" in shown.replay.notes[-1]
        assert shown.alerts[0].kind == "trace_broken"
    assert not list((tmp_path / "cache").rglob("*.duckdb*"))


def test_the_picture_tells_the_policy_the_gap_and_the_history_of_its_moment(tmp_path: Path) -> None:
    with opened(trace_of(tmp_path, RECORDS), None, lambda: None) as found:
        player = ready(Player(found))
        replay_act(player, ReplayAct(act="seek", ts=T0 + 9.5))
        before = player.take()
        assert (before.policy, before.policy_version) == (PolicyMode(mode="static", k=4), 1)
        assert policy_history(player, HistoryParams()).entries == []
        replay_act(player, ReplayAct(act="speed", speed=1000.0))
        replay_act(player, ReplayAct(act="play"))
        assert not replay_act(player, ReplayAct(act="jump", kind="control")).playing, "it holds where one wants to look"
        there = player.take()
        assert (there.ts, there.policy, there.policy_version) == (T0 + 10, PolicyMode(mode="off"), 2)
        assert there.events[-1].text == "operator: mode static:4 → off, policy 2"
        (entry,) = policy_history(player, HistoryParams()).entries
        assert not entry.undoable
        replay_act(player, ReplayAct(act="jump", kind="gap"))
        replay_act(player, ReplayAct(act="seek", ts=T0 + 23))
        (dark,) = player.take().engines
        assert (dark.state, dark.detail, dark.running) == ("lost", "engine restarted", 0)


def test_as_fast_as_it_goes_it_comes_to_the_end_and_stops(tmp_path: Path) -> None:
    with opened(trace_of(tmp_path, RECORDS), None, lambda: None) as found:
        player = ready(Player(found))
        player._rows_at_once = 8
        replay_act(player, ReplayAct(act="speed", speed=None))
        replay_act(player, ReplayAct(act="play"))
        moments = [player.take().ts]
        while player.clock.playing:
            moments.append(player.take().ts)
        assert moments[0] == T0 + 4, "8 rows and steps"
        assert moments == sorted(set(moments))
        assert moments[-1] == T0 + 30


def test_a_store_is_played_as_it_was_judged_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "night.duckdb"
    with Store.open(path) as store:
        ingest = Ingest(store)
        for record in RECORDS:
            ingest.record(record)
        ingest.close()
        write_changes(store.connection, Changes([alert(7, 12, 18, None)], []))
        with pytest.raises(StoreBusy, match="already open"), opened(path, None, lambda: None):
            pass
    content = path.read_bytes()
    with opened(path, None, lambda: None) as found:
        player = ready(Player(found))
        replay_act(player, ReplayAct(act="jump"))
        shown = player.take()
        assert (shown.ts, [one.state for one in shown.alerts]) == (T0 + 18, ["firing"])
        assert [one.id for one in alerts(player, AlertsParams()).alerts] == [7]
        with pytest.raises(FeedError, match="must be an absolute path"):
            export(player, ExportParams(path="out.duckdb"))
    assert path.read_bytes() == content
