"""What speculation cost and saved each workload: recomputed step by step from the records, and its sums."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from msgspec.structs import replace

from engine.records import Record, Row, StepRecord
from store.balance.balance import balance
from store.balance.records import Balance, WorkloadBalance
from store.balance.settling import Settlement, Steps, settle
from store.buckets import CALIBRATION
from store.report import ReportError
from store.step_models import step_models
from tests.store.builders import T0, engine, row, sequence, step, store_of

WORKLOADS: Final = {"a": "code", "b": "code", "c": "chat", "d": "plain"}
QUIET: Final[dict[str, Any]] = {"k_verify": 0, "k_draft": 0}


def clean(rows: list[Row], ms: float, first: int, ts: float) -> Iterator[StepRecord]:
    """400 vanilla steps over 40 s, so that both halves of the time have some."""
    for number in range(400):
        at = ts + (number + 1) * 0.1
        yield step(first + number, rows, ts=at, duration_ms=ms + number % 3 - 1, **QUIET)


def idle(*names: str) -> list[Row]:
    return [row(name, d=0, a=0, k=0, cause="none") for name in names]


def mixed() -> list[StepRecord]:
    """Three in a step: two of code that draft, one of chat that drafts less, and one that never does."""
    found = []
    for number in range(60):
        rows = [
            row("a", d=4, a=number % 5),
            row("b", d=2 + number % 3, a=number % 3),
            row("c", d=number % 2, a=0, k=1),
            row("d", d=0, a=0, k=0, cause="none"),
        ]
        prefill = 200 if number % 10 == 0 else 0
        ts = T0 + 41 + number * 0.1
        ms = 50.0 + number % 7 + prefill / 10
        found.append(step(1000 + number, rows, ts=ts, duration_ms=ms, prefill_tokens=prefill))
    return found


def calibrated(*later: Record, workloads: dict[str, str] = WORKLOADS) -> list[Record]:
    names = [sequence(name, workload) for name, workload in workloads.items()]
    return [engine(), *names, *clean(idle(*WORKLOADS), 30.0, 1, T0), *later]


def balanced(records: list[Record], **arguments: Any) -> Balance:
    with store_of(records) as store:
        return balance(store.connection, step_models(store.connection), source="test", **arguments)


def by_name(found: Balance) -> dict[str | None, WorkloadBalance]:
    return {one.workload: one for one in found.workloads}


def test_the_worked_example() -> None:
    one = np.ones((1, 1))
    found = settle(Steps(one[0] * 50, one[0] * 30, one[0] * 0, np.array([[1.0, 1.0]]), np.array([[3.0, 1.0]]),
                         np.array([[4.0, 0.0]])))  # fmt: skip
    assert found.used.tolist() == [25, 25]
    assert (found.vanilla - found.used).tolist() == [20, -10]
    assert found.brought.tolist() == [30, 0]
    assert found.paid.tolist() == [[10, 0], [10, 0]]
    assert found.unexplained.tolist() == [0, 0]


WIDTHS = arrays.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=6)


@st.composite
def random_steps(draw: st.DrawFn) -> Steps:
    steps, workloads = draw(WIDTHS)
    whole = st.integers(0, 40).map(float)
    counts = [draw(arrays.arrays(float, (steps, workloads), elements=whole)) for _ in range(3)]
    counts[0][:, 0] += 1  # a step that counts has a decode row
    times = [draw(arrays.arrays(float, steps, elements=st.floats(0, 1e4))) for _ in range(3)]
    return Steps(*times, *counts)


@settings(max_examples=60, deadline=None)
@given(random_steps())
def test_what_is_settled_adds_up(steps: Steps) -> None:
    found = settle(steps)
    batch, drafted = steps.rows.sum(axis=1), steps.drafted.sum(axis=1)
    extra = steps.duration - steps.vanilla - steps.prefill
    near = pytest.approx
    assert found.used.sum() == near(steps.duration.sum())
    saved = (steps.vanilla * steps.emitted.sum(axis=1) / batch + steps.prefill - steps.duration).sum()
    assert (found.vanilla - found.used).sum() == near(saved, abs=1e-6)
    caused = [
        sum(x * d[u] / all_ for x, d, all_ in zip(extra, steps.drafted, drafted, strict=True) if all_)
        for u in range(steps.rows.shape[1])
    ]
    assert found.paid.sum(axis=0) == near(np.array(caused), abs=1e-6)
    parts = found.brought - found.paid.sum(axis=1) - found.unexplained
    assert found.vanilla - found.used == near(parts, abs=1e-6)
    halves = settle(steps.take(slice(0, 1))) + settle(steps.take(slice(1, None)))
    assert halves.paid == near(found.paid, abs=1e-6)
    assert isinstance(halves, Settlement)


def test_it_is_what_plain_python_makes_of_the_rows() -> None:
    records = calibrated(*mixed())
    with store_of(records) as store:
        models = step_models(store.connection)
        found = balance(store.connection, models, source="test", window=5.95)
    (model,) = models.values()
    saved = dict.fromkeys(WORKLOADS.values(), 0.0)
    paid = {(payer, drafter): 0.0 for payer in saved for drafter in saved}
    for one in mixed():
        context = sum(each.context for each in one.rows)
        together = model.vanilla_ms(4, context)
        assert together is not None
        vanilla, prefill = float(together), float(model.prefill_ms(one.prefill_tokens))
        extra = one.duration_ms - vanilla - prefill
        drafted = sum(each.drafted for each in one.rows)
        for each in one.rows:
            name = WORKLOADS[each.seq]
            saved[name] += (each.emitted * vanilla + prefill - one.duration_ms) / 4 / 1000
            for other in one.rows:
                paid[name, WORKLOADS[other.seq]] += extra / 4 * other.drafted / drafted / 1000
    names = [told.workload or "" for told in found.workloads]
    assert set(names) == set(saved)
    assert found.total.state == "few"  # two blocks of 10 s
    assert found.paid is not None
    for name, told, row_of in zip(names, found.workloads, found.paid, strict=True):
        assert told.saved == pytest.approx(saved[name])
        assert told.unexplained == pytest.approx(0, abs=1e-9)
        assert row_of == pytest.approx([paid[name, drafter] for drafter in names], abs=1e-9)
    assert found.total.saved == pytest.approx(sum(saved.values()))
    assert found.covered == 1
    assert (found.steps, found.total.decode_rows) == (60, 240)


def test_whoever_drafts_nothing_pays_and_causes_nothing() -> None:
    found = by_name(balanced(calibrated(*mixed()), window=5.95))
    plain, code = found["plain"], found["code"]
    assert plain.paid_others is not None
    assert plain.paid_others > 0.1
    assert (plain.brought, plain.paid_own, plain.others_paid, plain.drafts_cost) == (0, 0, 0, 0)
    assert plain.saved == pytest.approx(-plain.paid_others)
    assert code.others_paid is not None
    assert code.others_paid > code.paid_others  # type: ignore[operator]


def test_what_is_drafted_beyond_a_rows_own_k_is_not_its_doing() -> None:
    """The batch K is the neighbour's: the row in the lane is drafted 4, asked for none and gets none."""
    lane = row("d", d=0, a=0, k=0, proposed=4, limit="lane", cause="none")
    trimmed = row("c", d=1, a=0, k=1, proposed=4)
    steps = [
        step(1000 + n, [row("a", d=4, a=1, proposed=4), trimmed, lane], ts=T0 + 41 + n * 0.1, duration_ms=60)
        for n in range(40)
    ]
    records = calibrated(*clean(idle("a", "c", "d"), 30.0, 500, T0 + 60), *later(steps, 100))
    found = balanced(records, window=5.0)
    one = by_name(found)
    assert one["plain"].drafts_cost == 0
    assert one["code"].drafts_cost == pytest.approx(4 * one["chat"].drafts_cost)  # type: ignore[operator]


