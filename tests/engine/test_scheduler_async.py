"""The hooked asynchronous scheduler, two steps in flight, with fabricated outputs (it cannot run on a CPU)."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from engine.records import PolicyMode
from tests.engine.fabricated import Driver


@pytest.fixture
def driver(bundled_model: Path) -> Driver:
    return Driver(bundled_model, async_scheduling=True)


def _pipeline(driver: Driver, steps: int, accepted: dict[str, int], modes: dict[int, PolicyMode]) -> list[int]:
    """Run `steps` steps with two in flight; `modes` switches the policy before the step of that number."""
    batch_k = []
    flying = []
    for number in range(steps):
        if number in modes:
            driver.policy(modes[number], version=number)
        output = driver.schedule()
        batch_k.append(output.num_spec_tokens_to_schedule)
        flying.append(output)
        if len(flying) == 2:
            driver.update(flying.pop(0), accepted)
    driver.update(flying.pop(0), accepted)
    return batch_k


def test_rows_equal_vllms_own_detail_while_k_changes_between_steps(driver: Driver) -> None:
    driver.add("a", max_tokens=60)
    driver.add("b", max_tokens=60)
    modes = {3: PolicyMode(mode="static", k=1), 5: PolicyMode(mode="off"), 7: PolicyMode(mode="static", k=3)}
    batch_k = _pipeline(driver, 12, {"a": 1, "b": 4}, modes)
    assert batch_k == [4, 4, 4, 1, 1, 0, 0, 3, 3, 3, 3, 3]
    for name in "ab":
        drafted, accepted = driver.oracle(name)
        rows = [row for row in driver.rows(name) if row["drafted"]]
        assert [row["drafted"] for row in rows] == drafted
        assert [row["accepted"] for row in rows] == accepted
        assert len({*drafted}) > 1


def test_what_is_verified_is_what_the_step_before_asked_for(driver: Driver) -> None:
    driver.add("a", max_tokens=60)
    _pipeline(driver, 10, {"a": 0}, {4: PolicyMode(mode="static", k=2)})
    rows = driver.rows("a")
    for before, row in itertools.pairwise(rows):
        assert row["k_verify"] == before["k_draft"]
        assert row["k_asked"] <= row["k_verify"]
        assert row["drafted"] == row["k_asked"]


def test_context_is_what_was_really_computed_not_vllms_optimistic_count(driver: Driver) -> None:
    driver.add("a", prompt=5, max_tokens=60)
    _pipeline(driver, 8, {"a": 1}, {})
    contexts = [row["context"] for row in driver.rows("a")]
    assert contexts[:4] == [0, 5, 7, 9]


def test_proposed_is_unknown(driver: Driver) -> None:
    driver.add("a")
    _pipeline(driver, 4, {"a": 2}, {})
    assert {row["proposed"] for row in driver.rows("a")} == {None}


def test_a_hint_is_trimmed_out_of_the_shared_placeholder_list(driver: Driver) -> None:
    driver.add("plain", max_tokens=60)
    driver.add("hinted", max_tokens=60, disable_speculation=1)
    _pipeline(driver, 8, {"plain": 2}, {})
    assert all(row["drafted"] == 0 for row in driver.rows("hinted"))
    assert [row["drafted"] for row in driver.rows("plain")][2:] == [4] * (len(driver.rows("plain")) - 2)
    assert driver.oracle("hinted") == ([], [])


def test_filler_near_the_length_limit_is_not_scheduled(bundled_model: Path) -> None:
    driver = Driver(bundled_model, async_scheduling=True, max_model_len=64)
    driver.add("long", prompt=57, max_tokens=20)
    driver.add("short", max_tokens=40)
    _pipeline(driver, 12, {"long": 0, "short": 0}, {})
    assert any(row["cause"] == "length_limit" and row["drafted"] == 0 for row in driver.rows("short"))
    for name in ("long", "short"):
        drafted, _ = driver.oracle(name)
        assert [row["drafted"] for row in driver.rows(name) if row["drafted"]] == drafted


def test_overlapping_steps_are_not_counted_twice(driver: Driver) -> None:
    driver.add("a", max_tokens=80)
    _pipeline(driver, 10, {"a": 0}, {})
    steps = [frame.step for frame in driver.frames if frame.step is not None]
    spanned = (steps[-1].ts - steps[0].ts) * 1000
    assert sum(step.duration_ms for step in steps[1:]) <= spanned + 5
