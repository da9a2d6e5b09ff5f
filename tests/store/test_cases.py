"""The small inputs with right answers of the definitions' case list, as far as figures and buckets go."""

from __future__ import annotations

import pytest

from engine.records import GapRecord, PolicyMode
from store.metrics import acceptance_at_depth, expected_tokens
from tests.store.builders import T0, engine, joint_of, only_bucket, reported, row, sequence, step, trace_of


def test_skipped_drafts_are_not_rejected_drafts() -> None:
    figures = only_bucket(trace_of([row(d=3, a=2)] * 10 + [row(d=0, a=0, k=3, cause="length_limit")] * 10))
    assert figures.alpha == pytest.approx(2 / 3)
    assert figures.waste_ratio == pytest.approx(1 / 3)
    assert figures.drafted_share == 0.5


def test_a_stop_inside_an_accepted_run_shortens_what_is_committed_and_not_what_was_accepted() -> None:
    figures = only_bucket(trace_of([row(d=5, a=2, e=3), row(d=5, a=5, e=6), row(d=5, a=5, e=3)]))
    assert figures.pooled_acceptance == 0.8
    assert figures.mean_acceptance_length == 5.0
    assert figures.committed_per_step == 4.0


@pytest.mark.parametrize(
    "impossible",
    [row(d=3, a=4), row(d=-1, a=0), row(d=3, a=1, e=3), row(d=3, a=1, context=-5), row(d=3, a=1, proposed=-2)],
)
def test_an_impossible_row_is_quarantined_and_no_figure_moves(impossible: object) -> None:
    good = [row(d=3, a=2)] * 5
    report = reported(trace_of([*good, impossible]))  # type: ignore[list-item]
    assert report.quarantined == 1
    clean = only_bucket(trace_of(good))
    (figures,) = report.buckets
    assert (figures.steps, figures.drafted, figures.accepted, figures.emitted, figures.alpha) == (
        clean.steps, clean.drafted, clean.accepted, clean.emitted, clean.alpha,
    )  # fmt: skip


def test_alpha_averages_steps_and_pooled_acceptance_averages_tokens() -> None:
    b = [row("b", d=3, a=1)] * 8
    figures = only_bucket(trace_of([row("a", d=3, a=3)] * 2 + b))
    assert figures.pooled_acceptance == pytest.approx(0.4667, abs=1e-4)
    assert figures.alpha == pytest.approx(0.4667, abs=1e-4)
    assert figures.mean_acceptance_length == pytest.approx(2.4)
    figures = only_bucket(trace_of([row("a", d=1, a=1)] * 2 + b))
    assert figures.pooled_acceptance == pytest.approx(10 / 26)
    assert figures.alpha == pytest.approx(0.4667, abs=1e-4)


def test_a_changed_k_moves_pooled_acceptance_and_not_acceptance_at_a_common_depth() -> None:
    for k, pooled in ((2, 1.0), (4, 0.5), (8, 0.25)):
        rows = [row(d=k, a=2)] * 20
        figures = only_bucket(trace_of(rows))
        assert figures.pooled_acceptance == pooled
        assert figures.mean_acceptance_length == 3.0
        assert acceptance_at_depth(joint_of(rows), 2) == 1.0


def test_positions_tell_the_drafter_apart_from_what_planning_may_count_on() -> None:
    rows = [row(d=3, a=3), row(d=1, a=1, k=3), row(d=1, a=1, k=3), row(d=3, a=0)]
    figures = only_bucket(trace_of(rows))
    assert figures.position_marginal == [0.75, 0.25, 0.25]
    assert figures.position_conditional == [0.75, 1.0, 1.0]
    assert figures.position_at_risk == [0.75, pytest.approx(1 / 3), 1.0]
    assert expected_tokens(figures.position_at_risk) == pytest.approx(2.25)


def test_a_token_budget_censors_the_positions_it_took_away() -> None:
    rows = [row(d=1, a=1, k=3, cause="token_budget"), row(d=3, a=1), row(d=3, a=3)]
    assert only_bucket(trace_of(rows)).position_at_risk == [1.0, 0.5, 1.0]