def later(steps: list[StepRecord], seconds: float) -> list[Record]:
    return [replace(one, ts=one.ts + seconds, step=one.step + 5000, frame=one.frame + 5000) for one in steps]


def test_a_struck_token_was_drafted_and_so_was_one_without_room() -> None:
    """Of both four were proposed: a grammar struck three of one, the budget had room for one of the other."""
    struck = row("a", d=1, a=0, k=4, invalid=3, proposed=4, cause="grammar")
    cut = row("c", d=1, a=0, k=4, proposed=4, cause="token_budget")
    steps = [step(1000 + n, [struck, cut, *idle("b", "d")], ts=T0 + 41 + n * 0.1, duration_ms=60) for n in range(40)]
    one = by_name(balanced(calibrated(*steps), window=5.0))
    assert one["code"].drafts_cost == pytest.approx(one["chat"].drafts_cost)


def test_steps_that_drafted_nothing_explain_no_draft() -> None:
    steps = [step(1000 + n, idle(*WORKLOADS), ts=T0 + 41 + n * 0.1, duration_ms=36) for n in range(40)]
    found = balanced(calibrated(*steps), window=5.0)
    total = found.total
    assert total.drafts_cost == 0
    assert total.unexplained == pytest.approx(-total.saved, rel=1e-6)  # type: ignore[operator]
    assert total.unexplained == pytest.approx(40 * 0.006, rel=0.05)


