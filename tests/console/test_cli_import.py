"""`specdeck import` and then `specdeck report STORE`: what others recorded, with the figures that can be known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from console.cli.root import root
from tests.store.imports_data.builders import counters, dump, exposition

T0 = 1_790_000_000.0
Counts = tuple[int, int, int]


def run(*arguments: str) -> str:
    result = CliRunner().invoke(root, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def imported(folder: Path, *moments: dict[str, Counts], **of_all: Any) -> Path:
    """A store with what the engines counted at these moments, 60 s apart: drafts, draft tokens, accepted."""
    files = [
        dump(folder, 60 * place, exposition(*(counters(engine, *counts, **of_all) for engine, counts in one.items())))
        for place, one in enumerate(moments)
    ]
    store = folder / "store.duckdb"
    assert run("import", "prometheus", *map(str, files), "--into", str(store)).strip() == str(store)
    return store


def report(store: Path, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("report", str(store), "--json", *options))
    return found


def by_engine(store: Path) -> dict[str, dict[str, Any]]:
    return {one["engine"]: one for one in report(store, "--by", "engine")["buckets"]}


def test_two_engines_of_which_one_restarted(tmp_path: Path) -> None:
    store = imported(tmp_path, {"e0": (100, 300, 150), "e1": (10, 30, 30)}, {"e0": (120, 360, 180), "e1": (5, 15, 3)})
    shown = report(store)
    total = shown["total"]
    assert (total["steps"], total["drafted"], total["accepted"]) == (25, 75, 33)
    assert total["pooled_acceptance"] == pytest.approx(0.44)
    assert total["mean_acceptance_length"] == pytest.approx(2.32)
    engines = by_engine(store)
    assert {name: one["pooled_acceptance"] for name, one in engines.items()} == {"e0": 0.5, "e1": 0.2}
    assert ["e1 restarted" in note for note in shown["notes"]] == [True]
    assert shown["window"] == {"start": T0, "end": T0 + 60}


RESTARTS = [(100, 200, 90), (40, 160, 160), (7, 7, 0)]


@pytest.mark.parametrize("counted", RESTARTS, ids=["some", "all", "none"])
@pytest.mark.parametrize("lives", [1, 2, 4])
def test_however_often_an_engine_restarts_each_life_is_counted_from_nothing(
    tmp_path: Path, lives: int, counted: Counts
) -> None:
    grown = tuple(2 * count + 1 for count in counted)
    moments = [{"0": one} for _ in range(lives) for one in (counted, grown)]
    total = report(imported(tmp_path, *moments))["total"]
    rise, again = tuple(g - c for g, c in zip(grown, counted, strict=True)), lives - 1
    expected = tuple(lives * r + again * c for r, c in zip(rise, counted, strict=True))
    assert (total["steps"], total["drafted"], total["accepted"]) == expected
    assert total["pooled_acceptance"] == pytest.approx(expected[2] / expected[1])
    assert total["mean_acceptance_length"] == pytest.approx(1 + expected[2] / expected[0])
    assert total["waste_ratio"] == pytest.approx(1 - expected[2] / expected[1])


def test_what_counters_cannot_tell_is_absent_and_not_zero(tmp_path: Path) -> None:
    store = imported(tmp_path, {"0": (0, 0, 0)}, {"0": (50, 200, 120)}, positions=(40, 30))
    (one,) = report(store)["buckets"]
    unknown = (
        "workload", "context", "temperature", "alpha", "alpha_low", "alpha_high", "sequences", "decode_rows", "emitted",
        "committed_per_step", "conditional_acceptance", "drafted_share", "speedup", "tokens_per_second", "post_resume",
    )  # fmt: skip
    assert [name for name in unknown if one[name] is not None] == []
    assert (one["k_histogram"], one["cause_histogram"], one["speedup_state"]) == ({}, {}, "absent")
    assert one["state"] == "ok"


def test_positions_and_tokens_are_taken_where_they_are_told(tmp_path: Path) -> None:
    files = [
        dump(tmp_path, 0, exposition(counters("0", 0, 0, 0, positions=(0, 0), generation_tokens_total=0))),
        dump(tmp_path, 60, exposition(counters("0", 50, 100, 70, positions=(40, 30), generation_tokens_total=240))),
    ]
    store = tmp_path / "s.duckdb"
    run("import", "prometheus", *map(str, files), "--into", str(store))
    total = report(store)["total"]
    assert total["position_marginal"] == [0.8, 0.6]
    assert total["position_conditional"][0] == 0.8
    assert (total["emitted"], total["tokens_per_second"]) == (240, 4.0)


def test_nothing_drafted_between_two_dumps_is_blind_and_absent(tmp_path: Path) -> None:
    (one,) = report(imported(tmp_path, {"0": (5, 15, 9)}, {"0": (5, 15, 9)}))["buckets"]
    assert (one["steps"], one["pooled_acceptance"], one["mean_acceptance_length"], one["waste_ratio"]) == (
        0, None, None, None,
    )  # fmt: skip
    assert one["state"] == "blind"


def test_a_window_holds_what_was_counted_in_it_and_the_notes_of_it(tmp_path: Path) -> None:
    store = imported(tmp_path, {"0": (10, 30, 3)}, {"0": (20, 60, 9)}, {"0": (5, 15, 5)}, {"0": (6, 18, 6)})
    late = report(store, "--window", "61s")
    assert late["total"]["drafted"] == 3 + 15
    long_before = report(store, "--at", str(T0 + 60))
    assert long_before["total"]["drafted"] == 30
    assert report(store, "--at", str(T0 - 5))["notes"] == []


def test_files_that_cannot_be_read_change_nothing(tmp_path: Path) -> None:
    good = dump(tmp_path, 0, exposition(counters("0", 1, 2, 1)))
    bad = dump(tmp_path, 60, "no metrics at all")
    result = CliRunner().invoke(
        root, ["import", "prometheus", str(good), str(bad), "--into", str(tmp_path / "s.duckdb")]
    )
    assert result.exit_code == 2
    assert str(bad) in result.output
    assert report(tmp_path / "s.duckdb")["buckets"] == []
