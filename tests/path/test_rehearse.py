"""A rehearsal on the real engine, from the plan to the map that is kept: a miniature one, on an engine of its own."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from engine.records import FinishRecord, SequenceRecord, StepRecord
from store.database import Store
from store.operating_map.keeping import last_map
from store.operating_map.records import OperatingMap
from store.rehearsal.records import Outcome, Pass, Rehearsal
from store.trace import read_records
from tests.path.served import SPECDECK

pytestmark = pytest.mark.engine

PLAN = """
arms = ["k0", "k2"]
fallback_test = false  # test_fallback_test.py makes it on an engine that is up anyway

[[workload]]
name = "code"
share = 0.5
max_tokens = [32]

[[workload]]
name = "chat"
share = 0.5
max_tokens = [32]

[[phase]]
name = "quiet"
seconds = 3
rate = 0.8

[[phase]]
name = "busy"
seconds = 4
rate = 3
"""


class Rehearsed(NamedTuple):
    directory: Path
    folder: Path
    printed: dict[str, Any]
    said: str


@pytest.fixture(scope="module")
def rehearsed() -> Iterator[Rehearsed]:
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name:
        directory = Path(name)
        (directory / "mini.toml").write_text(PLAN)
        places = {f"SPECDECK_{place}_DIR": str(directory / place.lower()) for place in ("RUNTIME", "DATA")}
        done = subprocess.run(
            [SPECDECK, "rehearse", "mini.toml", "--json"], env=os.environ | places, cwd=directory, capture_output=True,
            text=True, timeout=400, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        (folder,) = (directory / "data" / "rehearsals").iterdir()
        yield Rehearsed(directory, folder, json.loads(done.stdout), done.stderr)


def test_every_request_of_each_arm_is_answered_and_recorded_under_its_k(rehearsed: Rehearsed) -> None:
    requests = set()
    for name, k in (("01-k0-r1", 0), ("02-k2-r1", 2)):
        place = rehearsed.folder / "passes" / name
        made = msgspec.json.decode((place / "pass.json").read_bytes(), type=Pass)
        outcomes = [
            msgspec.json.decode(line, type=Outcome) for line in (place / "outcomes.jsonl").read_bytes().splitlines()
        ]
        assert len(outcomes) >= 4
        assert [one.error for one in outcomes if one.error is not None] == []
        assert (made.others, made.notes) == (0, [])
        records = list(read_records(place / "trace.jsonl.zst"))
        steps = [one for one in records if isinstance(one, StepRecord)]
        assert {one.k_draft for one in steps} == {k}
        assert all(made.start <= one.ts <= made.end + 1.0 for one in steps)
        ours = [one for one in records if isinstance(one, SequenceRecord) and one.ts >= made.start]
        assert {one.workload for one in ours} <= {"code", "chat"}
        assert len(ours) == len([one for one in records if isinstance(one, FinishRecord)]) == len(outcomes)
        assert sum(row.emitted for one in steps for row in one.rows) == sum(one.output_tokens for one in outcomes)
        requests.add((place / "requests.jsonl").read_bytes())
    assert len(requests) == 1
    rehearsal = msgspec.json.decode((rehearsed.folder / "rehearsal.json").read_bytes(), type=Rehearsal)
    assert (rehearsal.host, rehearsal.ended is not None) == ("own", True)
    assert 0.2 <= rehearsal.scale <= 20.0


def test_the_map_is_kept_in_the_operators_store_and_none_of_the_traffic(rehearsed: Rehearsed) -> None:
    with Store.open(rehearsed.directory / "data" / "specdeck.duckdb", read_only=True) as store:
        kept = last_map(store.connection)
        assert kept is not None
        assert msgspec.convert(rehearsed.printed["map"], OperatingMap) == kept
        assert store.connection.execute("SELECT count(*) FROM rows").fetchone() == (0,)
    assert kept.baseline == "k0"
    assert {cell.workload for cell in kept.cells} == {None, "code", "chat"}
    assert "nothing is left running" in rehearsed.said
