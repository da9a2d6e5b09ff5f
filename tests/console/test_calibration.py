"""Calibration: what is measured in which order, who has precedence, what is kept; and that the model knows it after."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.feed.messages import CalibrationView
from console.station.calibration import Calibration
from console.station.calibration_plan import VISIT_STEPS, Arm, Measured, Pause, batches, half_of, next_visit
from console.station.calibration_result import Calibrated, kept_under
from console.station.calibration_subject import fingerprint
from console.station.calibration_traffic import CalibrationRequests
from console.station.gateway_control import GatewayStats
from console.station.recorder import Received, Remember, open_recorder
from engine.launch import EngineSpec
from engine.policy import PolicyState
from engine.records import ControlRecord, PolicyMode
from engine.step_time.cells import ENOUGH_STEPS
from store.buckets import CALIBRATION
from store.step_models import step_models
from tests.console.calibrated_engine import ADAPTIVE, START, CalibratedEngine, record
from tests.console.fake_engine import fake_engine


class Memory:
    """Stands for the recorder."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.values: dict[str, bytes] = {}
        self.fits = 0
        self.house = SimpleNamespace(fit_soon=self._fit)

    def put(self, item: Any) -> None:
        self.items.append(item)
        if isinstance(item, Remember):
            self.values[item.name] = item.value

    def kept(self, name: str) -> bytes | None:
        return self.values.get(name)

    def controls(self) -> list[ControlRecord]:
        return [item for item in self.items if isinstance(item, ControlRecord)]

    def _fit(self) -> None:
        self.fits += 1


class Bench:
    """A calibration over the stand-in. `until` lets its time pass."""

    def __init__(self, engine: CalibratedEngine, uds: Path, seconds: float, recorder: Any) -> None:
        self.engine = engine
        self.recorder = recorder
        self.state = PolicyState(version=1, policy=ADAPTIVE)
        self.gateway = GatewayStats()
        self.told: list[str] = []
        self.supervisor = SimpleNamespace(state="serving", spec=EngineSpec())
        self.calibration = Calibration(
            seconds, self.supervisor, CalibrationRequests(uds), lambda: self.state, lambda: self.gateway, recorder,
            lambda kind, text: self.told.append(text), engine.clock,
        )  # fmt: skip
        engine.heard.append(self.calibration.take)

    def view(self) -> CalibrationView:
        view = self.calibration.view()
        assert view is not None
        return view

    def set_policy(self, **changes: Any) -> None:
        self.state = msgspec.structs.replace(self.state, **changes)

    async def until(self, condition: Callable[[], bool], seconds: float = 600.0) -> None:
        end = self.engine.now + seconds
        while not condition():
            assert self.engine.now < end, f"never came: {self.view()}, {self.told}"
            await asyncio.sleep(0)

    async def until_state(self, state: str) -> None:
        await self.until(lambda: self.view().state == state)


@contextlib.asynccontextmanager
async def bench(
    seconds: float = 60.0, recorder: Any = None, engine: CalibratedEngine | None = None, **boot: Any
) -> AsyncIterator[Bench]:
    engine = engine or CalibratedEngine()
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as folder:
        uds = Path(folder) / "vllm"
        async with fake_engine(uds, engine.handle):
            made = Bench(engine, uds, seconds, recorder or Memory())
            engine.boot(**boot)
            running = asyncio.create_task(made.calibration.run())
            try:
                yield made
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)


def sizes_asked(made: Bench) -> list[int]:
    return [len(body["prompt"]) for body in made.engine.bodies]


# The plan by itself.

MACHINES = st.tuples(st.floats(1.0, 80.0), st.floats(0.0, 8.0), st.floats(1.0, 4.0))
"""ms of a step: constant, for each sequence, and how much slower it is with drafts."""


