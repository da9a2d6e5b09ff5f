"""The rows of one request, found by the id that its client knows."""

from __future__ import annotations

import pytest

from engine.records import Record
from store.requests import RequestStep, request_steps
from tests.store.builders import engine, row, sequence, step, store_of

RANDOM = "0b5f01ca"


@pytest.mark.parametrize(
    ("stored", "answered"),
    [
        (f"cmpl-9a-0-{RANDOM}", "cmpl-9a"),
        (f"chatcmpl-9a-{RANDOM}", "chatcmpl-9a"),
        ("cmpl-9a-0", "cmpl-9a"),
        ("chatcmpl-9a", "chatcmpl-9a"),
        (f"1_cmpl-9a-0-{RANDOM}", "cmpl-9a"),
        (f"cmpl-mine-{RANDOM}-12-{RANDOM}", f"cmpl-mine-{RANDOM}"),
        (f"cmpl-a-0-0-{RANDOM}", "cmpl-a-0"),
        (f"cmpl-9a-0-{RANDOM}", f"cmpl-9a-0-{RANDOM}"),
    ],
)
def test_a_request_is_found_by_the_id_of_its_answer(stored: str, answered: str) -> None:
    others = {f"{answered}-other", answered[:-1], f"{answered}-1", ""} - {stored}
    with store_of([engine(), sequence("a", request=stored), step(1, [row("a")])]) as store:
        (found,) = request_steps(store.connection, [answered, answered])
        assert (found.request, len(found.steps)) == (answered, 1)
        assert request_steps(store.connection, others) == []


def test_its_rows_come_in_order_with_names_and_those_of_others_stay_out() -> None:
    records: list[Record] = [
        engine(),
        sequence("a", "code", request=f"chatcmpl-a-{RANDOM}", disable_speculation=True),
        sequence("b", None, request=f"chatcmpl-b-{RANDOM}", lane="vanilla"),
    ]
    records += [step(n, [row("b"), row("a", d=0, a=0, k=0, limit="hint")]) for n in (1, 2)]
    records += [step(3, [row("a", d=2, a=1, k=4, limit="cap", cause="length_limit")])]
    with store_of(records) as store:
        a, b = request_steps(store.connection, ["chatcmpl-b", "chatcmpl-never", "chatcmpl-a"])
    assert a.steps == [
        RequestStep(1, 0, "hint", 0, 0, 1, "none"),
        RequestStep(2, 0, "hint", 0, 0, 1, "none"),
        RequestStep(3, 4, "cap", 2, 1, 2, "length_limit"),
    ]
    assert a[:-1] == ("chatcmpl-a", "e0", "code", True, "speculative")
    assert (b.request, b.workload, b.lane, [one.step for one in b.steps]) == (
        "chatcmpl-b", "untagged", "vanilla", [1, 2],
    )  # fmt: skip


def test_every_choice_of_a_request_is_told() -> None:
    choices = [sequence(name, request=f"{name}_cmpl-x-0-{RANDOM}") for name in ("0", "1")]
    with store_of([engine(), *choices, step(1, [row("0"), row("1")])]) as store:
        assert [found.request for found in request_steps(store.connection, ["cmpl-x"])] == ["cmpl-x", "cmpl-x"]


def test_a_request_that_has_made_no_step_yet_has_no_rows() -> None:
    with store_of([engine(), sequence("a", request=f"chatcmpl-a-{RANDOM}")]) as store:
        (found,) = request_steps(store.connection, ["chatcmpl-a"])
    assert found.steps == []
