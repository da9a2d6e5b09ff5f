"""What waits to be confirmed is taken back: at its deadline, or at once when tokens/s fall at the load there was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from console.station.before_after import CONFIDENCE
from console.station.confirming import Confirming
from console.station.engines import KnownEngine
from console.station.slowdown import compare
from console.station.step_blocks import Block, Load
from engine.frames import CAUSE_CODE, COLUMNS, WIRE_VERSION, Announcement, Frame, PackedStep, pack_columns
from engine.records import EngineRecord, PolicyMode, Probe
from store.database import Store
from tests.console.policy_desk import ADAPTIVE, STATIC, Desk, learn

DEEPER = PolicyMode(mode="static", k=8)
KNOWN = KnownEngine("e0", owned=True)


@pytest.fixture(scope="module")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("store") / "s.duckdb") as store:
        yield store


@pytest.fixture
def desk(tmp_path: Path, empty_store: Store) -> Desk:
    return Desk(tmp_path, empty_store, writes=False)


class Serving:
    """An engine whose steps take about `ms` each and give about `each` tokens a sequence."""

    def __init__(self, confirming: Confirming, seed: int = 1) -> None:
        self._confirming = confirming
        self._random = np.random.default_rng(seed)
        self._frame = 0
        self._ts = 1000.0

    def steps(
        self, count: int, policy: int, *, ms: float, running: int = 16, each: float = 2.0, prefill: int = 0,
        probe: Probe | None = None, boot: str = "b",
    ) -> None:  # fmt: skip
        for _ in range(count):
            took = ms * float(self._random.lognormal(0, 0.1))
            self._ts += took / 1000
            self._frame += 1
            emitted = [int(n) for n in self._random.binomial(4, (each - 1) / 4, running) + 1]
            causes = [CAUSE_CODE["full"]] * running
            if prefill:
                emitted[0], causes[0] = 1000, CAUSE_CODE["prefill"]
            rows = dict.fromkeys(COLUMNS, [0] * running) | {"emitted": emitted, "cause": causes}
            step = PackedStep(
                step=self._frame, ts=self._ts, duration_ms=took, k_verify=4, k_draft=4, running=running, waiting=0,
                prefill_tokens=prefill, probe=probe, policy=policy, limit_draft="static", count=running,
                columns=pack_columns([rows[name] for name in COLUMNS]),
            )  # fmt: skip
            self._confirming.take(KNOWN, Frame(WIRE_VERSION, "e0", boot, self._frame, [], step, []))


def announcement(policy: int, reverted: float | None) -> Announcement:
    record = EngineRecord(
        engine="e0", ts=0.0, vllm="", target="t", drafter="d", method="ngram", max_k=8, batch_k="free", max_num_seqs=32,
        data_parallel_size=1, device="cpu", async_scheduling=False, configured=STATIC, resolved=STATIC,
    )  # fmt: skip
    return Announcement(WIRE_VERSION, record, "b", 0, [], policy, None, 0, reverted)


def raised(desk: Desk) -> int:
    return desk.set(policy=DEEPER, confirm=300).version


def test_a_change_that_nobody_confirms_is_taken_back_at_its_deadline(desk: Desk) -> None:
    raised(desk)
    desk.skip(299)
    view = desk.confirming.view()
    assert view is not None
    assert (view.reverts_to, view.confirm_by) == (STATIC, desk.state.confirm_by)
    desk.skip(2)
    assert desk.state.policy == STATIC
    assert desk.confirming.view() is None
    told = desk.recorded[-1]
    assert (told.actor, told.action, told.why) == ("station", "revert", "not confirmed within 5 min")


def test_a_confirmed_one_stays(desk: Desk) -> None:
    raised(desk)
    desk.confirm()
    desk.skip(400)
    assert desk.state.policy == DEEPER


def test_a_station_that_finds_the_deadline_passed_takes_it_back_at_once(tmp_path: Path, empty_store: Store) -> None:
    raised(Desk(tmp_path, empty_store, writes=False))
    later = Desk(tmp_path, empty_store, writes=False, resume=True)
    assert later.state.policy == DEEPER
    later.skip(301)
    assert later.state.policy == STATIC
    assert (later.recorded[-1].why or "").startswith("not confirmed by ")


def test_what_an_engine_took_back_by_itself_is_taken_back_here_too(desk: Desk) -> None:
    version = raised(desk)
    desk.confirming.take(KNOWN, announcement(version - 1, reverted=5.0))
    desk.skip(1)
    assert desk.state.policy == DEEPER
    desk.confirming.take(KNOWN, announcement(version, reverted=5.0))
    desk.skip(1)
    assert desk.state.policy == STATIC
    assert desk.recorded[-1].why == "not confirmed within 5 min; e0 had taken it back by itself"


def test_a_raise_that_makes_serving_slower_is_taken_back_at_once_with_its_numbers(desk: Desk) -> None:
    engine, before = Serving(desk.confirming), desk.state.version
    engine.steps(400, before, ms=40)
    version = raised(desk)
    engine.steps(20, before, ms=40)  # still on their way when it was made
    engine.steps(200, version, ms=60)
    desk.skip(1)
    assert desk.state.policy == STATIC
    told = desk.recorded[-1]
    assert told.actor == "station"
    assert (told.why or "").startswith("tokens/s fell by 3")
    assert (told.why or "").endswith("at batch 16")
    numbers = told.numbers or {}
    assert numbers["low"] < 2 / 3 < numbers["high"] < 1
    assert numbers["before"] == pytest.approx(800, rel=0.05)
    assert numbers["after"] == pytest.approx(533, rel=0.05)
    assert (numbers["blocks_before"], numbers["blocks_after"]) == (42, 19)


def test_what_adaptive_does_under_a_loan_is_part_of_the_trial(desk: Desk) -> None:
    engine, before = Serving(desk.confirming), desk.state.version
    engine.steps(400, before, ms=40)
    desk.set("rehearsal", policy=ADAPTIVE, confirm=300)
    learn(desk, "chat", k=1)
    engine.steps(200, desk.state.version, ms=60)
    desk.skip(1)
    assert desk.state.policy == ADAPTIVE
    desk.set(cap=8)  # the operator's own change under it is watched again
    engine.steps(200, desk.state.version, ms=60)
    desk.skip(1)
    assert desk.state.policy == STATIC


def test_too_few_steps_say_nothing(desk: Desk) -> None:
    engine, before = Serving(desk.confirming), desk.state.version
    engine.steps(400, before, ms=40)
    engine.steps(84, raised(desk), ms=400)
    desk.skip(1)
    assert desk.state.policy == DEEPER


def test_no_step_before_says_nothing(desk: Desk) -> None:
    engine = Serving(desk.confirming)
    engine.steps(400, raised(desk), ms=400)
    desk.skip(1)
    assert desk.state.policy == DEEPER


def test_another_load_is_not_blamed_on_the_change(desk: Desk) -> None:
    engine, before = Serving(desk.confirming), desk.state.version
    for running, ms in ((16, 40), (4, 30)):
        engine.steps(200, before, ms=ms, running=running)
    version = raised(desk)
    engine.steps(20, version, ms=40)
    for running, prefill, ms in ((4, 0, 30), (2, 0, 28), (16, 512, 300)):
        engine.steps(150, version, ms=ms, running=running, prefill=prefill)
    desk.skip(1)
    assert desk.state.policy == DEEPER


def test_tokens_that_prefills_and_probes_gave_do_not_count(desk: Desk) -> None:
    engine, before = Serving(desk.confirming), desk.state.version
    engine.steps(200, before, ms=40, prefill=64)
    version = raised(desk)
    engine.steps(100, version, ms=200, prefill=64, probe="k0")
    desk.skip(1)
    assert desk.state.policy == DEEPER
    engine.steps(100, version, ms=60, prefill=64)
    desk.skip(1)
    assert desk.state.policy == STATIC


def test_another_process_is_no_measure_for_the_one_before_it(desk: Desk) -> None:
    engine, before = Serving(desk.confirming), desk.state.version
    engine.steps(400, before, ms=40)
    engine.steps(200, raised(desk), ms=80, boot="c")
    desk.skip(1)
    assert desk.state.policy == DEEPER


def test_steps_since_the_last_change_are_held_against_those_before_the_first(desk: Desk) -> None:
    engine, before = Serving(desk.confirming), desk.state.version
    engine.steps(400, before, ms=40)
    engine.steps(60, raised(desk), ms=80)
    version = desk.set(cap=4).version
    engine.steps(200, version, ms=40)
    desk.skip(1)
    assert desk.state.policy == DEEPER


def drifting(count: int, fell: float, seed: int) -> tuple[list[Block], list[Block]]:
    """Blocks before and after a change on a machine with good and bad seconds; tokens/s falls by a part of `fell`."""
    noise, slow, found = np.random.default_rng(seed), 0.0, []
    for number in range(150 + count):
        slow = 0.9 * slow + 0.1 * float(noise.normal()) * (1 - 0.9**2) ** 0.5
        ms = 400 * float(np.exp(slow + 0.02 * noise.normal())) / (1 if number < 150 else 1 - fell)
        found.append(Block(Load("e0", 16, 0), 0.4 * number, 16.0, 320, ms))
    return found[:150], found[150:]


def blamed(count: int, fell: float) -> float:
    """Part of 200 changes that one look takes for a slow-down."""
    found = (compare(*drifting(count, fell, seed), CONFIDENCE) for seed in range(200))
    return sum(one is not None and one.high < 1 for one in found) / 200


@pytest.mark.parametrize("count", [8, 40, 150])
def test_a_harmless_change_on_an_unsteady_machine_is_not_blamed_for_it(count: int) -> None:
    assert blamed(count, 0.0) <= 0.02


def test_half_of_the_tokens_gone_is_seen_on_an_unsteady_machine_too() -> None:
    assert blamed(8, 0.5) >= 0.8
