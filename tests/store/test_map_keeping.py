"""An operating map in the store: it goes wherever the record goes, and what can't be meant is no map."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.records import ControlRecord
from store.database import Store
from store.export import export
from store.levels import DAY
from store.operating_map.checking import MapError, check
from store.operating_map.in_force import NotInForce, policy_of, reason
from store.operating_map.keeping import MAP, control, keep, last_map
from store.operating_map.records import CellArm
from store.redact.redactor import Redactor
from store.retention import Retention
from store.source import open_source
from store.trace import TraceWriter
from store.trace.chosen import Choice
from store.trace.cut import cut
from tests.store.builders import T0, row, store_of, trace_of
from tests.store.operating_maps import operating_map

RECORDS = trace_of([row()] * 30)
MADE = operating_map()


def test_the_map_that_was_kept_last_holds_when_the_file_is_opened_again(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.duckdb") as store:
        assert last_map(store.connection) is None
        keep(store.connection, operating_map(id="before"))
        keep(store.connection, MADE)
    with Store.open(tmp_path / "store.duckdb") as store:
        assert last_map(store.connection) == MADE


def test_a_record_that_holds_no_map_is_passed_over() -> None:
    broken = ControlRecord(T0 + 9, "somebody", MAP, numbers={"id": 1})
    with store_of([*RECORDS, control(MADE, T0 + 1, "rehearsal"), broken]) as store:
        assert last_map(store.connection) == MADE


@pytest.mark.parametrize(("name", "since"), [("a.duckdb", None), ("a.parquet", None), ("a.jsonl.zst", T0 + 2.0)])
def test_exports_carry_it_also_those_that_begin_later(tmp_path: Path, name: str, since: float | None) -> None:
    with store_of([*RECORDS, control(MADE, T0 + 1, "rehearsal")]) as store:
        export(store.connection, tmp_path / name, since=since)
    with open_source(tmp_path / name) as copy:
        assert last_map(copy.connection) == MADE


def test_a_cut_carries_it(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "whole.jsonl") as writer:
        for record in [RECORDS[0], control(MADE, T0 + 0.01, "rehearsal"), *RECORDS[1:]]:
            writer.write(record)
    cut(tmp_path / "whole.jsonl", tmp_path / "cut.jsonl", Choice(workload="code", start=T0 + 2))
    with open_source(tmp_path / "cut.jsonl") as copy:
        assert last_map(copy.connection) == MADE


def test_it_outlives_what_was_recorded(tmp_path: Path) -> None:
    with store_of([*RECORDS, control(MADE, T0 + 1, "rehearsal")]) as store:
        retention = Retention(store.connection, None)
        while retention.slice(T0 + 1000 * DAY):
            pass
        assert last_map(store.connection) == MADE


def test_without_private_names_it_is_a_map_still() -> None:
    redactor = Redactor()
    record = control(operating_map(notes=["code was slow"]), T0, "rehearsal")
    redactor.learn(record)
    shown = redactor.record(record)
    assert isinstance(shown, ControlRecord)
    made = msgspec.convert(shown.numbers, type(MADE))
    check(made)
    assert b'"code' not in msgspec.json.encode(shown)
    assert made.workloads == [made.costs[0].workload]


def _cell(**changed: Any) -> dict[str, Any]:
    return {"cells": [msgspec.structs.replace(MADE.cells[0], **changed)]}


def _arm(name: str, gain: float = 1.1) -> CellArm:
    return CellArm(arm=name, k=1, tokens_per_second=30.0, gain=gain, steps=40, repeats=1)


NONSENSE: dict[str, tuple[dict[str, Any], str]] = {
    "id": ({"id": "a\nb"}, "id: must be"),
    "ts": ({"ts": float("nan")}, "ts: must be a finite number"),
    "inf": (_cell(gain=float("inf")), r"cells\[0\].gain: must be a finite number"),
    "moment": ({"ts": -1.0}, "ts, repeats"),
    "schedule": ({"schedule": [(2, 4, 1)]}, "schedule: entry 1"),
    "high-k": ({"schedule": [(1, 4, 9)]}, "K 9 is above 8"),
    "loads": ({"loads": [(1, 1), (1, 8)]}, r"loads\[1\]: 1 to 8 is no range above 1"),
    "load": (_cell(first=3, last=4), "3 to 4 is none of the map's loads"),
    "workload": (_cell(workload="chat"), "'chat' is none of the map's workloads"),
    "twice": ({"cells": [MADE.cells[0]] * 2}, "two cells of the mix"),
    "best": (_cell(best="k7"), "'k7' was not measured"),
    "k": (_cell(k=9), "k: 9 is not 0 to 8"),
    "bounds": (_cell(low=2.0), "low: 2 is above high"),
    "arm": (_cell(arms=[*MADE.cells[0].arms, _arm("\x1b[2Jk")]), "is no arm"),
    "nobody": (_cell(arms=[*MADE.cells[0].arms, _arm("")]), "'' is no arm"),
    "gain": (_cell(arms=[*MADE.cells[0].arms, _arm("k1", 9000.0)]), "a gain of 9000"),
    "cost": ({"workloads": []}, r"cells\[1\].workload"),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_what_cannot_be_meant_is_named(name: str) -> None:
    changed, words = NONSENSE[name]
    check(MADE)
    with pytest.raises(MapError, match=words):
        check(operating_map(**changed))


def test_a_map_becomes_a_policy_where_it_holds_or_by_force() -> None:
    policy = policy_of(MADE, [], force=False)
    assert (policy.mode, policy.schedule) == ("schedule", [(1, 1, 3), (2, 32, 0)])
    assert policy_of(MADE, ["hardware: a then, b now"], force=True) == policy
    assert MADE.id in reason(MADE)
    with pytest.raises(NotInForce, match=r"hardware: a then, b now.*--force"):
        policy_of(MADE, ["hardware: a then, b now"], force=False)
    with pytest.raises(NotInForce, match="specdeck rehearse"):
        policy_of(None, [], force=True)
    with pytest.raises(NotInForce, match="proposes no schedule"):
        policy_of(operating_map(schedule=None), [], force=True)
