"""Probes through vLLM's own schedulers, synchronous and with two steps in flight, against its own counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

from engine.policy import ProbeOrder, WorkloadPolicy
from engine.probing import QUIET_STEPS
from engine.records import PolicyMode
from engine.schedule import clamp, lookup, parse_schedule
from tests.engine.fabricated import Driver
from tests.engine.test_schedule import schedules

ADAPTIVE = PolicyMode(mode="adaptive", schedule=[(1, 4, 4), (5, 512, 2)], act=True)


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def driver(request: pytest.FixtureRequest, bundled_model: Path) -> Driver:
    driver = Driver(bundled_model, async_scheduling=request.param)
    driver.policy(ADAPTIVE, 1, workloads={"code": WorkloadPolicy(k=1), "fallen": WorkloadPolicy(fallback=True)})
    for name, workload in (("a", "code"), ("b", "code"), ("c", "chat"), ("d", "fallen")):
        driver.add(name, max_tokens=240, workload=workload)
    return driver


def run(driver: Driver, steps: int) -> None:
    if not driver.scheduler.recorder._limits.async_scheduling:
        for _ in range(steps):
            driver.step(accepted={"a": 1, "c": 2})
        return
    flying = []
    for _ in range(steps):
        flying.append(driver.schedule())
        if len(flying) == 2:
            driver.update(flying.pop(0), {"a": 1, "c": 2})
    driver.update(flying.pop(), {"a": 1, "c": 2})


def give(driver: Driver, kind: str, k: int, workload: str | None) -> None:
    order = ProbeOrder(id=1, kind=kind, workload=workload, k=k, steps=6, wait=0)  # type: ignore[arg-type]
    driver.scheduler.recorder.drafting.probing.give("s", order)


@pytest.mark.parametrize(("kind", "k", "workload"), [("k0", 0, None), ("deep", 4, "code"), ("recover", 2, "fallen")])
def test_what_a_probe_drafts_is_what_vllm_verified(driver: Driver, kind: str, k: int, workload: str | None) -> None:
    run(driver, QUIET_STEPS + 2)
    give(driver, kind, k, workload)
    run(driver, 14)
    marked = [frame.step for frame in driver.frames if frame.step is not None and frame.step.probe]
    assert [step.probe for step in marked] == [kind] * 6
    for name in "abcd":
        rows = [row for row in driver.rows(name) if row["drafted"]]
        assert ([row["drafted"] for row in rows], [row["accepted"] for row in rows]) == driver.oracle(name)
    within = {step.step for step in marked}
    touched = {row["seq"] for row in driver.rows() if row["limit"] == "probe"}
    assert touched == {"k0": {"a", "b", "c"}, "deep": {"a", "b"}, "recover": {"d"}}[kind]
    assert {row["step"] for row in driver.rows() if row["limit"] == "probe"} == within
    drafted = {row["drafted"] for row in driver.rows() if row["limit"] == "probe"}
    assert drafted == {0} if kind == "k0" else drafted == {2} if kind == "recover" else 1 < len(drafted) <= 4


@settings(max_examples=60)
@given(schedules())
def test_k_per_batch_size_is_what_vllms_own_table_says(entries: list[list[int]]) -> None:
    from vllm.v1.spec_decode.dynamic.utils import build_dynamic_sd_schedule_lookup

    table = build_dynamic_sd_schedule_lookup(entries, 60, 4)
    schedule = clamp(parse_schedule(entries), 4).schedule
    assert [lookup(schedule, size) for size in range(1, 61)] == table[1:]


def test_prefills_count_in_the_lookup(bundled_model: Path) -> None:
    driver = Driver(bundled_model)
    driver.policy(PolicyMode(mode="schedule", schedule=[(1, 4, 2), (5, 512, 0)]), 1)
    for name in "abcd":
        driver.add(name)
    driver.step()
    k_draft = [driver.step().num_spec_tokens_to_schedule]
    for name in ("e", "f"):
        driver.add(name, prompt=20, max_tokens=1)  # it prefills, and is gone with the step
        k_draft.append(driver.step().num_spec_tokens_to_schedule)
        k_draft.append(driver.step().num_spec_tokens_to_schedule)
    assert k_draft == [2, 0, 2, 0, 2]
    limits = [frame.step.limit_draft for frame in driver.frames if frame.step is not None]
    assert set(limits) == {"schedule"}