class Rehearsed:
    """The plan carried out on a machine of steady speed: what a run does, without the engine."""

    def __init__(self, most: int, machine: tuple[float, float, float], start: float, seconds: float) -> None:
        self.sizes = batches(most)
        self.measured: dict[int, Measured] = {}
        self.now, self.deadline = start, start + seconds
        self.overran: list[int] = []
        self._machine = machine
        for _ in range(10 * len(self.sizes) + 10):
            step = next_visit(self.sizes, self.measured, self.now, self.deadline)
            if step is None:
                return
            if isinstance(step, Pause):
                assert self.now < step.until <= self.deadline
                self.now = step.until
                continue
            assert sorted(step.arms) == ["drafting", "vanilla"]
            self._visit(step.batch, step.arms)
        raise AssertionError("it never ends")

    def _visit(self, batch: int, arms: tuple[Arm, Arm]) -> None:
        constant, each, slower = self._machine
        known = self.measured.get(batch, Measured())
        vanilla, drafting, seconds = list(known.vanilla), known.drafting, {}
        for arm in arms:
            ms = (constant + each * batch) * (slower if arm == "drafting" else 1.0)
            seconds[arm] = VISIT_STEPS[arm] * ms / 1000
            for _ in range(VISIT_STEPS[arm]):
                self.now += ms / 1000
                if arm == "vanilla":
                    vanilla[half_of(self.now)] += 1
                else:
                    drafting += 1
        if self.now > self.deadline:
            self.overran.append(batch)
        self.measured[batch] = Measured((vanilla[0], vanilla[1]), drafting, known.visits + 1, seconds)


@given(most=st.integers(1, 300), machine=MACHINES, start=st.floats(0.0, 20.0), seconds=st.floats(1.0, 120.0))
@settings(max_examples=150, deadline=None)
def test_a_plan_keeps_to_its_time_and_takes_the_smallest_batches_first(
    most: int, machine: tuple[float, float, float], start: float, seconds: float
) -> None:
    done = Rehearsed(most, machine, start, seconds)
    assert done.overran in ([], [1]), "only the first visit of all is made without knowing what it costs"
    assert list(done.measured) == list(done.sizes[: len(done.measured)])
    assert done.measured[1].visits > 0
    assert all(found.known for size, found in done.measured.items() if size > 1), "what is begun is brought to an end"


@given(most=st.integers(1, 64), machine=MACHINES, start=st.floats(0.0, 20.0))
@settings(max_examples=60, deadline=None)
def test_with_time_enough_every_batch_is_measured_in_both_halves_of_the_time(
    most: int, machine: tuple[float, float, float], start: float
) -> None:
    done = Rehearsed(most, machine, start, 1000.0)
    assert list(done.measured) == list(batches(most))
    for found in done.measured.values():
        assert found.known
        assert min(found.vanilla) >= ENOUGH_STEPS // 2


@pytest.mark.parametrize(
    ("most", "sizes"),
    [(1, (1,)), (16, (1, 2, 4, 8, 16)), (24, (1, 2, 4, 8, 16, 24)), (1000, (1, 2, 4, 8, 16, 32, 64, 128, 256))],
)
def test_batches_are_powers_of_two_and_the_most_there_can_be(most: int, sizes: tuple[int, ...]) -> None:
    assert batches(most) == sizes


# Against the stand-in.


AT_0 = {1: 31.5, 2: 34.0, 4: 39.0, 8: 45.0, 16: 57.0, 32: 95.0}
AT_4 = {1: 52.0, 2: 64.0, 4: 89.0, 8: 130.0, 16: 210.0, 32: 400.0}
"""ms of a step by batch size, much as on two cores with the bundled head: by no means linear."""


def noisy(seed: int) -> Callable[[int, int, int], float]:
    source = random.Random(seed)

    def ms(batch: int, tokens: int, k: int) -> float:
        band = 1 << (min(batch, 32) - 1).bit_length()
        return (AT_0[band] + (AT_4[band] - AT_0[band]) * k / 4) * math.exp(source.gauss(0.0, 0.15))

    return ms


async def test_after_it_the_step_time_model_knows_both_arms_of_every_batch(tmp_path: Path) -> None:
    recorder = open_recorder(tmp_path / "store.duckdb", lambda kind, text: None)
    recorder.start()
    engine = CalibratedEngine(noisy(7))
    engine.heard.append(lambda known, message: recorder.put(Received(message, engine.now)))
    async with bench(recorder=recorder, engine=engine, max_num_seqs=32) as made:
        await made.until_state("done")
        assert made.view().text == "batches 1–32 at K 0 and 4"
        assert engine.now - START < 60
    assert await asyncio.to_thread(recorder.flush_and_wait)
    (model,) = step_models(recorder.store.connection).values()
    sizes, nought = np.array(list(AT_0)), np.zeros(len(AT_0), dtype=np.int64)
    assert model.measured(sizes, nought).all()
    assert model.calibrated(sizes, nought, np.ones(len(sizes)))
    context = 40.0 * sizes
    vanilla, drafting = model.vanilla_ms(sizes, context), model.step_ms(sizes, 3.0 * sizes, context, passes=2)
    assert vanilla is not None
    assert drafting is not None
    assert vanilla == pytest.approx(np.array(list(AT_0.values())), rel=0.1)
    between = (np.array(list(AT_0.values())) + np.array(list(AT_4.values()))) / 2
    assert drafting == pytest.approx(between, rel=0.15), "also of a K that was never executed"
    assert recorder.kept(kept_under(fingerprint(record(), None))) is None
    assert recorder.kept(kept_under(fingerprint(record(max_num_seqs=32), None))) is not None
    recorder.stop()


