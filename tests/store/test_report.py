"""The report: its pools, its window, transitions, mismatches and notes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from engine.records import ControlRecord, EngineRecord, GapRecord, PolicyMode, Record
from store.ingest import Ingest
from store.report import ReportError, report
from tests.store.builders import T0, engine, reported, row, sequence, step, store_of, trace_of

TWO_BUCKETS: list[Record] = [
    engine(),
    sequence("a", "code"),
    sequence("b", "chat", temperature=0.8),
    *(step(n, [row("a", d=4, a=4), row("b", d=4, a=0)]) for n in range(1, 21)),
]


def static(k: int) -> PolicyMode:
    return PolicyMode(mode="static", k=k)


def mode_control(ts: float, after: dict[str, Any], policy: int | None = None) -> ControlRecord:
    return ControlRecord(ts, "operator", "mode", after=after, policy=policy)


def test_the_report_has_the_shape_that_scripts_rely_on() -> None:
    shown = msgspec.to_builtins(reported(TWO_BUCKETS))
    assert list(shown) == [
        "source", "window", "buckets", "total", "quarantined", "gaps", "frames_lost", "transitions", "mismatches",
        "notes",
    ]  # fmt: skip
    assert set(shown["buckets"][0]) >= {
        "workload", "context", "temperature", "model_version", "sequences", "steps", "decode_rows", "drafted",
        "accepted", "emitted", "alpha", "alpha_low", "alpha_high", "pooled_acceptance", "conditional_acceptance",
        "mean_acceptance_length", "committed_per_step", "waste_ratio", "drafted_share", "position_marginal",
        "position_conditional", "position_at_risk", "k_histogram", "drafted_histogram", "cause_histogram",
        "limit_histogram", "speedup", "speedup_low", "speedup_high", "speedup_state", "tokens_per_second", "window",
        "few", "state", "post_resume",
    }  # fmt: skip


def test_keys_that_are_not_asked_for_are_pooled_and_null() -> None:
    (all_in_one,) = reported(TWO_BUCKETS, by=[]).buckets
    assert (all_in_one.workload, all_in_one.alpha, all_in_one.sequences) == (None, 0.5, 2)
    by_workload = reported(TWO_BUCKETS, by=["workload"]).buckets
    assert [(bucket.workload, bucket.temperature) for bucket in by_workload] == [("chat", None), ("code", None)]
    (by_engine,) = reported(TWO_BUCKETS, by=["engine"]).buckets
    assert (by_engine.engine, by_engine.workload) == ("e0", None)


def test_a_sequence_that_crosses_contexts_is_one_sequence_of_the_pool() -> None:
    shown = reported(trace_of([row(context=500), row(context=600)]))
    assert [bucket.context for bucket in shown.buckets] == ["0-512", "512-2048"]
    assert shown.total is not None
    assert shown.total.sequences == 1


def test_the_window_is_recorded_time_and_can_be_cut_and_moved() -> None:
    shown = reported(TWO_BUCKETS)
    assert shown.window is not None
    assert (shown.window.start, shown.window.end) == pytest.approx((T0, T0 + 2.0), abs=1e-4)
    late = reported(TWO_BUCKETS, window=0.55)
    assert late.window is not None
    assert (late.window.start, late.window.end) == pytest.approx((T0 + 1.45, T0 + 2.0), abs=1e-4)
    assert late.total is not None
    assert late.total.decode_rows == 2 * 6
    early = reported(TWO_BUCKETS, window=0.55, at=T0 + 1.0)
    assert early.window is not None
    assert early.window.end == pytest.approx(T0 + 1.0, abs=1e-4)
    nothing = reported(TWO_BUCKETS, at=T0 - 50)
    assert (nothing.window, nothing.total, nothing.buckets) == (None, None, [])


@pytest.mark.parametrize("arguments", [{"by": ["colour"]}, {"window": 0.0}, {"window": -3.0}])
def test_a_question_without_an_answer_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ReportError):
        reported(TWO_BUCKETS, **arguments)


def test_prefill_rows_count_in_tokens_only() -> None:
    shown = reported(trace_of([row(d=0, a=0, e=1, k=4, cause="prefill"), row(d=4, a=2)]))
    (bucket,) = shown.buckets
    assert (bucket.decode_rows, bucket.emitted, bucket.committed_per_step) == (1, 4, 3.0)
    assert bucket.cause_histogram == {"full": 1}
    only_prefill = reported(trace_of([row(d=0, a=0, e=1, k=4, cause="prefill")])).buckets[0]
    assert (only_prefill.speedup_state, only_prefill.speedup) == ("absent", None)


def test_absent_figures_are_null_in_json_and_never_nan() -> None:
    text = msgspec.json.encode(reported(trace_of([row(d=0, a=0)])))
    assert b"NaN" not in text
    assert b'"alpha":null' in text


def test_a_difference_of_twenty_steps_is_a_delay_and_of_more_a_mismatch() -> None:
    def steps_at(k: int, numbers: range) -> list[Record]:
        return [step(n, [], k_draft=k, limit_draft="static") for n in numbers]

    records: list[Record] = [
        engine(),
        *steps_at(4, range(1, 10)),
        *steps_at(2, range(10, 30)),
        *steps_at(4, range(30, 40)),
    ]
    assert reported(records).mismatches == []
    records = [engine(), *steps_at(4, range(1, 10)), *steps_at(2, range(10, 31)), *steps_at(4, range(31, 40))]
    (mismatch,) = reported(records).mismatches
    assert (mismatch.executed, mismatch.reason) == (2, None)
    assert (mismatch.started, mismatch.ended) == pytest.approx((T0 + 1.0, T0 + 3.0), abs=1e-4)


@pytest.mark.parametrize("limit", ["hint", "lane", "operator", "fallback", "probe", "cap", "adaptive"])
def test_a_policy_term_that_lowers_k_explains_the_difference(limit: str) -> None:
    records = [engine(), *(step(n, [], k_draft=1, limit_draft=limit) for n in range(1, 60))]
    assert reported(records).mismatches == []


def test_a_mode_that_the_operator_set_is_what_is_configured_from_then_on() -> None:
    for after in ({"mode": "off"}, {"policy": {"mode": "off"}, "version": 2}):
        records: list[Record] = [engine(), *(step(n, []) for n in range(1, 30)), mode_control(T0 + 2.95, after)]
        records += [step(n, [], k_draft=0, limit_draft="off") for n in range(30, 60)]
        shown = reported(records)
        assert shown.mismatches == []
        assert [(t.from_k, t.to_k, t.limit) for t in shown.transitions] == [(4, 0, "off")]
    ignored = [engine(), *(step(n, []) for n in range(1, 30)), mode_control(T0 + 0.05, {"mode": "off"})]
    (mismatch,) = reported(ignored).mismatches
    assert (mismatch.executed, mismatch.configured, mismatch.ended) == (4, {"mode": "off"}, None)


def test_a_k_above_the_maximum_is_shown_as_clamped() -> None:
    records = [engine(max_k=4), mode_control(T0, {"mode": "static", "k": 9}), *(step(n, []) for n in range(1, 5))]
    (mismatch,) = reported(records).mismatches
    assert (mismatch.executed, mismatch.configured["k"], mismatch.resolved["k"]) == (4, 9, 4)
    assert mismatch.reason == "K 9 is above the engine's start-up maximum 4"


def test_a_schedule_set_on_data_parallel_ranks_is_dropped_with_the_reason() -> None:
    schedule = {"mode": "schedule", "schedule": [(1, 4, 4), (5, 32, 1)]}
    records: list[Record] = [engine(max_k=4, data_parallel_size=2, batch_k="fixed"), sequence("a")]
    records += [step(n, [row("a", d=4, a=1)], running=2) for n in range(1, 4)]
    records += [mode_control(T0 + 0.35, schedule)]
    records += [step(4, [row("a", d=4, a=1)], running=8)]  # asked for when 2 were running
    records += [step(n, [row("a", d=1, a=1, limit="schedule")], running=8) for n in range(5, 40)]
    (mismatch,) = reported(records).mismatches
    assert (mismatch.configured, mismatch.resolved["mode"], mismatch.resolved["k"]) == (schedule, "static", 4)
    assert mismatch.reason == "data parallel size 2: vLLM drops the schedule and drafts its maximum"
    assert mismatch.ended is None


def test_adaptive_on_data_parallel_ranks_is_executed() -> None:
    records: list[Record] = [engine(max_k=4, data_parallel_size=2), sequence("a")]
    records += [mode_control(T0 + 0.05, {"mode": "adaptive", "act": True})]
    records += [step(n, [row("a", d=4 - n % 3, a=1, limit="adaptive" if n % 3 else "max")]) for n in range(1, 90)]
    assert reported(records).mismatches == []


@pytest.mark.parametrize(("between", "inherited"), [(3, True), (4, False)], ids=["known", "another station"])
def test_a_restarted_engine_is_held_to_the_mode_that_the_station_still_sends(between: int, inherited: bool) -> None:
    """Versions 2 and `between` were made here; of another one nobody knows which mode it had."""
    records: list[Record] = [engine(boot="b1"), step(1, []), mode_control(T0 + 0.15, {"mode": "off"}, policy=2)]
    records += [ControlRecord(T0 + 0.2, "operator", "cap", None, {"cap": None}, {"cap": 2}, between)]
    records += [engine(ts=T0 + 10, boot="b2"), step(101, [], policy=0)]
    records += [step(n, [], k_draft=0, limit_draft="off", policy=between) for n in range(102, 140)]
    found = reported(records).mismatches
    assert [one.configured["mode"] for one in found] == ([] if inherited else ["static"])


def test_an_engine_without_a_drafter_can_be_configured_to_nothing_else() -> None:
    plain = static(0)
    records = [
        engine(max_k=0, method="none", configured=plain, resolved=plain),
        mode_control(T0, {"mode": "static", "k": 9}),
    ]
    records += [step(n, [], k_draft=0, limit_draft="max") for n in range(1, 40)]
    assert reported(records).mismatches == []


def test_where_the_batch_k_is_fixed_executed_k_is_the_largest_that_was_asked_for() -> None:
    records: list[Record] = [
        engine(batch_k="fixed", configured=static(2), resolved=static(2)),
        sequence("a"),
        sequence("b"),
    ]
    records += [step(n, [row("a", d=2, a=1), row("b", d=0, a=0, limit="hint")], k_draft=4) for n in range(1, 30)]
    shown = reported(records)
    assert shown.transitions == []
    assert shown.mismatches == []


def test_a_restart_and_a_version_push_are_noted() -> None:
    def again(ts: float, **changed: Any) -> EngineRecord:
        return engine(ts=ts, **changed)

    records = [engine(), sequence("a"), step(1, [row("a")]), again(T0 + 1), again(T0 + 2, target="target@2")]
    first, second = reported(records).notes
    assert first == f"e0 restarted at {T0 + 1:.3f}"
    assert second.startswith(f"e0 restarted at {T0 + 2:.3f}, now target@2 | drafter")


def test_notes_are_those_of_the_window() -> None:
    with store_of(TWO_BUCKETS) as store:
        ingest = Ingest(store)
        ingest.note("of all of it")
        ingest.note("early", T0 + 0.2, T0 + 0.4)
        ingest.note("across", T0 + 0.2, T0 + 1.9)
        ingest.note("late", T0 + 1.9, T0 + 1.9)
        ingest.close()

        def notes(**bounds: float) -> list[str]:
            return report(store.connection, source="x", **bounds).notes

        assert notes() == ["of all of it", "early", "across", "late"]
        assert notes(window=0.5) == ["of all of it", "across", "late"]
        assert notes(at=T0 + 1.0) == ["of all of it", "early", "across"]
        assert notes(window=0.2, at=T0 + 0.1) == ["of all of it"]


def test_an_engine_that_made_no_steps_keeps_no_outage_from_counting() -> None:
    records: list[Record] = [engine(), engine(engine="idle"), sequence("a")]
    records += [step(n, [row("a", d=0, a=0)], ts=T0 + n, duration_ms=1000.0) for n in (1, 2, 3, 10, 11)]
    records += [GapRecord("e0", T0 + 9, 3, since=T0 + 3)]
    shown = reported(records)
    assert shown.buckets[0].tokens_per_second == pytest.approx(1.0)
    assert shown.gaps == 1
