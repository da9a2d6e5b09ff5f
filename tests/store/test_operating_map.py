"""The operating map: cells by hand-made numbers, the proposal cell by cell, and a known truth found again."""

from __future__ import annotations

from itertools import product
from math import exp, log
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from engine.schedule import lookup, parse_schedule
from store.operating_map.cells import Measured, measure
from store.operating_map.costs import workload_costs
from store.operating_map.loads import band, loads
from store.operating_map.making import make_map, map_cell, map_of, token_shares
from store.operating_map.pairing import Arms, mix_ratio, rate_ratio
from store.operating_map.pooled import Pooled
from store.operating_map.proposal import schedule
from store.operating_map.records import CellArm, MapCell, OperatingMap
from store.operating_map.strata import ArmStrata, Stratum
from store.rehearsal.plan import Phase
from store.rehearsal.proposing import propose
from store.rehearsal.reading import read_passes, read_rehearsal
from tests.engine.deciding_simulator.surface import Surface
from tests.store.rehearsal_folders import ACCEPTS, CHAT, CODE, FINGERPRINT, plan, simulate

COLUMNS = loads(32)


@pytest.mark.parametrize(
    ("most", "last"), [(1, (1, 1)), (2, (2, 2)), (3, (3, 3)), (32, (17, 32)), (24, (17, 24)), (256, (129, 256))]
)
def test_ranges_double_and_end_at_the_largest_batch(most: int, last: tuple[int, int]) -> None:
    found = loads(most)
    assert found[-1] == last
    assert [n for first, stop in found for n in range(first, stop + 1)] == list(range(1, most + 1))
    assert {band(found[-1], n) for n in range(found[-1][0], most + 1)} <= {0, 1, 2, 3}


def test_arms_are_compared_at_equal_load_though_one_stands_at_a_higher_one() -> None:
    """The rate halves with twice as many running. The arm is 1.5 times as fast at either, and mostly at the lower."""
    arm, other = {1: (900.0, 10.0), 2: (45.0, 1.0)}, {1: (60.0, 1.0), 2: (300.0, 10.0)}
    assert rate_ratio(arm, other) == pytest.approx(1.5)
    assert rate_ratio(other, arm) == pytest.approx(1 / 1.5)
    pooled = (945 / 11) / (360 / 11)
    assert pooled > 2.6


def test_without_a_load_in_common_nothing_is_compared() -> None:
    assert rate_ratio({1: (900.0, 10.0)}, {2: (300.0, 10.0)}) is None
    assert rate_ratio({1: (0.0, 10.0)}, {1: (300.0, 10.0)}) is None


def test_a_mix_is_the_time_for_the_tokens_of_each() -> None:
    """3 s of one at 1.5 times the speed, 1 s of another at half of it: 2 s + 2 s."""
    assert mix_ratio({"a": 1.5, "b": 0.5}, {"a": 3.0, "b": 1.0}) == pytest.approx(1.0)


def test_with_two_arms_the_interval_is_the_paired_t() -> None:
    ratios = [1.3, 1.1, 1.25]
    logs = {("k0", r): 0.1 * r for r in range(3)} | {("k4", r): 0.1 * r + log(one) for r, one in enumerate(ratios)}
    found = Arms(logs).ratio("k4", "k0")
    mean, error = np.mean(np.log(ratios)), stats.sem(np.log(ratios))
    half = stats.t.ppf(0.975, 2) * error
    assert found == pytest.approx((exp(mean), exp(mean - half), exp(mean + half)))


def test_what_is_left_over_is_pooled_over_all_arms() -> None:
    """Three arms in two repeats: 2 degrees of freedom, and the spread of all three (a textbook two-way table)."""
    table = {"k0": (0.0, 0.2), "k2": (0.3, 0.6), "k4": (0.1, 0.2)}
    found = Arms({(arm, r): value for arm, values in table.items() for r, value in enumerate(values)})
    rows = np.array(list(table.values()))
    left = rows - rows.mean(axis=1, keepdims=True) - rows.mean(axis=0, keepdims=True) + rows.mean()
    half = stats.t.ppf(0.975, 2) * np.sqrt((left**2).sum() / 2 * 2 / 2)
    assert found.ratio("k2", "k0") == pytest.approx((exp(0.35), exp(0.35 - half), exp(0.35 + half)))
    assert Arms({("k0", 0): 0.0, ("k2", 0): 0.3}).ratio("k2", "k0") == (pytest.approx(exp(0.3)), None, None)