def test_steps_that_can_not_be_settled_are_left_out_and_told() -> None:
    """Prompts alone, a row that can't be, an engine whose vanilla is not known, and calibration."""
    bad = row("a", d=2, a=4)
    workloads = WORKLOADS | {"x": CALIBRATION}
    odd = [
        step(2000, [], ts=T0 + 48.0, duration_ms=200, prefill_tokens=500),
        step(2001, [row("a", d=0, a=0, cause="prefill")], ts=T0 + 48.2, duration_ms=100),
        step(2002, [bad, *idle("b", "c", "d")], ts=T0 + 48.3, duration_ms=70),
        step(2003, [row("a", d=4, a=1)], ts=T0 + 48.4, duration_ms=40),
        step(1, [row("z", d=4, a=1)], engine="e1", ts=T0 + 48.45, duration_ms=40),
        step(2004, idle("x", "c"), ts=T0 + 48.5, duration_ms=30),
    ]
    other: list[Record] = [engine(engine="e1"), replace(sequence("z"), engine="e1")]
    found = balanced(calibrated(*other, *mixed(), *odd, workloads=workloads), window=7.55)
    out = found.left_out
    assert (out.no_decode_rows, out.incomplete, out.not_calibrated, out.calibration) == pytest.approx(
        (0.3, 0.07, 0.04, 0.03)
    )
    assert found.total.used == pytest.approx(found.engine_seconds - 0.44)
    assert found.covered == pytest.approx(found.total.used / (found.total.used + 0.11))  # type: ignore[operator]
    code = by_name(found)["code"]
    assert code.used is not None
    assert code.covered == pytest.approx(code.used / (code.used + 0.04))
    assert code.measured == pytest.approx((code.used - 0.04) / (code.used + 0.04))  # alone in a step, by the fit
    assert CALIBRATION not in by_name(found)


def test_without_vanilla_times_it_is_calibrating_and_nothing_is_0() -> None:
    found = balanced([engine(), *(sequence(name, of) for name, of in WORKLOADS.items()), *mixed()])
    assert found.total.state == "calibrating"
    assert (found.paid, found.covered) == (None, 0)
    for one in (found.total, *found.workloads):
        assert (one.used, one.saved, one.brought, one.drafts_cost, one.saved_low) == (None,) * 5
        assert one.engine_seconds > 0


def test_where_nothing_was_decoded_it_is_absent() -> None:
    for found in (balanced([engine()]), balanced([engine(), step(1, [], prefill_tokens=9)])):
        assert (found.total.state, found.total.saved, found.paid, found.workloads) == ("absent", None, None, [])
        assert found.covered is None


def test_one_engine_that_calibrates_does_not_hide_the_other() -> None:
    other: list[Record] = [engine(engine="e1"), replace(sequence("z", "slow"), engine="e1")]
    later_on = [step(n + 1, [row("z", d=4, a=1)], engine="e1", ts=T0 + 42 + n, duration_ms=80) for n in range(4)]
    found = balanced(calibrated(*other, *mixed(), *later_on), window=5.95)
    assert found.total.state in ("ok", "few")
    slow = by_name(found)["slow"]
    assert (slow.state, slow.saved, slow.covered) == ("calibrating", None, 0)
    assert slow.engine_seconds == pytest.approx(0.32)
    assert found.left_out.not_calibrated == pytest.approx(0.32)


def test_only_the_newest_steps_are_read_where_there_are_too_many() -> None:
    whole = balanced(calibrated(*mixed()), window=5.95)
    part = balanced(calibrated(*mixed()), window=5.95, most_rows=100)
    assert (whole.steps, whole.notes) == (60, [])
    assert part.steps == 25
    assert part.notes[0].startswith("only the newest 100 decode rows were read")
    assert part.window is not None
    assert part.window.start > whole.window.start  # type: ignore[union-attr]


def test_it_ends_where_it_is_asked_to() -> None:
    found = balanced(calibrated(*mixed()), window=2.0, at=T0 + 44.0)
    assert found.steps == 20
    assert found.window is not None
    assert found.window.end == pytest.approx(T0 + 44.0)


@pytest.mark.parametrize("asked", [{"window": 0}, {"window": math.nan}, {"at": math.nan}, {"at": math.inf}], ids=str)
def test_a_window_that_is_none_is_refused(asked: dict[str, float]) -> None:
    with pytest.raises(ReportError, match=r"window|at"):
        balanced([engine()], **asked)


def test_impossible_times_get_into_no_amount() -> None:
    odd = [
        step(3000, idle("a"), ts=T0 + 47.5, duration_ms=math.nan),
        step(3001, idle("a"), ts=T0 + 47.6, duration_ms=-40.0),
        step(3002, idle("a"), ts=math.nan, duration_ms=40.0),
        step(3003, idle(*WORKLOADS), ts=T0 + 47.8, duration_ms=0.0),
    ]
    plain, found = (balanced(calibrated(*mixed(), *more), window=8.0, at=T0 + 49) for more in ([], odd))
    assert found.steps == plain.steps + 1
    assert found.total.used == pytest.approx(plain.total.used)
    for one in (found.total, *found.workloads):
        values = [getattr(one, name) for name in WorkloadBalance.__struct_fields__]
        assert all(math.isfinite(value) for value in values if isinstance(value, float))
