"""Parts of the station by themselves: the recorder under a full disk, judging executed K, alerts with an end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest

from console.feed.messages import EngineView, LossView
from console.feed.protocol import LogParams
from console.station.engines import MISMATCH_STEPS, KnownEngine
from console.station.events import AlertBoard, Condition, EventLog, RisingCount
from console.station.facts import Facts
from console.station.log_tail import last_words, read_chunk
from console.station.options import OptionsError, StationOptions, read_options, write_options
from console.station.phases import Phases
from console.station.recorder import Broken, Recorder, Remember, open_recorder
from console.station.step_intake import StepIntake
from engine.frames import WIRE_VERSION, Announcement, ArrivedSequence, FinishedSequence, Frame, PackedStep, pack_columns
from engine.policy import Base, PolicyState
from engine.records import ControlRecord, EngineRecord, PolicyMode
from store.database import Store, StoreError
from tests.console.station_harness import until

STATIC = PolicyMode(mode="static", k=4)


def record(**changes: Any) -> EngineRecord:
    fields: dict[str, Any] = {
        "engine": "e0", "ts": 1.0, "vllm": "0.32.0", "target": "t", "drafter": "ngram", "method": "ngram", "max_k": 4,
        "batch_k": "free", "max_num_seqs": 8, "data_parallel_size": 1, "device": "cpu", "async_scheduling": False,
        "configured": STATIC, "resolved": STATIC,
    }  # fmt: skip
    return EngineRecord(**(fields | changes))


def announcement(boot: str = "b1", **changes: Any) -> Announcement:
    return Announcement(WIRE_VERSION, record(**changes), boot, 0, [], 1, None, 0)


def frame(k: int, limit: str, *, rows: list[tuple[int, int]] | None = None, running: int = 1) -> Frame:
    """A step with executed K `k`; `rows`: (k_asked, limit code) of each sequence."""
    asked = rows or []
    columns = [[0] * len(asked) for _ in range(10)]
    columns[1] = [k_asked for k_asked, _ in asked]
    columns[2] = [code for _, code in asked]
    step = PackedStep(
        1, 5.0, 10.0, k, k, running, 0, 0, None, 1, limit, len(asked), pack_columns(columns)  # type: ignore[arg-type]
    )  # fmt: skip
    return Frame(WIRE_VERSION, "e0", "b1", 1, [], step, [])


def known_engine(**changes: Any) -> KnownEngine:
    known = KnownEngine("e0", owned=True)
    known.meet("b1")
    known.take_announcement(announcement(**changes), 1.0)
    return known


def view(**changes: Any) -> EngineView:
    return EngineView(**({"engine": "e0", "owned": True, "state": "serving"} | changes))


# The recorder


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return open_recorder(tmp_path / "store.duckdb", lambda kind, text: None)


def test_a_store_that_cannot_be_written_is_loud_and_recovers_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.station.recorder.RETRY_SECONDS", 0.1)
    told: list[str] = []
    recorder = open_recorder(tmp_path / "store.duckdb", lambda kind, text: told.append(text))
    flush, full = recorder.ingest.flush, [True]

    def flush_to_full_disk() -> None:
        if full:
            raise StoreError("the store can't be written: No space left on device")
        flush()

    monkeypatch.setattr(recorder.ingest, "flush", flush_to_full_disk)
    recorder.start()
    recorder.put(ControlRecord(ts=1.0, actor="ann", action="mode", policy=9))
    until(lambda: recorder.error, "the error")
    assert "No space left" in str(recorder.error)
    assert len(told) == 1, "said once, however often it is tried"
    full.clear()
    until(lambda: recorder.error is None, "recording again")
    assert recorder.flush_and_wait()
    assert recorder.highest_policy() == 9, "what waited for the disk is there"
    recorder.stop()


def test_what_was_put_before_a_flush_is_in_the_store_after_it(recorder: Recorder) -> None:
    recorder.start()
    for version in range(1000):
        recorder.put(ControlRecord(ts=1.0, actor="ann", action="mode", policy=version))
    assert recorder.flush_and_wait()
    with recorder.reading() as connection:
        assert connection.execute("SELECT count(*) FROM controls").fetchall() == [(1000,)]
    recorder.stop()


def test_stopping_writes_what_is_still_queued(recorder: Recorder) -> None:
    recorder.start()
    recorder.put(Broken("no frame"))
    recorder.put(ControlRecord(ts=1.0, actor="ann", action="mode", policy=3))
    recorder.stop()
    assert recorder.ingest.counts.broken_messages == 1
    with Store.open(recorder.store.path or "", read_only=True) as store:
        assert store.connection.execute("SELECT policy FROM controls").fetchall() == [(3,)]


def test_what_is_to_be_remembered_is_there_for_the_next_start(recorder: Recorder) -> None:
    recorder.start()
    for value in (b"old", b"new"):
        recorder.put(Remember("lanes", value))
    recorder.put(Remember("memory", b""))
    recorder.stop()
    again = open_recorder(recorder.store.path or Path(), lambda kind, text: None)
    assert [again.kept(name) for name in ("lanes", "memory", "never kept")] == [b"new", b"", None]
    again.store.close()


def test_what_could_not_be_kept_is_tried_again_and_recording_goes_on(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder.start()
    with monkeypatch.context() as broken:
        broken.setattr("console.station.keeping.keep", refuse)
        recorder.put(Remember("lanes", b"old"))
        recorder.put(ControlRecord(ts=1.0, actor="ann", action="mode", policy=7))
        assert recorder.flush_and_wait()
    assert (recorder.highest_policy(), recorder.kept("lanes"), recorder.error) == (7, None, None)
    recorder.put(Remember("lanes", b"new"))
    recorder.flush_and_wait()
    assert recorder.kept("lanes") == b"new"
    recorder.stop()


def refuse(*_: object) -> None:
    raise duckdb.IOException("No space left on device")


# Executed against configured


def test_a_lower_k_with_a_term_that_explains_it_is_told_and_is_no_mismatch() -> None:
    known = known_engine()
    for _ in range(MISMATCH_STEPS + 5):
        known.take_frame(frame(2, "cap"), PolicyState(version=1, policy=STATIC, cap=2), 2.0)
    assert known.mismatch == "the operator's cap is 2"
    assert known.mismatch_steps == 0


def test_a_k_that_nothing_explains_is_a_mismatch_after_twenty_steps() -> None:
    known = known_engine()
    state = PolicyState(version=1, policy=STATIC)
    for _ in range(MISMATCH_STEPS):
        known.take_frame(frame(1, "static"), state, 2.0)
    facts = Facts()
    assert facts.conditions([view()], {"e0": known}, None, LossView(), None, 1.0) == []
    known.take_frame(frame(1, "static"), state, 2.0)
    (condition,) = facts.conditions([view()], {"e0": known}, None, LossView(), None, 1.0)
    assert condition.kind == "policy_mismatch"
    assert "K 1 where 4 is configured" in condition.text
    known.take_frame(frame(4, "static"), state, 2.0)
    assert known.mismatch is None


def test_where_the_batch_k_cannot_move_the_largest_k_asked_is_what_executes() -> None:
    known = known_engine(batch_k="fixed")
    known.take_frame(frame(4, "static", rows=[(1, 9), (2, 6)]), None, 2.0)
    assert known.executed is not None
    assert (known.executed.k, known.executed.limit) == (2, "cap")


def test_a_schedule_is_looked_up_at_the_number_of_scheduled_sequences() -> None:
    known = known_engine()
    state = PolicyState(version=1, policy=PolicyMode(mode="schedule", schedule=[(1, 4, 4), (5, 32, 1)]))
    known.take_frame(frame(1, "schedule", running=5), state, 2.0)
    assert known.mismatch is None
    known.take_frame(frame(1, "schedule", running=4), state, 2.0)
    assert known.mismatch is not None


def test_adaptive_without_a_schedule_is_expected_at_the_engines_maximum() -> None:
    known = known_engine()
    state = PolicyState(version=1, policy=PolicyMode(mode="adaptive", act=True))
    known.take_frame(frame(4, "max"), state, 2.0)
    assert known.mismatch is None
    known.take_frame(frame(1, "adaptive"), state, 2.0)
    assert known.mismatch == "adaptive lowered it"


def test_an_engine_that_took_back_an_unconfirmed_raise_is_judged_by_what_holds_again() -> None:
    known = known_engine()
    state = PolicyState(version=1, policy=STATIC, confirm_by=5.5, revert=Base(policy=PolicyMode(mode="static", k=1)))
    known.take_frame(frame(1, "static"), state, 5.0)
    assert known.mismatch is not None
    known.take_frame(frame(1, "static"), msgspec.structs.replace(state, confirm_by=0.5), 5.0)
    assert known.mismatch is None
    known.take_announcement(msgspec.structs.replace(announcement(), reverted=2.0, orphaned=50.0), 2.0)
    assert (known.reverted, known.orphaned) == (2.0, 50.0)
    known.meet("b2")
    assert (known.reverted, known.orphaned) == (None, None)


SCHEDULE = PolicyMode(mode="schedule", schedule=[(1, 4, 4), (5, 32, 1)])


def told(known: KnownEngine, now: float = 1.0, **changes: Any) -> list[str]:
    return [one.text for one in Facts().conditions([view(**changes)], {"e0": known}, None, LossView(), None, now)]


def test_a_schedule_that_the_engine_dropped_at_its_start_is_told_with_the_engines_own_reason() -> None:
    resolved = PolicyMode(mode="static", k=4, reason="data parallelism")
    known = known_engine(configured=SCHEDULE, resolved=resolved)
    assert known.resolved(SCHEDULE) == resolved
    assert told(known, configured=SCHEDULE, max_k=4) == ["engine e0 dropped the schedule policy: data parallelism"]


def test_what_is_resolved_follows_the_policy_in_force_and_not_the_launch() -> None:
    ranks = known_engine(data_parallel_size=2)
    resolved = ranks.resolved(SCHEDULE)
    assert resolved is not None
    assert (resolved.mode, resolved.k) == ("static", 4)
    (text,) = told(ranks, configured=SCHEDULE, max_k=4)
    assert "dropped the schedule policy: data parallel size 2" in text
    (text,) = told(known_engine(), configured=PolicyMode(mode="static", k=9), max_k=4)
    assert "lowered the policy: K 9 is above" in text
    for mode in (STATIC, PolicyMode(mode="off"), PolicyMode(mode="adaptive", act=True)):
        assert told(ranks, configured=mode, max_k=4) == [], "it executes that whatever it does with schedules"
    without_drafter = known_engine(max_k=0, method="none")
    assert told(without_drafter, configured=STATIC, max_k=0) == []


def test_with_ranks_the_k_is_expected_that_was_asked_for_a_step_earlier() -> None:
    known = known_engine(data_parallel_size=2)
    state = PolicyState(version=1, policy=SCHEDULE)
    known.take_frame(frame(4, "max", rows=[(4, 8)], running=4), state, 2.0)
    known.take_frame(frame(4, "max", rows=[(4, 8)], running=5), state, 2.0)
    assert known.mismatch is None
    known.take_frame(frame(4, "max", rows=[(1, 8)], running=5), state, 2.0)
    assert known.mismatch is None


def test_an_engine_that_goes_on_hearing_nothing_of_a_station_is_told() -> None:
    known = known_engine()
    alone = msgspec.structs.replace(announcement(), orphaned=50.0)
    known.take_announcement(alone, 100.0)
    assert told(known, 105.0) == [], "it may have said so before it heard of this station"
    known.take_announcement(alone, 110.0)
    (text,) = told(known, 116.0)
    assert "does not hear this station" in text
    known.take_announcement(announcement(), 117.0)
    assert told(known, 140.0) == []


def test_another_boot_tells_when_the_one_before_was_last_heard_of() -> None:
    known = known_engine()
    assert known.meet("b1") is None
    assert known.meet("b2") == 1.0
    assert known.executed is None


def test_frames_that_waited_for_a_station_do_not_take_back_what_is_applied() -> None:
    known = known_engine()
    known.take_announcement(msgspec.structs.replace(announcement(), policy=7), 2.0)
    known.take_frame(frame(4, "static"), None, 2.0)
    assert known.policy_applied == 7
    known.meet("b2")
    assert known.policy_applied is None


# Alerts


def test_an_alert_keeps_its_beginning_and_gets_an_end() -> None:
    board = AlertBoard()
    down = Condition("gateway", "gateway_down", "critical", "down")
    (alert,) = board.update([down], 10.0)
    (alert,) = board.update([down._replace(text="still down")], 20.0)
    assert (alert.state, alert.started, alert.text) == ("firing", 10.0, "still down")
    (alert,) = board.update([], 30.0)
    assert (alert.state, alert.ended) == ("resolved", 30.0)
    assert board.update([], 300.0) == []


def test_a_loss_is_news_for_a_while_and_not_for_ever() -> None:
    lost = RisingCount(news_seconds=60)
    assert lost.update(5, 0.0) == 0, "what was lost before is no news"
    assert lost.update(8, 10.0) == 3
    assert lost.update(9, 50.0) == 4
    assert lost.update(9, 120.0) == 0
    assert lost.update(10, 130.0) == 1


def test_events_keep_the_newest() -> None:
    events = EventLog()
    for number in range(500):
        events.add(float(number), "kind", str(number))
    assert events.since()[-1].text == "499"
    assert [event.text for event in events.since(498.0)] == ["498", "499"]


# Small things


def test_phases_have_one_that_runs_and_one_that_failed() -> None:
    phases = Phases()
    phases.reset(["model", "process"])
    phases.begin("model")
    phases.finish("model")
    phases.fail("out of memory")
    assert [(phase.name, phase.state) for phase in phases.view()] == [("model", "done"), ("process", "failed")]
    assert phases.view()[1].detail == "out of memory"


def test_a_log_is_read_from_its_end_and_on(tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    assert read_chunk(path, LogParams()).text == ""
    path.write_text("one\ntwo\nValueError: no\nbye\n")
    first = read_chunk(path, LogParams(offset=-4))
    assert first.text == "bye\n"
    assert read_chunk(path, LogParams(offset=first.offset)).text == ""
    assert last_words(path).startswith("ValueError: no")


def test_options_come_back_as_they_were_written_and_only_their_owner_reads_them(tmp_path: Path) -> None:
    options = StationOptions(store="/x.duckdb", api_key="secret", engine_args=["--dtype=float32"])
    path = tmp_path / "options.json"
    write_options(options, path)
    assert read_options(path) == options
    assert path.stat().st_mode & 0o077 == 0
    path.write_text("{")
    with pytest.raises(OptionsError, match=r"options\.json"):
        read_options(path)


def test_a_workload_whose_sequences_have_finished_runs_nothing_though_no_step_follows() -> None:
    intake = StepIntake()
    step = frame(4, "static", rows=[(4, 9)]).step
    arrived = [ArrivedSequence(0, "r", 1.0, "code", 0.0, 9, False, "speculative")]
    intake.take(Frame(WIRE_VERSION, "e0", "b1", 1, arrived, step, []))
    assert intake.running["code"] == 1
    intake.take(Frame(WIRE_VERSION, "e0", "b1", 2, [], None, [FinishedSequence(0, 6.0, "abort", 3)]))
    assert intake.running["code"] == 0