def strata(workload: str, running: int, rate: float, steps: int = 100) -> list[Stratum]:
    """Each row of a workload takes 0.1 s, and the mix's steps as long."""
    seconds = steps * 0.1
    return [
        Stratum(workload, running, steps, round(rate * seconds), seconds),
        Stratum(None, running, steps, round(rate * seconds), seconds),
    ]


def pooled(rates: dict[str, dict[int, float]], workload: str = "code", repeats: int = 1, steps: int = 100) -> Pooled:
    """Tokens/s per sequence of each arm by running sequences."""
    return Pooled(
        [
            ArmStrata(arm, repeat, tuple(one for n, rate in by.items() for one in strata(workload, n, rate, steps)))
            for repeat, (arm, by) in product(range(1, repeats + 1), rates.items())
        ],
        COLUMNS,
    )


def cell(rates: dict[str, float], **more: int) -> Measured:
    found = measure(
        pooled({arm: {3: rate} for arm, rate in rates.items()}, **more), list(rates), (3, 4), None, {"code": 1.0}
    )
    assert found is not None
    return found


def test_the_least_that_is_as_good_as_the_best_is_taken() -> None:
    found = cell({"without": 100.0, "k0": 97.0, "k2": 139.0, "k4": 140.0})
    assert (found.top(), found.best(), found.decided()) == ("k4", "k2", True)
    shown = map_cell(None, (3, 4), found, "without")
    assert (shown.state, shown.best, shown.k) == ("measured", "k2", 2)
    assert shown.gain == pytest.approx(1.39)
    assert [arm.gain and round(arm.gain, 2) for arm in shown.arms] == [None, 0.97, 1.39, 1.4]
    assert shown.arms[2].tokens_per_second == pytest.approx(3 * 139)


def test_where_drafting_is_as_good_as_not_there_is_no_difference() -> None:
    shown = map_cell(None, (3, 4), cell({"k0": 100.0, "k2": 102.0, "k4": 80.0}), "k0")
    assert (shown.state, shown.best, shown.k, shown.gain) == ("no_difference", "k0", 0, None)


def test_where_drafting_is_worse_there_is_a_difference_and_the_ordinary_path_is_named() -> None:
    shown = map_cell(None, (3, 4), cell({"without": 100.0, "k0": 99.0, "k4": 70.0}), "without")
    assert (shown.state, shown.best, shown.k) == ("measured", "without", 0)


@pytest.mark.parametrize(
    ("rates", "steps"), [({"k0": 100.0, "k4": 90.0}, 29), ({"k4": 90.0}, 100)], ids=["29-steps", "one-arm"]
)
def test_a_cell_is_not_measured_by_few_steps_or_by_one_arm(rates: dict[str, float], steps: int) -> None:
    found = measure(
        pooled({arm: {3: rate} for arm, rate in rates.items()}, steps=steps), list(rates), (3, 4), None, {"code": 1.0}
    )
    assert found is None
    assert map_cell(None, (3, 4), found, "k0").state == "not_measured"


def test_the_mix_is_the_plans_whatever_mix_an_arm_had_there() -> None:
    """k4 had only a little of the workload that suits it, k0 much: by the plan both are half of the tokens."""
    both = Pooled(
        [
            ArmStrata("k0", 1, (*strata("code", 3, 100.0, 900), *strata("chat", 3, 100.0, 100))),
            ArmStrata("k4", 1, (*strata("code", 3, 200.0, 100), *strata("chat", 3, 50.0, 900))),
        ],
        COLUMNS,
    )
    found = measure(both, ["k0", "k4"], (3, 4), None, {"code": 0.5, "chat": 0.5})
    assert found is not None
    assert found.arms.ratio("k4", "k0").value == pytest.approx(1 / (0.5 / 2 + 0.5 / 0.5))


