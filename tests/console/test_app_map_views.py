"""The pure part of the Map screen: the grid without colours, verdicts, ranges, the chart, the words of a rehearsal."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from console.app.drawing.spans import text_of, width_of
from console.app.frame.statusline import status_line
from console.app.map import grid as map_grid
from console.app.map.cell import cell_lines
from console.app.map.chart import gain_chart
from console.app.map.explanation import explain_cell
from console.app.map.facts import map_facts
from console.app.map.words import cell_of, column_of, verdict
from console.app.picture import Link, Picture
from console.app.policy.range_table import by_range
from console.app.rehearsal.words import passes_of, progress_bar, rehearsal_lines
from console.feed.messages import AlertView, Snapshot
from engine.policy import base_k
from engine.records import PolicyMode
from store.operating_map.records import CellArm, CellState, MapCell, OperatingMap
from tests.console import map_scenes, scenes

MAP = map_scenes.operating_map()
WIDE_MAP = replace(MAP, loads=[(2**n // 2 + 1, 2**n) for n in range(11)])


def picture(scene: Snapshot) -> Picture:
    return Picture(Link("connected", scenes.NOW), scenes.NOW, scene)


def in_grid(workload: str | None, column: int, stale: bool = False) -> str:
    return text_of(map_grid.grid_cell(MAP, cell_of(MAP, workload, MAP.loads[column]), 10, stale).line)


def arm(name: str, rate: float, low: float | None = None, high: float | None = None) -> CellArm:
    k = None if name == "without" else int(name[1:])
    gain = None if name == "without" else rate
    return CellArm(arm=name, k=k, tokens_per_second=rate, gain=gain, low=low, high=high, steps=100, repeats=3)


def test_each_state_of_a_cell_can_be_told_without_colours() -> None:
    assert in_grid("code", 0) == "k4  1.84 ▆"
    assert in_grid("chat", 3) == "k1  1.18 ▂"
    assert in_grid("creative", 2) == "w/o 1.00  "
    assert in_grid("creative", 1) == "w/o    =  "
    assert in_grid("creative", 5) == "       ·  "
    assert in_grid("code", 0, stale=True) == "k4╱╱1.84╱╱"


def test_a_warmer_cell_has_a_higher_gain() -> None:
    cells = [(cell, map_grid.grid_cell(MAP, cell, 10, False).heat) for cell in MAP.cells if cell.state == "measured"]
    cells.sort(key=lambda pair: pair[0].gain or 1.0)
    assert [heat for _, heat in cells] == sorted(heat for _, heat in cells)
    assert cells[0][1] == 0
    assert cells[-1][1] == len(map_grid.LEVELS)


@given(st.integers(min_value=58, max_value=220), st.integers(min_value=0, max_value=10))
def test_the_wanted_column_is_in_view_and_every_row_fits(width: int, wanted: int) -> None:
    grid = map_grid.layout(WIDE_MAP, width, wanted)
    assert grid.first <= wanted < grid.first + grid.columns <= len(WIDE_MAP.loads)
    assert grid.name + grid.columns * grid.cell + sum(size for _, size in grid.costs) <= width
    assert width_of(map_grid.header(WIDE_MAP, grid, wanted, 3)) <= width + 1
    edge = grid.name + (wanted - grid.first) * grid.cell
    assert grid.column_at(edge) == wanted == grid.column_at(edge + grid.cell - 1)


def test_an_idle_engine_stands_in_the_first_column_and_an_unknown_load_in_none() -> None:
    assert [column_of(MAP, running) for running in (0, 1, 7, 32, 40, None)] == [0, 0, 3, 5, None, None]


def measured(best: str, *arms: CellArm, state: CellState = "measured") -> MapCell:
    chosen = next(arm for arm in arms if arm.arm == best)
    return MapCell(
        workload="a", first=1, last=1, state=state, best=best, gain=chosen.gain, low=chosen.low, high=chosen.high,
        arms=list(arms),
    )  # fmt: skip


BASE, K0 = arm("without", 1.0), arm("k0", 0.9, 0.8, 1.0)
K1, K2 = arm("k1", 1.27, 1.2, 1.35), arm("k2", 1.3, 1.2, 1.4)


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (measured("k2", BASE, K0, K2), "k2 is best: 1.30× without (1.20 to 1.40)."),
        (
            measured("k1", K0, K1, K2),
            "k1 is best: 1.27× without (1.20 to 1.35). k2 drafts more and is not clearly faster.",
        ),
        (measured("k2", BASE, arm("k2", 1.3)), "k2 is best: 1.30× without, of one pass alone: nothing is promised."),
        (measured("without", BASE, K0), "Nothing beats without, the best ordinary path, here."),
        (
            measured("without", BASE, arm("k2", 1.02, 0.97, 1.07), state="no_difference"),
            "No difference: k2, the fastest at 1.02× (0.97 to 1.07), can't be told from without, which drafts less;"
            " so without.",
        ),
        (
            measured("without", BASE, arm("k1", 0.99, 0.93, 1.05), state="no_difference"),
            "No difference: without is fastest, but arms that draft more can't be told from it.",
        ),
        (
            measured("k0", replace(K0, gain=None, low=None, high=None)),
            "k0 is best. without was not measured here, so there is no gain over it.",
        ),
        (
            MapCell(workload="a", first=1, last=1, state="not_measured"),
            "Not measured: no arm ran long enough here. A plan whose traffic keeps the engine at this load fills it.",
        ),
    ],
    ids=["best", "behind", "once", "nothing", "equal", "top", "baseless", "none"],
)
def test_a_cell_says_why_its_arm_is_the_best(cell: MapCell, words: str) -> None:
    assert verdict(replace(MAP, schedule=None), cell) == words


def test_the_schedule_is_said_to_be_for_the_mix() -> None:
    assert verdict(MAP, cell_of(MAP, "repeat", (9, 16))).endswith("The schedule, which is for the mix, takes K 0.")
    assert verdict(MAP, cell_of(MAP, None, (9, 16))).endswith("The schedule takes K 0.")


@pytest.mark.parametrize("width", [58, 78, 118, 198])
@pytest.mark.parametrize("map_", [MAP, map_scenes.operating_map(1, schedule=None, costs=[]), WIDE_MAP])
def test_every_line_fits(map_: OperatingMap, width: int) -> None:
    scene = map_scenes.mapped(map_scenes.STALE)
    shown = map_facts(map_, picture(scene), width, False)
    for load in map_.loads[:3]:
        cell = cell_of(map_, "code", load)
        shown += [line for line in cell_lines(map_, cell, width, 12) if width >= 78]
        shown += explain_cell(map_, cell, map_scenes.STALE, max(width, 60))[:8] if width >= 78 else []
    shown += gain_chart(map_, "code", width, 14)
    for state in ("starting", "running", "fallback_test", "over", "failed"):
        shown += rehearsal_lines(map_scenes.rehearsal(state=state), width)
    assert [text_of(line) for line in shown if width_of(line) > width] == []


def test_the_chart_has_a_sign_for_each_arm_and_ends_where_nothing_was_measured() -> None:
    text = "\n".join(map(text_of, gain_chart(MAP, "creative", 58, 14)))
    assert "w without   0 k0   1 k1   2 k2   4 k4" in text
    last = [line[50:57].strip() for line in text.splitlines()[:-3]]
    assert not any(last), "17 to 32 running were not measured"


modes = st.one_of(
    st.just(PolicyMode(mode="off")),
    st.builds(lambda k: PolicyMode(mode="static", k=k), st.integers(min_value=0, max_value=6)),
    st.lists(st.integers(min_value=0, max_value=6), min_size=1, max_size=6).map(
        lambda ks: PolicyMode(mode="schedule", schedule=[(5 * n + 1, 5 * n + 5, k) for n, k in enumerate(ks)])
    ),
)


@given(modes, modes, st.integers(min_value=1, max_value=40))
def test_the_table_of_ranges_gives_both_ks_of_every_batch_size(
    before: PolicyMode, after: PolicyMode, running: int
) -> None:
    rows = by_range(before, after, 6)
    (row,) = (row for row in rows if row.first <= running <= (row.last or running))
    assert (row.before, row.after) == (base_k(before, running, 6), base_k(after, running, 6))
    assert all(one.last is not None and one.last + 1 == two.first for one, two in pairwise(rows))


def test_the_status_line_keeps_the_word_at_80_columns_and_what_weighs_more() -> None:
    alert = AlertView(kind="drift", severity="warn", state="firing", text="", started=scenes.NOW)
    line = text_of(status_line(picture(replace(map_scenes.rehearsing(), alerts=[alert])), 80))
    for words in ("schedule", "K 1", "rehearsal", "run 7", "212 tok/s", "1.18×", "▲1"):
        assert words in line
    assert "rehearsal 3/10 k2" in text_of(status_line(picture(map_scenes.rehearsing()), 120))
    failed = replace(map_scenes.mapped(), rehearsal=map_scenes.rehearsal(state="failed"))
    assert "rehearsal failed" in text_of(status_line(picture(failed), 120))


def test_the_bar_fills_with_passes_that_came_to_their_end() -> None:
    assert progress_bar(map_scenes.rehearsal(pass_number=1), 10) == "▒░░░░░░░░░"
    assert progress_bar(map_scenes.rehearsal(pass_number=10), 10) == "█████████▒"
    assert progress_bar(map_scenes.rehearsal(state="fallback_test"), 10) == "██████████"
    assert progress_bar(map_scenes.rehearsal(state="starting", passes=0), 10) == ""


def test_passes_are_counted_as_a_station_of_ones_own_makes_them() -> None:
    full = map_scenes.PLANS["full"]
    assert passes_of(full) == 2 * 4 + 2 * 6, "k0 to k4 in the survey, proposed and adaptive too after it"
    assert passes_of(map_scenes.PLANS["smoke"]) == 2
