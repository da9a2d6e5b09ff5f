"""What-if: policies over the token positions of a record, against cases by hand and a walker that knows no arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.policy import parse_mode
from engine.records import Cause, PolicyMode, Record, Row
from store.buckets import CALIBRATION
from store.rowbatch import ACCEPTED, CAUSE, CONTEXT, DRAFTED, EMITTED, K_ASKED, SEQ, columns_of
from store.whatif import WhatIf, what_if
from store.whatif.chunk import Chunk
from store.whatif.costs import drafts_verified
from store.whatif.figures import WhatIfError
from store.whatif.hazards import Hazards
from store.whatif.reading import Bucket, Rows, Steps
from store.whatif.walk import walk
from tests.store.builders import T0, engine, finish, row, sequence, step, store_of, trace_of

CASE_22: Final = [row(a=a) for a in (4, 1, 0, 4, 2)]


def asked(records: Sequence[Record], *policies: str, start: float | None = None) -> list[WhatIf]:
    with store_of(records) as store:
        return what_if(store.connection, [parse_mode(text) for text in policies], start)


def with_mode(mode: PolicyMode) -> None:
    with store_of(trace_of(CASE_22)) as store:
        what_if(store.connection, [mode])


def only(rows: Sequence[Row], policy: str) -> WhatIf:
    (answer,) = asked(trace_of(rows), policy)
    return answer


# By hand


def test_it_walks_positions_and_not_recorded_steps() -> None:
    """Case 22."""
    predicted = only(CASE_22, "static:1").predicted
    assert (predicted.tokens_per_step_low, predicted.tokens_per_step_high) == (1.6, pytest.approx(16 / 9))
    assert predicted.naive_tokens_per_step == pytest.approx(1.8)
    assert predicted.exact_share == pytest.approx(1 - 2 / 9)
    assert predicted.tokens_per_step is not None
    assert predicted.tokens_per_step_low <= predicted.tokens_per_step <= predicted.tokens_per_step_high


def test_an_unknown_position_is_filled_with_the_at_risk_acceptance() -> None:
    """Case 6: g = .75, 1/3, 1. The bonus behind (3, 3) is as likely as the third of a draft; those behind (1, 1), where
    the drafter had no more, as the second."""
    rows = [row(d=3, a=3), row(d=1, a=1, k=3), row(d=1, a=1, k=3), row(d=3, a=0)]
    predicted = only(rows, "static:1").predicted
    # RRR? | R? | R? | W, two by two: the bonus tokens fall into place as those of steps at K 1, but for the first.
    assert predicted.naive_tokens_per_step == pytest.approx(1.75)
    assert predicted.tokens_per_step == predicted.tokens_per_step_low == predicted.tokens_per_step_high == 9 / 5
    longer = only([row(d=3, a=3), row(d=3, a=0)], "static:8").predicted
    # From the first start the fourth position is right with g = 1/1, and the fifth is known to be wrong.
    assert longer.tokens_per_step == longer.tokens_per_step_high == 5.0
    assert longer.tokens_per_step_low == 2.5


def test_off_is_one_token_a_step() -> None:
    predicted = only(CASE_22, "off").predicted
    assert predicted.tokens_per_step == predicted.tokens_per_step_low == predicted.tokens_per_step_high == 1.0
    assert predicted.exact_share == 1.0


def test_the_recorded_policy_gives_what_was_recorded() -> None:
    answer = only(CASE_22, "static:4")
    assert answer.predicted.tokens_per_step == answer.recorded.tokens_per_step == 3.2
    assert (answer.predicted.exact_share, answer.predicted.recorded_start_share) == (1.0, 1.0)


def test_where_the_drafter_had_no_more_a_recorded_start_is_known_all_the_same() -> None:
    rows = [row(d=1, a=1, k=4), row(d=0, a=0, k=4), row(d=4, a=2)]
    answer = only(rows, "static:4")
    assert answer.predicted.tokens_per_step_low == answer.predicted.tokens_per_step_high == pytest.approx(6 / 3)
    assert answer.predicted.exact_share == 1.0


def test_a_token_that_a_grammar_struck_was_wrong() -> None:
    struck = row(d=2, a=2, k=4, cause="grammar", invalid=2, proposed=4)
    predicted = only([struck, row(d=4, a=4)], "static:8").predicted
    assert (predicted.tokens_per_step_low, predicted.tokens_per_step_high) == (4.0, 4.0)


def test_what_the_token_budget_took_away_is_unknown() -> None:
    predicted = only([row(d=2, a=2, k=4, cause="token_budget"), row(d=4, a=0)], "static:4").predicted
    assert (predicted.tokens_per_step_low, predicted.tokens_per_step_high) == (2.0, 4.0)


def test_a_stop_inside_an_accepted_run_leaves_right_positions_only() -> None:
    answer = only([row(d=5, a=5, e=3)], "static:2")
    assert answer.recorded.tokens_per_step == 3.0
    assert answer.predicted.tokens_per_step == 3.0
    assert answer.predicted.exact_share == 1.0


def test_stretches_at_k_0_are_unknown() -> None:
    rows = [*([row(d=2, a=1)] * 2), *([row(d=0, a=0, k=0)] * 6)]
    predicted = only(rows, "static:2").predicted
    assert predicted.tokens_per_step_low == 10 / 8
    assert predicted.tokens_per_step_high == 10 / 4
    # g = 1, 0: one draft token of two is accepted, as in the others.
    assert predicted.tokens_per_step == pytest.approx(10 / 5)


def test_where_nothing_was_ever_drafted_there_are_bounds_only() -> None:
    predicted = only([row(d=0, a=0, k=0)] * 6, "static:2").predicted
    assert predicted.tokens_per_step is None
    assert (predicted.tokens_per_step_low, predicted.tokens_per_step_high) == (1.0, 3.0)
    assert predicted.exact_share == 0.0


def test_rows_that_end_a_prefill_are_no_steps() -> None:
    first = row(d=0, a=0, k=0, cause="prefill", context=0)
    answer = only([first, *CASE_22], "static:4")
    assert answer.decode_rows == 5
    assert answer.predicted.tokens_per_step == 3.2


def test_the_walk_begins_again_behind_a_hole() -> None:
    """What a bonus token would have led to can't be known where the row behind it is missing."""
    gone, there = ([row(d=1, a=1, context=100), row(d=1, a=1, context=context)] for context in (110, 102))
    assert only(gone, "static:3").predicted.tokens_per_step_high == 2.0
    assert only(there, "static:3").predicted.tokens_per_step_high == 4.0