def test_an_arm_that_met_too_little_of_a_workload_takes_no_part_in_the_mix() -> None:
    """k4 met its bad workload for 9 steps: on the other alone it would seem to be the best."""

    def passed(arm: str, repeat: int, code: float, chat: float, chat_steps: int) -> ArmStrata:
        return ArmStrata(arm, repeat, (*strata("code", 3, code), *strata("chat", 3, chat, chat_steps)))

    passes = [
        one
        for repeat in (1, 2)
        for one in (
            passed("k0", repeat, 20.0, 20.0, 100), passed("k2", repeat, 26.0, 18.0, 100),
            passed("k4", repeat, 30.0, 12.0, 9),
        )
    ]  # fmt: skip
    found = measure(Pooled(passes, COLUMNS), ["k0", "k2", "k4"], (3, 4), None, {"code": 0.5, "chat": 0.5})
    assert found is not None
    assert set(found.rates) == {"k0", "k2"}
    assert found.arms.ratio("k2", "k0").value == pytest.approx(1 / (0.5 * 20 / 26 + 0.5 * 20 / 18), rel=0.01)


def proposed(*cells: dict[str, float] | None) -> list[tuple[int, int, int]] | None:
    return schedule([None if one is None else cell(one) for one in cells], COLUMNS[: len(cells)])


HELPS, HURTS, EVEN = {"k0": 100.0, "k4": 150.0}, {"k0": 100.0, "k4": 60.0}, {"k0": 100.0, "k4": 101.0}


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ((HELPS, HELPS, HURTS), [(1, 2, 4), (3, 4, 0)]),
        ((HELPS, EVEN, HELPS), [(1, 4, 4)]),
        ((HELPS, EVEN, HURTS), [(1, 1, 4), (2, 4, 0)]),
        ((EVEN, EVEN), [(1, 2, 0)]),
        ((HELPS, None, None), [(1, 4, 4)]),
        ((HURTS, None, HELPS), [(1, 2, 0), (3, 4, 4)]),
        ((None, HELPS, HURTS), [(1, 2, 4), (3, 4, 0)]),
        ((None, None), None),
    ],
    ids=["falls", "beside", "lower", "nowhere", "carried", "between", "below", "nothing"],
)
def test_the_schedule_cell_by_cell(cells: tuple[dict[str, float] | None, ...], expected: object) -> None:
    assert proposed(*cells) == expected


RATES = st.dictionaries(st.sampled_from(["k0", "k1", "k2", "k4"]), st.floats(50, 200), min_size=2)


@given(st.lists(st.none() | RATES, min_size=1, max_size=6))
def test_a_schedule_is_one_and_covers_every_load(cells: list[dict[str, float] | None]) -> None:
    found = proposed(*cells)
    if found is None:
        assert not any(cells)
        return
    assert lookup(parse_schedule(found), 1) == found[0][2]
    assert [n for first, last, _ in found for n in range(first, last + 1)] == list(
        range(1, COLUMNS[len(cells) - 1][1] + 1)
    )
    assert {k for _, _, k in found} <= {int(arm[1:]) for one in cells if one for arm in one}


def test_what_the_schedule_costs_a_workload_is_the_time_that_its_tokens_take() -> None:
    """Under the baseline it spends 30 s where the schedule gains 1.5, and 10 s where it halves its speed."""
    columns, rate = COLUMNS[:2], {"tokens_per_second": 10.0, "steps": 100, "repeats": 2}
    cells = [
        MapCell(workload="chat", first=first, last=last, state="measured", best="k4", k=4, arms=[
            CellArm(arm="k0", k=0, **rate),
            CellArm(arm="k4", k=4, gain=gain, low=gain - 0.1, high=gain + 0.1, **rate),
        ])
        for (first, last), gain in zip(columns, (1.5, 0.5), strict=True)
    ]  # fmt: skip
    times = {columns[0]: 30.0, columns[1]: 10.0}
    (found,) = workload_costs(cells, ["chat"], [(1, 2, 4)], "k0", lambda name, load: times[load])
    assert found.gain == pytest.approx(40 / (30 / 1.5 + 10 / 0.5))
    assert found.low == pytest.approx(40 / (30 / 1.4 + 10 / 0.4))
    assert found.own_best_gain == pytest.approx(40 / (30 / 1.5 + 10))
    (none,) = workload_costs(cells, ["chat"], [(1, 2, 3)], "k0", lambda name, load: times[load])
    assert none.gain is None


