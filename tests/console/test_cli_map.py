"""`specdeck map`: every source, what it prints, and that a stale map makes no schedule unless it is forced to."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner, Result

import console.cli.station
from console.cli import map_sources
from console.cli.map_diff import differing
from console.cli.outcomes import BAD_INPUT, CHECK_FAILED, OK, UNREACHABLE, Unreachable
from console.cli.root import root
from console.feed.messages import LossView, Snapshot, StoreView
from console.feed.protocol import MapAnswer
from engine.policy import parse_mode
from store.database import Store
from store.operating_map.keeping import keep
from store.operating_map.records import CellArm, MapCell, OperatingMap, WorkloadCost
from tests.store.builders import T0
from tests.store.rehearsal_folders import FINGERPRINT, QUIET, plan, simulate

HOSTILE = "chat\x1b[2J'; DROP"
LOADS = [(1, 1), (2, 2), (3, 4), (5, 8)]
SCHEDULE = [(1, 2, 4), (3, 4, 2), (5, 8, 0)]


def arm(name: str, k: int, gain: float | None, rate: float = 30.0) -> CellArm:
    low, high = (None, None) if gain is None else (gain - 0.05, gain + 0.05)
    return CellArm(arm=name, k=k, tokens_per_second=rate, gain=gain, low=low, high=high, steps=200, repeats=3)


def cells(workload: str | None) -> list[MapCell]:
    place = {"workload": workload}
    return [
        MapCell(**place, first=1, last=1, state="measured", best="k4", k=4, gain=1.6, low=1.55, high=1.65,
                arms=[arm("k0", 0, None), arm("k2", 2, 1.4), arm("k4", 4, 1.6)]),
        MapCell(**place, first=2, last=2, state="not_measured"),
        MapCell(**place, first=3, last=4, state="measured", best="k2", k=2, gain=1.2, low=1.15, high=1.25,
                arms=[arm("k0", 0, None), arm("k2", 2, 1.2), arm("k4", 4, 1.0)]),
        MapCell(**place, first=5, last=8, state="no_difference", best="k0", k=0,
                arms=[arm("k0", 0, None), arm("k2", 2, 1.01), arm("k4", 4, 0.7)]),
    ]  # fmt: skip


MAP = OperatingMap(
    id="20260921-140000-full", ts=T0, plan="full", fingerprint=FINGERPRINT, baseline="k0", repeats=3,
    workloads=["code", HOSTILE], loads=LOADS, cells=[*cells(None), *cells("code"), *cells(HOSTILE)],
    schedule=SCHEDULE, costs=[WorkloadCost(workload="code", gain=1.3, low=1.2, high=1.4, own_best_gain=1.35)],
)  # fmt: skip
STALE = ["vLLM: 0.32.0 then, 0.33.0 now"]


def specdeck(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["map", *arguments], env={"COLUMNS": "80"})


def snapshot(policy: str | None, **changed: Any) -> Snapshot:
    return Snapshot(
        station="s", number=1, ts=T0, started=T0, policy_version=3, engines=[],
        policy=None if policy is None else parse_mode(policy),
        gateway=None, store=StoreView("x", True, 0, 0), loss=LossView(), total=None, buckets=[], **changed,
    )  # fmt: skip


@pytest.fixture
def station(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a running station answers, by method; none runs until something is put in."""
    answers: dict[str, Any] = {}

    def ask(method: str, *_: Any, **__: Any) -> Any:
        if method not in answers:
            raise Unreachable("no station is running here")
        return answers[method]

    monkeypatch.setattr(console.cli.station, "ask", ask)
    monkeypatch.setattr(map_sources, "ask", ask)
    monkeypatch.setattr(map_sources, "running_station", lambda: object() if answers else None)
    return answers


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "map.json"
    path.write_bytes(msgspec.json.encode(MAP))
    return str(path)


def test_the_grid_fits_80_columns_and_says_what_each_cell_is(station: dict[str, Any]) -> None:
    station["map_get"] = MapAnswer(map=MAP)
    result = specdeck()
    assert result.exit_code == OK
    lines = result.output.splitlines()
    assert max(map(len, lines)) <= 80
    rows = {line.split()[0]: line.split()[1:] for line in lines if line.startswith("  ")}
    assert rows["running"] == ["1", "2", "3–4", "5–8"]
    assert rows["mix"] == ["k4", "1.60", "·", "k2", "1.20", "="]
    assert rows["schedule"] == ["K", "4", "K", "4", "K", "2", "K", "0"]
    assert "code: 1.30 [1.20, 1.40] under the schedule" in result.output
    assert "\x1b" not in result.output


def test_a_stale_map_is_shown_with_what_differs(station: dict[str, Any]) -> None:
    station["map_get"] = MapAnswer(map=MAP, stale=STALE)
    assert "STALE" in specdeck().output
    assert "0.33.0 now" in specdeck().output
    shown = json.loads(specdeck("--json").output)
    assert shown["stale"] == STALE
    assert msgspec.convert(shown["map"], OperatingMap) == MAP


def test_a_stale_map_is_exported_only_by_force(station: dict[str, Any]) -> None:
    station["map_get"] = MapAnswer(map=MAP, stale=STALE)
    refused = specdeck("--export", "vllm")
    assert refused.exit_code == CHECK_FAILED
    assert refused.stdout == ""
    assert "0.33.0 now" in refused.stderr
    assert "--force" in refused.stderr
    forced = specdeck("--export", "vllm", "--force")
    assert forced.exit_code == OK
    assert json.loads(forced.stdout) == {"num_speculative_tokens_per_batch_size": [[1, 2, 4], [3, 4, 2], [5, 8, 0]]}