async def test_its_requests_are_tagged_and_hinted_and_aborted_when_the_steps_are_counted() -> None:
    async with bench() as made:
        await made.until_state("done")
        bodies = made.engine.bodies
        assert {body["vllm_xargs"]["workload"] for body in bodies} == {CALIBRATION}
        assert all(body["ignore_eos"] and body["temperature"] == 0 for body in bodies)
        assert sizes_asked(made)[:2] == [1, 1]
        assert [body["vllm_xargs"]["disable_speculation"] for body in bodies[:4]] in ([1, 0, 0, 1], [0, 1, 1, 0])
        assert made.engine.aborted >= sum(sizes_asked(made)[:-1])


async def test_the_result_is_told_recorded_kept_and_fitted() -> None:
    async with bench() as made:
        await made.until_state("done")
        (control,) = made.recorder.controls()
        assert (control.actor, control.action) == ("station", "calibration")
        assert [times["batch"] for times in control.numbers["batches"]] == [1, 2, 4, 8]
        assert control.numbers["batches"][0]["ms_vanilla"] == pytest.approx(21.3)
        assert made.told[-1].startswith("e0 calibrated in ")
        assert made.told[-1].endswith(" s: batches 1–8 at K 0 and 4")
        assert made.recorder.fits == 1


async def test_another_process_of_the_same_is_not_calibrated_again_and_another_version_is() -> None:
    async with bench() as made:
        await made.until_state("done")
        asked = len(made.engine.bodies)
        made.engine.boot(boot="b2")
        await made.until(lambda: made.engine.now > START + 200)
        assert len(made.engine.bodies) == asked
        made.engine.boot(boot="b3", drafter="another")
        await made.until(lambda: len(made.engine.bodies) > asked)
        await made.until_state("done")
    async with bench(recorder=made.recorder) as later:
        await later.until_state("done")
        assert later.engine.bodies == [], "an earlier station has kept it"


async def test_what_was_kept_longer_ago_than_step_times_are_is_measured_anew() -> None:
    old = Calibrated(fingerprint(record(), None), START - 61 * 86400, 30.0, [])
    memory = Memory()
    memory.values[kept_under(old.fingerprint)] = msgspec.json.encode(old)
    async with bench(recorder=memory) as made:
        await made.until_state("running")


@pytest.mark.parametrize("way", ["frames", "gateway"])
async def test_a_client_ends_it_at_once_and_it_comes_back_after_a_minute_without_any(way: str) -> None:
    async with bench() as made:
        engine = made.engine
        if way == "frames":
            engine.at(9.0, engine.client)
        else:
            engine.at(9.0, lambda: setattr(made, "gateway", GatewayStats(active=1)))
            engine.at(12.0, lambda: setattr(made, "gateway", GatewayStats()))
        await made.until_state("running")
        await made.until_state("waiting")
        assert engine.now - START < 10
        asked = len(engine.bodies)
        assert "interrupted by traffic; batch 1" in made.told[-1]
        assert made.recorder.items == [], "an incomplete one is not kept"
        await made.until_state("running")
        assert engine.now - START > 69
        assert len(engine.bodies) == asked
        await made.until_state("done")
        assert sizes_asked(made).count(1) <= 6, "what was measured before counts"


async def test_a_client_that_comes_and_goes_within_a_tick_ends_it_too() -> None:
    async with bench() as made:
        made.engine.at(3.0, lambda: made.engine.client(tokens=1))
        await made.until_state("running")
        await made.until_state("waiting")
        assert made.engine.now - START < 4


async def test_after_three_tries_it_gives_up() -> None:
    async with bench() as made:
        for moment in (1.0, 70.0, 140.0):
            made.engine.at(moment, made.engine.client)
        await made.until_state("skipped")
        assert made.view().text.startswith("interrupted by traffic; probes")
        assert "given up" in made.told[-1]
        assert made.recorder.items == []