def test_with_nothing_drafted_acceptance_is_absent_and_tokens_go_on() -> None:
    rows = [row("a", d=0, a=0)] * 400
    records = [
        engine(),
        sequence("a"),
        *(step(n, [one], ts=T0 + n * 0.15, duration_ms=150.0) for n, one in enumerate(rows, 1)),
    ]
    figures = only_bucket(records)
    assert (figures.alpha, figures.alpha_low, figures.waste_ratio, figures.pooled_acceptance) == (
        None,
        None,
        None,
        None,
    )
    assert figures.tokens_per_second == pytest.approx(400 / 60)
    assert figures.state == "blind"
    assert figures.drafted_share == 0.0


def test_a_schedule_counts_prefills_and_each_transition_has_its_reason() -> None:
    schedule = PolicyMode(mode="schedule", schedule=[(1, 4, 2), (5, 512, 0)])
    records = [engine(configured=schedule, resolved=schedule)]
    for number, (running, k) in enumerate([(4, 2), (5, 0), (4, 2), (5, 0)], 1):
        records.append(step(number, [], running=running, k_draft=k, limit_draft="schedule"))  # type: ignore[arg-type]
    report = reported(records)
    assert [(t.from_k, t.to_k, t.running, t.limit) for t in report.transitions] == [
        (2, 0, 5, "schedule"), (0, 2, 4, "schedule"), (2, 0, 5, "schedule"),
    ]  # fmt: skip
    assert report.mismatches == []


def test_a_schedule_that_the_engine_dropped_is_a_mismatch_with_its_reason() -> None:
    configured = PolicyMode(mode="schedule", schedule=[(1, 4, 4), (5, 32, 1)])
    resolved = PolicyMode(mode="static", k=4, reason="dropped under data parallelism")
    records = [engine(configured=configured, resolved=resolved, data_parallel_size=2), sequence("a")]
    records += [step(n, [row("a", d=4, a=1)], running=8) for n in range(1, 4)]  # type: ignore[list-item]
    (mismatch,) = reported(records).mismatches
    assert mismatch.executed == 4
    assert mismatch.reason == "dropped under data parallelism"
    assert mismatch.ended is None
    assert mismatch.configured["mode"] == "schedule"
    assert mismatch.resolved["mode"] == "static"


def test_another_temperature_is_another_bucket() -> None:
    records = [engine(), sequence("a", temperature=0.0), sequence("b", temperature=1.0)]
    records += [step(1, [row("a"), row("b")])]  # type: ignore[list-item]
    assert [bucket.temperature for bucket in reported(records).buckets] == ["0", "(0.5,1]"]


@pytest.mark.parametrize("accepted", [0, 4])
def test_one_request_alone_is_few_and_says_how_little_it_knows(accepted: int) -> None:
    figures = only_bucket(trace_of([row(d=4, a=accepted)] * 100))
    assert figures.few
    assert figures.state == "few"
    assert figures.alpha_low is not None
    assert figures.alpha_high is not None
    assert figures.alpha_high - figures.alpha_low == pytest.approx(0.975)


def test_a_hostile_tag_is_kept_literally_and_ten_thousand_tags_are_bounded() -> None:
    hostile = "[bold red]x[/]'; DROP TABLE steps;--"
    records = [engine(), sequence("h", hostile), step(1, [row("h")])]
    for number in range(10_000):
        records.append(sequence(f"s{number}", f"tag-{number}"))
    records.append(step(2, [row(f"s{number}") for number in range(10_000)]))
    report = reported(records)
    names = [bucket.workload for bucket in report.buckets]
    assert hostile in names
    assert len(names) == 65
    assert names[-1] == "other"
    assert report.total is not None
    assert report.total.decode_rows == 10_001
    assert report.buckets[-1].decode_rows == 10_001 - 64


def test_gaps_are_taken_out_of_the_time_that_tokens_are_divided_by() -> None:
    records = [engine(), sequence("a")]
    records += [step(n, [row("a", d=0, a=0)], ts=T0 + n, duration_ms=1000.0) for n in range(1, 11)]  # type: ignore[list-item]
    records += [GapRecord("e0", T0 + 30, 20, since=T0 + 10)]  # type: ignore[list-item]
    records += [step(n, [row("a", d=0, a=0)], ts=T0 + n, duration_ms=1000.0) for n in range(31, 41)]  # type: ignore[list-item]
    report = reported(records)
    assert (report.gaps, report.frames_lost) == (1, 20)
    assert report.buckets[0].tokens_per_second == pytest.approx(1.0)