def test_impossible_rows_take_no_part() -> None:
    rows = [row(d=4, a=4, context=100), row(d=3, a=4, context=105), row(d=4, a=1, context=110)]
    answer = only(rows, "static:4")
    assert answer.decode_rows == 2
    assert answer.predicted.tokens_per_step == answer.recorded.tokens_per_step == 3.5


def test_requests_that_want_no_speculation_have_none() -> None:
    records = [engine(), sequence("a", disable_speculation=True), sequence("b", lane="vanilla"), sequence("c")]
    rows = [row("a", d=0, a=0, k=0), row("b", d=0, a=0, k=0), row("c", d=2, a=2)]
    (answer,) = asked([*records, step(1, rows), step(2, rows)], "static:2")
    assert answer.predicted.tokens_per_step_low == 10 / 6
    assert any("stay at K 0" in note for note in answer.notes)


def test_a_schedule_is_looked_up_at_the_batch_of_the_step_before() -> None:
    records: list[Record] = [engine(), sequence("a")]
    records += [step(1, [row(d=4, a=4)], running=1), step(2, [row(d=4, a=4)], running=9)]
    records += [step(3, [row(d=4, a=0)], running=9)]
    (answer,) = asked(records, "schedule:[[1,4,4],[5,32,0]]")
    # Drafts verified in step 2 were asked for at 1 running.
    assert answer.predicted.tokens_per_step_low == 11 / 3
    assert answer.mean_k == pytest.approx(8 / 3)


def test_k_above_the_engines_maximum_is_clamped_and_said() -> None:
    answer = only(CASE_22, "static:20")
    assert answer.predicted == only(CASE_22, "static:8").predicted
    assert any("maximum 8" in note for note in answer.notes)


def test_a_window_counts_the_rows_inside_it() -> None:
    (answer,) = asked(trace_of(CASE_22), "static:4", start=T0 + 0.25)
    assert answer.decode_rows == 3


def test_what_cannot_be_asked_is_said() -> None:
    with pytest.raises(WhatIfError, match=r"policy\.k"):
        with_mode(PolicyMode(mode="static"))
    with pytest.raises(WhatIfError, match="no decode rows"):
        asked([engine()], "off")


def test_model_drafters_are_named_with_what_is_assumed_of_them() -> None:
    records = [engine(method="eagle3"), *trace_of(CASE_22)[1:]]
    (answer,) = asked(records, "static:2")
    assert any("eagle3" in note and "less certain" in note for note in answer.notes)


# Time


def timed(*runs: tuple[int, int, float]) -> list[Record]:
    """Steps of two sequences: how many, K (all but one accepted), ms of each; all runs four times over."""
    records: list[Record] = [engine(), sequence("a"), sequence("b")]
    ts, number = T0, 0
    for count, k, ms in runs * 4:
        for _ in range(count):
            number, ts = number + 1, ts + ms / 1000
            rows = [row(name, d=k, a=max(k - 1, 0), k=k) for name in "ab"]
            records.append(step(number, rows, ts=ts, duration_ms=ms, k_verify=k, k_draft=k))
    return records


