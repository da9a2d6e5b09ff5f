"""The small inputs with right answers of the definitions' case list, as far as figures and buckets go."""

from __future__ import annotations

import msgspec
import pytest

from engine.records import GapRecord, PolicyMode
from store.metrics import acceptance_at_depth, expected_tokens
from tests.store.builders import T0, engine, joint_of, only_bucket, reported, row, sequence, step, trace_of


@pytest.mark.parametrize("cause", ["length_limit", "no_proposal", "grammar", "token_budget", "unknown", "none"])
@pytest.mark.parametrize(("k", "a", "skipped"), [(3, 2, 10), (1, 1, 3), (8, 0, 40)])
def test_skipped_drafts_are_not_rejected_drafts(k: int, a: int, skipped: int, cause: str) -> None:
    nothing = [row(d=0, a=0, k=0 if cause == "none" else k, cause=cause)] * skipped
    figures = only_bucket(trace_of([row(d=k, a=a)] * 10 + nothing))
    assert figures.alpha == figures.pooled_acceptance == pytest.approx(a / k)
    assert figures.waste_ratio == pytest.approx(1 - a / k)
    assert figures.mean_acceptance_length == 1 + a
    assert figures.drafted_share == pytest.approx(10 / (10 + skipped))
    assert (figures.steps, figures.drafted, figures.accepted) == (10, 10 * k, 10 * a)


def test_a_stop_inside_an_accepted_run_shortens_what_is_committed_and_not_what_was_accepted() -> None:
    figures = only_bucket(trace_of([row(d=5, a=2, e=3), row(d=5, a=5, e=6), row(d=5, a=5, e=3)]))
    assert figures.pooled_acceptance == 0.8
    assert figures.mean_acceptance_length == 5.0
    assert figures.committed_per_step == 4.0


@pytest.mark.parametrize("k", [1, 4, 7])
@pytest.mark.parametrize("cut", [0, 1, 3])
def test_wherever_a_stop_cuts_a_run_both_figures_are_right(k: int, cut: int) -> None:
    cut = min(cut, k)
    figures = only_bucket(trace_of([row(d=k, a=k)] * 9 + [row(d=k, a=k, e=k + 1 - cut)]))
    assert (figures.pooled_acceptance, figures.mean_acceptance_length) == (1.0, k + 1)
    assert figures.committed_per_step == pytest.approx(k + 1 - cut / 10)
    assert figures.emitted == 10 * (k + 1) - cut


@pytest.mark.parametrize(
    "impossible",
    [
        row(d=3, a=4),
        row(d=0, a=1, k=3),
        row(d=-1, a=0),
        row(d=3, a=-1, e=0),
        row(d=3, a=1, e=-1),
        row(d=3, a=1, k=-2),
        row(d=3, a=1, invalid=-1),
        row(d=3, a=1, e=3),
        row(d=0, a=0, e=2, k=0),
        row(d=3, a=1, context=-5),
        row(d=3, a=1, proposed=-2),
        row(d=3, a=4, cause="prefill"),
    ],
    ids=lambda one: "".join(map(str, (one.k_asked, one.drafted, one.accepted, one.emitted, one.invalid, one.cause))),
)
def test_an_impossible_row_is_quarantined_and_no_figure_moves(impossible: object) -> None:
    good = [row(d=3, a=2)] * 5
    report = reported(trace_of([*good, impossible]))  # type: ignore[list-item]
    assert report.quarantined == 1
    clean = only_bucket(trace_of(good))
    (figures,) = report.buckets
    unclocked = {"window": None, "tokens_per_second": None}
    assert msgspec.structs.replace(figures, **unclocked) == msgspec.structs.replace(clean, **unclocked)


def test_alpha_averages_steps_and_pooled_acceptance_averages_tokens() -> None:
    b = [row("b", d=3, a=1)] * 8
    figures = only_bucket(trace_of([row("a", d=3, a=3)] * 2 + b))
    assert figures.pooled_acceptance == pytest.approx(0.4667, abs=1e-4)
    assert figures.alpha == pytest.approx(0.4667, abs=1e-4)
    assert figures.mean_acceptance_length == pytest.approx(2.4)
    figures = only_bucket(trace_of([row("a", d=1, a=1)] * 2 + b))
    assert figures.pooled_acceptance == pytest.approx(10 / 26)
    assert figures.alpha == pytest.approx(0.4667, abs=1e-4)


def test_no_figure_is_a_mean_over_sequences() -> None:
    """Sequences of very different lengths: whatever is printed is per step, per token or per row."""
    report = reported(trace_of([row("a", d=3, a=3)] * 2 + [row("b", d=3, a=1)] * 8))
    (bucket,) = report.buckets
    mean_of_sequences = (1 + 1 / 3) / 2
    for figures in (bucket, report.total):
        for name, value in msgspec.to_builtins(figures).items():
            assert value != pytest.approx(mean_of_sequences, abs=0.005), name


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


@pytest.mark.parametrize("rows", [1, 29, 300])
@pytest.mark.parametrize("seconds", [0.02, 1.0])
def test_tokens_a_second_are_right_whatever_was_drafted(rows: int, seconds: float) -> None:
    for d in (0, 4):
        records = [engine(), sequence("a"), *(
            step(n, [row("a", d=d, a=d)], ts=T0 + n * seconds, duration_ms=seconds * 1000) for n in range(1, rows + 1)
        )]  # fmt: skip
        assert only_bucket(records).tokens_per_second == pytest.approx((d + 1) / seconds, rel=1e-3)


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


@pytest.mark.parametrize(
    ("mode", "lowered"),
    [
        (PolicyMode(mode="static", k=9), PolicyMode(mode="static", k=4)),
        (
            PolicyMode(mode="schedule", schedule=[(1, 8, 7), (9, 32, 2)]),
            PolicyMode(mode="schedule", schedule=[(1, 8, 4), (9, 32, 2)]),
        ),
    ],
    ids=["static", "schedule"],
)
def test_a_k_above_the_maximum_is_clamped_and_shown_as_clamped(mode: PolicyMode, lowered: PolicyMode) -> None:
    resolved = msgspec.structs.replace(lowered, reason="clamped to the engine's maximum of 4")
    records = [engine(configured=mode, resolved=resolved, max_k=4), sequence("a")]
    records += [step(n, [row("a")], k_draft=4, limit_draft="max") for n in range(1, 9)]  # type: ignore[list-item]
    (mismatch,) = reported(records).mismatches
    assert (mismatch.executed, mismatch.reason) == (4, "clamped to the engine's maximum of 4")
    assert (mismatch.configured, mismatch.resolved["mode"]) == (_plain(mode), mode.mode)


def _plain(mode: PolicyMode) -> dict[str, object]:
    found: dict[str, object] = msgspec.to_builtins(mode)
    return found


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


HOSTILE = [
    "[bold red]x[/]'; DROP TABLE steps;--", "\x1b[2J\x07", "a\nb\tc", "'\"`${x}%s{0}", "\u202egnp.exe", "café 模型 🜲",
    "-" * 256, "NaN", "null", "[/]", "../../etc/passwd",
]  # fmt: skip


@pytest.mark.parametrize("tag", HOSTILE, ids=range(len(HOSTILE)))
def test_any_tag_is_one_bucket_under_its_own_name(tag: str) -> None:
    (bucket,) = reported([engine(), sequence("h", tag), step(1, [row("h")]), step(2, [row("h")])]).buckets
    assert (bucket.workload, bucket.decode_rows) == (tag, 2)


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
