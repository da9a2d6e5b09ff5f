"""A drafter that can't be told to stop: its sequences are only trimmed, and what that saves is known all the same."""

from __future__ import annotations

import numpy as np
import pytest

from engine.deciding.estimates import Loads
from engine.deciding.objective import Objective, Prospects
from engine.deciding.settings import DecidingSettings
from engine.records import Record
from engine.step_time.model import StepModel, fit_step_model
from store.step_times import step_times
from tests.engine.deciding_simulator.run import run_adaptive
from tests.engine.deciding_simulator.surface import Surface
from tests.engine.deciding_simulator.traffic import Workload, kept, steady
from tests.store.builders import T0, engine, row, sequence, step, store_of

SURFACE = Surface()
BATCHES = (1, 2, 4, 8)


@pytest.fixture(scope="module")
def model() -> StepModel:
    """From a store: 30 steps of each batch and each length that all sequences are trimmed to, over and over."""
    random, ts = np.random.default_rng(7), T0
    records: list[Record] = [
        engine(method="custom_class", batch_k="fixed", max_k=4), *(sequence(f"s{number}") for number in range(8)),
    ]  # fmt: skip
    for number in range(6 * len(BATCHES) * 5 * 20):
        batch, k = BATCHES[number // 20 % 4], number // 80 % 5
        ms = float(SURFACE.ms(batch, batch * (1 + k), 4, 100 * batch)) * float(np.exp(random.normal(0, 0.05)))
        ts += ms / 1000
        rows = [row(f"s{one}", d=k, a=0) for one in range(batch)]
        records.append(step(number + 1, rows, ts=ts, duration_ms=ms, k_verify=4, k_draft=4))
    with store_of(records) as store:
        (times,) = step_times(store.connection).values()
    return fit_step_model(times)


def test_no_step_of_it_is_vanilla_and_yet_its_times_are_known(model: StepModel) -> None:
    assert model.clean_steps == 0
    assert model.vanilla_ms([4], [400]) is None, "no speedup is claimed"
    assert model.error is not None
    assert model.error < 0.1
    assert model.coefficients.tokens == pytest.approx(SURFACE.token, rel=0.25)


def test_trimming_one_of_two_workloads_is_worth_what_its_tokens_cost(model: StepModel) -> None:
    loads = Loads(np.array([100.0]), np.array([[2.0, 2.0]]), np.array([0.0]), np.array([400.0]))
    found = Objective.of(loads, model, np.array([4]), 4, fixed=True)
    assert found is not None
    worthless = Prospects(np.ones((2, 5)), np.tile(np.arange(5.0), (2, 1)))
    all_at_4, one_trimmed = (found.ms(np.array(lengths), worthless) / 100 for lengths in ([4, 4], [0, 4]))
    saved = all_at_4 - one_trimmed
    assert saved == pytest.approx(8 * SURFACE.token, rel=0.25)
    assert Objective.of(loads, model, np.array([4]), 4, fixed=False) is None, "where it could stop, K = 0 is to be seen"


def test_it_finds_the_cost_of_drafts_by_itself_and_turns_off_those_that_bring_nothing() -> None:
    brisk = DecidingSettings(window_s=15.0, recent_s=10.0, load_s=10.0, shortest_pause_s=4.0, longest_pause_s=20.0,
                             dwell_steps=30, probe_share=0.05, probe_wait_steps=4)  # fmt: skip
    hostile = Workload("hostile", steady((0.02,) * 4), kept(2), spread=0.0)
    friendly = Workload("friendly", steady((0.95,) * 4), kept(2))
    station, _ = run_adaptive(
        [hostile, friendly], 60.0, settings=brisk, fixed=True, calibrated=False, refit_s=10.0,
        surface=Surface(passing=0.05, passing_row=0.0),
    )  # fmt: skip
    first = station.journal.decisions[0]
    assert (first.workload, first.action, first.k_after) == ("hostile", "k", 0)
    assert first.predicted == pytest.approx(0.27, abs=0.08), "eight tokens less of twenty"
    assert {made.workload for made in station.journal.decisions} == {"hostile"}
    assert {order.kind for _, order in station.journal.orders} >= {"k0"}