def test_time_comes_from_the_records_own_steps() -> None:
    records = timed((300, 0, 20.0), (300, 4, 40.0))
    off, four = asked(records, "off", "static:4")
    assert off.recorded.tokens_per_second == pytest.approx(10 * 300 / (300 * 0.06), rel=0.01)
    assert off.predicted.tokens_per_second == pytest.approx(2 / 0.020, rel=0.03)
    for answer in (off, four):
        predicted = answer.predicted
        assert predicted.tokens_per_second_low is not None
        assert predicted.tokens_per_second is not None
        assert predicted.tokens_per_second_high is not None
        assert predicted.tokens_per_second_low <= predicted.tokens_per_second <= predicted.tokens_per_second_high
    (between,) = asked(records, "static:2")
    assert between.predicted.tokens_per_second is not None


def test_the_recorded_policy_takes_the_recorded_time() -> None:
    (answer,) = asked(timed((300, 4, 40.0)), "static:4")
    assert answer.predicted.tokens_per_second == pytest.approx(answer.recorded.tokens_per_second)
    assert answer.predicted.tokens_per_second_low == pytest.approx(answer.recorded.tokens_per_second)


def test_a_k_that_never_ran_has_no_time() -> None:
    (answer,) = asked(timed((300, 4, 40.0)), "static:1")
    assert answer.predicted.tokens_per_second is None
    assert answer.no_seconds is not None
    assert "K 1" in answer.no_seconds
    assert answer.buckets[0].predicted.tokens_per_second is None


# Adaptive


@pytest.fixture(scope="module")
def mixed() -> Iterator[duckdb.DuckDBPyConnection]:
    """Five minutes at K 4 of a workload whose drafts are good and one whose drafts are not, after a calibration."""
    random = np.random.default_rng(1)
    records: list[Record] = [engine(), *(sequence(name, CALIBRATION) for name in "ab")]
    ts, number = T0, 0
    for k, ms in ((0, 20.0), (4, 60.0)) * 4:
        for _ in range(300):
            number, ts = number + 1, ts + ms / 1000
            rows = [row(name, d=k, a=0, k=k) for name in "ab"]
            records.append(step(number, rows, ts=ts, duration_ms=ms, k_verify=k, k_draft=k))
    for turn in range(100):
        names = {f"good {turn}": 0.9, f"bad {turn}": 0.05}
        records += [sequence(name, name.split()[0], ts=ts) for name in names]
        for _ in range(50):
            number, ts = number + 1, ts + 0.06
            passed = (random.random((2, 4)) < np.array([*names.values()])[:, None]).astype(int)
            taken = np.minimum.accumulate(passed, axis=1).sum(axis=1).tolist()
            rows = [row(name, d=4, a=a) for name, a in zip(names, taken, strict=True)]
            records.append(step(number, rows, ts=ts, duration_ms=60.0))
        records += [finish(name, ts) for name in names]
    with store_of(records) as store:
        yield store.connection


def test_adaptive_takes_the_drafts_from_a_workload_that_gains_nothing(mixed: duckdb.DuckDBPyConnection) -> None:
    adaptive, static = what_if(mixed, [parse_mode("adaptive"), parse_mode("static:4")])
    by_name = {bucket.workload: bucket for bucket in adaptive.buckets}
    good, bad = by_name["good"], by_name["bad"]
    assert good.mean_k is not None
    assert bad.mean_k is not None
    assert bad.mean_k < 1.0 < good.mean_k
    assert adaptive.predicted.tokens_per_second is not None
    assert static.predicted.tokens_per_second is not None
    assert adaptive.predicted.tokens_per_second > 1.1 * static.predicted.tokens_per_second
    assert static.predicted.tokens_per_step == pytest.approx(static.recorded.tokens_per_step)
    assert any("simulated" in note for note in adaptive.notes)
    assert any("calibration requests are left out" in note for note in adaptive.notes)


# Against a walker that knows no arrays


class Token(NamedTuple):
    """A position: whether a draft is right there (None: unknown), how likely that is by the depth of the draft, and
    the longest draft that a step which starts here may have."""

    right: bool | None
    chance: tuple[float, ...]
    offer: int


def texts(rows: Sequence[Row]) -> Iterator[list[Token]]:
    """Of each sequence, from the definitions."""
    hazards = at_risk(rows)
    for name in dict.fromkeys(one.seq for one in rows):
        tokens: list[Token] = []
        for one in rows:
            if one.seq != name:
                continue
            left_empty = one.cause == "no_proposal"
            for place in range(one.emitted):
                last = place == one.accepted
                right = None if last and one.accepted == one.drafted else not last
                chance = hazards if not one.k_asked else (hazards[place],) * 99
                if left_empty and not one.drafted:
                    chance = (0.0,) * 99
                tokens.append(Token(right, chance, one.drafted if left_empty and not place else 99))
        yield tokens