def test_a_map_from_a_file_is_held_against_the_engine_that_runs(station: dict[str, Any], file: str) -> None:
    alone = specdeck(file, "--export", "vllm")
    assert alone.exit_code == OK
    assert "was not checked" in alone.stderr
    station["fingerprint"] = msgspec.structs.replace(FINGERPRINT, hardware="another")
    assert specdeck(file, "--export", "vllm").exit_code == CHECK_FAILED
    station["fingerprint"] = FINGERPRINT
    same = specdeck(file, "--export", "vllm")
    assert (same.exit_code, same.stderr) == (OK, "")


def test_the_toml_is_ours_and_says_what_it_is_of(station: dict[str, Any], file: str) -> None:
    text = specdeck(file, "--export", "toml").stdout
    assert tomllib.loads(text) == {"schedule": {"1-2": 4, "3-4": 2, "5-8": 0}}
    assert "# From operating map 20260921-140000-full" in text
    assert "# machine: a processor, 2 threads" in text


def test_the_diff_has_a_gain_for_each_change(station: dict[str, Any]) -> None:
    station["map_get"] = MapAnswer(map=MAP)
    station["snapshot"] = snapshot("schedule:[[1,3,0],[4,8,2]]")
    shown = json.loads(specdeck("--diff", "--json").output)
    found = {(one["first"], one["last"]): (one["now"], one["map"], one["gain"], one["low"]) for one in shown["ranges"]}
    assert found == {
        (1, 1): (0, 4, 1.6, pytest.approx(1.55)),
        (2, 2): (0, 4, None, None),
        (3, 3): (0, 2, 1.2, pytest.approx(1.15)),
        (4, 4): (2, 2, None, None),
        (5, 8): (2, 0, pytest.approx(1 / 1.01), None),
    }
    text = specdeck("--diff").output
    assert re.search(r"^  1 +0 +4 +1\.60 \[1\.55, 1\.65\]$", text, re.MULTILINE)
    assert "specdeck policy set 'schedule:[[1,2,4],[3,4,2],[5,8,0]]'" in text


@pytest.mark.parametrize(
    ("policy", "changed", "now", "words"),
    [
        ("static:8", {}, 8, "schedule"),
        ("static:8", {"cap": 3}, 3, "cap 3"),
        ("static:8", {"fallback": True}, 0, "fallback"),
        ("adaptive", {}, 8, "the most that it may"),
        ("off", {}, 0, "schedule"),
    ],
    ids=["static", "cap", "fallback", "adaptive", "off"],
)
def test_what_runs_now_is_the_policy_under_its_cap_and_fallback(
    station: dict[str, Any], policy: str, changed: dict[str, Any], now: int, words: str
) -> None:
    assert {one.now for one in differing(MAP, snapshot(policy, **changed)).ranges} == {now}
    station["map_get"], station["snapshot"] = MapAnswer(map=MAP), snapshot(policy, **changed)
    assert words in specdeck("--diff").output


def test_nothing_to_change_is_said(station: dict[str, Any]) -> None:
    station["map_get"], station["snapshot"] = MapAnswer(map=MAP), snapshot("schedule:[[1,2,4],[3,4,2],[5,8,0]]")
    assert "nothing would change" in specdeck("--diff").output


def test_a_store_gives_its_last_map(tmp_path: Path, station: dict[str, Any]) -> None:
    path = tmp_path / "kept.duckdb"
    with Store.open(path) as store:
        pass
    empty = specdeck(str(path))
    assert empty.exit_code == CHECK_FAILED
    assert "no operating map" in empty.stderr
    with Store.open(path) as store:
        keep(store.connection, MAP)
    assert json.loads(specdeck(str(path), "--json").output)["map"]["id"] == MAP.id


def test_the_folder_of_a_rehearsal_gives_its_map(tmp_path: Path, station: dict[str, Any]) -> None:
    simulate(tmp_path, plan(arms=("k0", "k4"), phases=(QUIET,)))
    result = specdeck(str(tmp_path))
    assert result.exit_code == OK
    assert "one pass: nothing promised" in result.output


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), UNREACHABLE, "no station"),
        (("nothing.json",), BAD_INPUT, "no such file"),
        (("--export", "vllm", "--diff"), BAD_INPUT, "leave out"),
        (("BROKEN",), BAD_INPUT, "no operating map"),
        (("FOLDER",), BAD_INPUT, "no rehearsal"),
        (("BARE", "--export", "toml"), CHECK_FAILED, "proposes no schedule"),
    ],
    ids=["none", "missing", "both", "broken", "folder", "bare"],
)
def test_what_can_not_be_answered_says_why(
    station: dict[str, Any], tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    (tmp_path / "broken.json").write_text('{"id": 3')
    (tmp_path / "bare.json").write_bytes(msgspec.json.encode(msgspec.structs.replace(MAP, schedule=None)))
    places = {"BROKEN": "broken.json", "FOLDER": ".", "BARE": "bare.json"}
    result = specdeck(*(str(tmp_path / places[one]) if one in places else one for one in arguments))
    assert result.exit_code == code
    assert words in result.stderr
    assert isinstance(result.exception, SystemExit | click.exceptions.Exit)