ARMS = ("without", "k0", "k2", "k4")
LADDER = tuple(Phase(name=f"p{n}", seconds=15.0, rate=rate) for n, rate in enumerate((0.5, 1.5, 3.5, 6.0, 9.0)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rehearsals") / "known"
    simulate(path, plan(arms=ARMS, phases=LADDER, repeats=3, survey=2), tax=1.05, surface=Surface(noise=0.1))
    return path


@pytest.fixture(scope="module")
def made(folder: Path) -> OperatingMap:
    return make_map(folder)


def true_rate(k: int, running: int, *workloads: str) -> float:
    """Tokens/s of one sequence of a mix by the simulator's own law, answers of equal length of each."""
    step = float(Surface().ms(running, running * (1 + k), k, 75 * running))
    tokens = [sum(ACCEPTS[name] ** j for j in range(k + 1)) for name in workloads]
    return len(tokens) / sum(step / one for one in tokens)


@pytest.mark.parametrize("workload", ["code", "chat"])
def test_the_arm_that_is_truly_best_is_found_in_every_cell(made: OperatingMap, workload: str) -> None:
    judged = [one for one in made.cells if one.workload == workload and one.state == "measured"]
    assert len(judged) >= 4
    for one in judged:
        assert one.k is not None
        middle = (one.first + one.last) // 2
        truly = {k: true_rate(k, middle, workload) for k in (0, 2, 4)}
        assert truly[one.k] > 0.93 * max(truly.values()), (one.first, one.best, truly)


def test_gains_are_those_of_the_known_law_within_their_intervals(made: OperatingMap) -> None:
    known = [
        (arm, true_rate(arm.k or 0, cell.first, "code") / true_rate(0, cell.first, "code") / 1.05)
        for cell in made.cells if cell.workload == "code" and cell.first == cell.last
        for arm in cell.arms if arm.gain is not None and arm.low is not None and arm.high is not None
    ]  # fmt: skip
    assert len(known) >= 5
    assert all(arm.low < truth * 1.03 and truth * 0.97 < arm.high for arm, truth in known if arm.low and arm.high)


def test_the_gain_of_a_fixed_k_falls_with_load_and_the_map_changes_arms(made: OperatingMap) -> None:
    mix = [cell for cell in made.cells if cell.workload is None and cell.arms]
    gains = [arm.gain for cell in mix for arm in cell.arms if arm.arm == "k4" and arm.gain is not None]
    assert gains[0] > 1.3
    assert gains[-1] < 0.95
    assert made.baseline == "without"
    assert made.schedule is not None
    ks = [lookup(parse_schedule(made.schedule), first) for first, _ in made.loads]
    assert ks[0] >= 2
    assert ks[-1] == 0


def test_the_schedule_is_from_the_mix_and_says_what_it_costs_the_workload_that_pays(made: OperatingMap) -> None:
    code, chat = made.costs
    assert (code.workload, chat.workload) == ("code", "chat")
    assert code.gain is not None
    assert chat.gain is not None
    assert chat.own_best_gain is not None
    assert code.gain > 1.03 > 1 > chat.gain
    assert chat.own_best_gain > chat.gain


def test_the_proposal_is_of_the_survey_alone(folder: Path) -> None:
    """Its folder is read as it stands when the survey is over: the comparison takes no part."""
    rehearsal = read_rehearsal(folder)
    survey = read_passes(folder, rehearsal, "survey")
    assert {one.made.repeat for one in survey} == {1, 2}
    assert propose(folder) == map_of(rehearsal, survey).schedule


def test_a_long_answer_weighs_more_than_a_short_one(folder: Path) -> None:
    rehearsal = read_rehearsal(folder)
    shares = token_shares(rehearsal.plan, read_passes(folder, rehearsal))
    assert shares["code"] == pytest.approx(0.6 * 50 / (0.6 * 50 + 0.4 * 25), abs=0.03)
    assert sum(shares.values()) == pytest.approx(1)


def test_a_map_travels_as_json_and_names_what_it_is_of(made: OperatingMap) -> None:
    again = msgspec.json.decode(msgspec.json.encode(made), type=OperatingMap)
    assert again == made
    assert made.fingerprint == FINGERPRINT
    assert made.workloads == [CODE.name, CHAT.name]
    assert [(one.workload, one.first) for one in made.cells] == [
        (name, first) for name in (None, "code", "chat") for first, _ in made.loads
    ]