async def test_it_waits_for_clients_who_were_there_first() -> None:
    async with bench() as made:
        made.gateway = GatewayStats(active=2)
        made.engine.at(5.0, lambda: setattr(made, "gateway", GatewayStats()))
        await made.until(lambda: "60 s" in made.view().text or "59 s" in made.view().text)
        assert made.engine.bodies == []
        await made.until_state("done")


@pytest.mark.parametrize("seconds", [6.0, 25.0])
async def test_it_ends_by_its_deadline_and_leaves_out_the_largest(seconds: float) -> None:
    async with bench(seconds, engine=CalibratedEngine(lambda n, tokens, k: 30 + 20.0 * n), max_num_seqs=64) as made:
        await made.until(lambda: made.view().state in ("done", "skipped"))
        assert made.engine.now - START < seconds + 1
        assert made.engine.now - START > seconds / 3
        assert made.view().text.startswith("batch"), made.view().text
        assert "64 did not fit into the time" in made.view().text
        await made.until(lambda: made.engine.idle)


async def test_time_for_nothing_is_said_and_nothing_is_kept() -> None:
    async with bench(0.5) as made:
        await made.until_state("skipped")
        assert "no batch size could be measured within 0" in made.view().text
        assert made.recorder.items == []


async def test_an_engine_that_refuses_is_told_with_its_words_and_not_asked_for_ever() -> None:
    engine = CalibratedEngine()
    engine.refuse = 400
    async with bench(engine=engine) as made:
        await made.until_state("skipped")
        assert "answered 400: out of order" in made.view().text
        assert len(engine.bodies) == 3


async def test_steps_that_nobody_hears_of_do_not_keep_it_going() -> None:
    engine = CalibratedEngine()
    async with bench(engine=engine) as made:
        await made.until_state("running")
        engine.silent = True
        await made.until_state("skipped")
        assert engine.now - START < 61


async def test_an_engine_that_dies_in_the_middle_ends_the_try() -> None:
    async with bench() as made:
        made.engine.at(3.0, lambda: setattr(made.supervisor, "state", "restarting"))
        await made.until_state("running")
        await made.until_state("waiting")
        assert "the engine went away" in made.told[-1]


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"policy": PolicyMode(mode="off")}, "skipped"),
        ({"fallback": True}, "waiting"),
        ({"cap": 0}, "waiting"),
    ],
)
async def test_where_nothing_is_drafted_it_leaves_the_engine_alone(changes: dict[str, Any], state: str) -> None:
    async with bench() as made:
        made.set_policy(**changes)
        await made.until(lambda: made.engine.now > START + 5)
        assert (made.view().state, made.engine.bodies) == (state, [])
        made.set_policy(policy=ADAPTIVE, fallback=False, cap=None)
        await made.until_state("done")


@pytest.mark.parametrize("boot", [{"max_k": 0, "method": "none"}, {"batch_k": "fixed"}], ids=["none", "fixed"])
async def test_an_engine_without_steps_of_both_kinds_is_skipped(boot: dict[str, Any]) -> None:
    async with bench(**boot) as made:
        await made.until_state("skipped")
        assert made.engine.bodies == []


async def test_only_batches_at_which_the_schedule_drafts_are_measured() -> None:
    async with bench() as made:
        made.set_policy(policy=PolicyMode(mode="schedule", schedule=[(1, 2, 4), (3, 8, 0)]))
        await made.until_state("done")
        assert set(sizes_asked(made)) == {1, 2}


async def test_it_shows_where_it_is() -> None:
    async with bench() as made:
        await made.until(lambda: made.view().text.startswith("batch 4 of 8, "))


async def test_switched_off_it_neither_shows_nor_does_anything() -> None:
    async with bench(0.0) as made:
        await made.until(lambda: made.engine.now > START + 5, 10)
        assert made.calibration.view() is None
        assert made.engine.bodies == []


@pytest.mark.parametrize(
    "changes", [{"target": "u"}, {"max_num_seqs": 16}, {"max_k": 2}, {"device": "cuda"}, {"tensor_parallel_size": 2}]
)
def test_what_step_times_hang_on_makes_another_fingerprint(changes: dict[str, Any]) -> None:
    assert fingerprint(record(**changes), None) != fingerprint(record(), None)
    assert fingerprint(record(boot="b2", ts=5.0), None) == fingerprint(record(), None)
    assert fingerprint(record(), 1) != fingerprint(record(), 2)