def at_risk(rows: Sequence[Row]) -> tuple[float, ...]:
    found: list[float] = []
    for depth in range(1, 99):
        there = [one for one in rows if one.k_asked >= depth and one.accepted >= depth - 1]
        if there:
            found.append(sum(one.accepted >= depth for one in there) / len(there))
        else:
            found.append(found[-1] if found else 0.0)
    return tuple(found)


def expected_steps(text: list[Token], k: int, unknown: float | None) -> float:
    """Steps from the first token on. `unknown`: chance of an unknown position; None: its own."""

    @cache
    def behind(start: int) -> float:
        if start >= len(text):
            return 0.0
        steps, reach = 1.0, 1.0
        for drafted in range(min(k, text[start].offer)):
            if start + drafted >= len(text):
                return steps
            token = text[start + drafted]
            own = token.chance[drafted] if unknown is None else unknown
            chance = own if token.right is None else float(token.right)
            steps += reach * (1 - chance) * behind(start + drafted + 1)
            reach *= chance
        return steps + reach * behind(start + min(k, text[start].offer) + 1)

    return behind(0)


def walked(rows: Sequence[Row], k: int, unknown: float | None) -> float:
    """Tokens per step."""
    found = list(texts(rows))
    return sum(map(len, found)) / sum(expected_steps(text, k, unknown) for text in found)


def in_arrays(rows: Sequence[Row], k: int) -> list[float]:
    """Tokens per step as the product walks, without the detour through a store: filled, all wrong, all right."""
    names = list(dict.fromkeys(one.seq for one in rows))
    ordered = sorted(enumerate(rows), key=lambda numbered: names.index(numbered[1].seq))
    columns = columns_of([one for _, one in ordered], [names.index(one.seq) for _, one in ordered])
    zeros = np.zeros(len(rows), dtype=np.int64)
    table = Rows(
        columns[SEQ], np.array([number for number, _ in ordered]), zeros,
        *(columns[place] for place in (K_ASKED, DRAFTED, ACCEPTED, EMITTED, CONTEXT, CAUSE)), zeros > 0,
    )  # fmt: skip
    joint = {"bucket": zeros, "count": zeros + 1} | {
        name: getattr(table, name) for name in ("k_asked", "drafted", "accepted", "cause")
    }
    hazards = Hazards([Bucket(0, "e0", "code", "0-512", "0", "version")], joint)
    chunk = Chunk(table, Steps(*([zeros] * 8)), hazards)  # type: ignore[arg-type]
    asked_for = np.full(len(chunk.row), k)
    drafts = drafts_verified(asked_for, chunk.offered[chunk.row], chunk.at_start)
    walks = walk(chunk.laid, chunk.chances, drafts).starts.sum(axis=1)
    return [float(table.emitted.sum() / steps) for steps in walks]


@st.composite
def any_row(draw: st.DrawFn) -> Row:
    k = draw(st.integers(0, 5))
    d = draw(st.integers(0, k)) if draw(st.booleans()) else k
    a = draw(st.integers(0, d))
    cause: Cause = "none" if not k else "full" if d == k else "no_proposal"
    return row(draw(st.sampled_from("ab")), d=d, a=a, k=k, cause=cause)


@settings(max_examples=150, deadline=None)
@given(st.lists(any_row(), min_size=1, max_size=20), st.integers(0, 7))
def test_it_agrees_with_a_walker_that_knows_no_arrays(rows: list[Row], k: int) -> None:
    assert in_arrays(rows, k) == pytest.approx([walked(rows, k, unknown) for unknown in (None, 0.0, 1.0)])


full_rows = st.builds(
    lambda seq, k, share: row(seq, d=k, a=round(share * k)), st.sampled_from("ab"), st.integers(1, 5), st.floats(0, 1)
)


@settings(max_examples=100, deadline=None)
@given(st.lists(full_rows, min_size=1, max_size=30))
def test_longer_drafts_never_take_more_steps(rows: list[Row]) -> None:
    by_k = [in_arrays(rows, k) for k in range(9)]
    assert by_k[0] == [1.0, 1.0, 1.0]
    for filled, wrong, right in by_k:
        assert wrong - 1e-9 <= filled <= right + 1e-9
    for shorter, longer in pairwise(by_k):
        assert all(more >= less - 1e-9 for less, more in zip(shorter, longer, strict=True))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=30))
def test_the_recorded_k_gives_what_was_recorded_where_all_drafts_were_full(accepted: list[int]) -> None:
    rows = [row(d=3, a=a) for a in accepted]
    assert in_arrays(rows, 3) == pytest.approx([1 + sum(accepted) / len(accepted)] * 3)
