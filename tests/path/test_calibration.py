"""An engine that specdeck starts is calibrated before its first client: what is sped up is known from then on."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from console.feed.messages import CalibrationView
from engine.records import ControlRecord, SequenceRecord, StepRecord
from engine.step_time.cells import cell_code
from engine.step_time.model import LARGEST_ERROR, StepModel
from store.buckets import CALIBRATION
from store.step_models import step_models
from tests.path.served import Served, until

pytestmark = [pytest.mark.engine, pytest.mark.long]

SECONDS = 30


@pytest.fixture(scope="module")
def fresh() -> Iterator[Served]:
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as directory:
        running = Served(
            Path(directory), "--max-num-seqs=4", f"--calibrate={SECONDS}", policy=None, calibrated=True
        )  # fmt: skip
        try:
            running.wait_serving()
            yield running
        finally:
            running.stop()


def _calibrated(served: Served) -> CalibrationView | None:
    view = served.snapshot().calibration
    assert view is not None
    return view if view.state in ("done", "skipped") else None


def _ask(served: Served) -> dict[str, Any]:
    body = {"prompt": "one two three one two three one two", "max_tokens": 64, "temperature": 0.0, "ignore_eos": True}
    return served.complete(body | {"vllm_xargs": {"workload": "first"}})


def _model(served: Served) -> StepModel:
    """Of the only engine, by everything that is stored."""
    out = served.directory / f"export-{time.monotonic_ns()}.duckdb"
    done = served.specdeck("export", str(out))
    assert done.returncode == 0, done.stderr
    with duckdb.connect(out, read_only=True) as connection:
        (model,) = step_models(connection).values()
    return model


def test_the_first_traffic_after_it_has_a_realised_speedup(fresh: Served) -> None:
    view = until("calibration", lambda: _calibrated(fresh), SECONDS + 15)
    assert view.state == "done", fresh.logs()
    with ThreadPoolExecutor(2) as clients:
        list(clients.map(lambda _: _ask(fresh), range(2)))

    def known() -> dict[str, Any] | None:
        found = [bucket for bucket in fresh.report()["buckets"] if bucket["workload"] == "first"]
        return found[0] if found and found[0]["emitted"] >= 128 else None

    bucket = until("bucket first", known, 15.0)
    records = fresh.records()
    (control,) = [one for one in records if isinstance(one, ControlRecord) and one.action == "calibration"]
    assert control.numbers is not None
    assert control.numbers["seconds"] <= SECONDS + 1
    times = control.numbers["batches"]
    assert all(one["k"] == 4 and one["ms_drafting"] > one["ms_vanilla"] > 1 for one in times), times

    model, sizes = _model(fresh), np.array([one["batch"] for one in times])
    cells = cell_code(np.repeat([0, 4], len(sizes)), np.tile(sizes, 2), np.zeros(2 * len(sizes), dtype=np.int64))
    assert model.cells.measured(cells).all(), times
    assert model.error is not None, "there are steps in both halves of the time"
    print(f"held-out error {model.error:.3f}, {json.dumps(control.numbers)}")
    if model.error <= LARGEST_ERROR:  # else the machine was too busy for anybody to know
        assert bucket["speedup_state"] != "calibrating"
        assert 0.3 < bucket["speedup"] < 5.0


def test_its_requests_are_marked_and_none_of_them_runs_on(fresh: Served) -> None:
    until("calibration", lambda: _calibrated(fresh), SECONDS + 15)
    records = fresh.records()
    (ended,) = [one.ts for one in records if isinstance(one, ControlRecord) and one.action == "calibration"]
    ours = [one for one in records if isinstance(one, SequenceRecord) and _ours(one)]
    assert {one.disable_speculation for one in ours} == {True, False}
    after = [one for one in records if isinstance(one, StepRecord) and one.ts > ended + 1.0]
    assert not {one.seq for one in ours} & {row.seq for step in after for row in step.rows}
    drafted = {row.drafted for one in records if isinstance(one, StepRecord) for row in one.rows if row.limit == "hint"}
    assert drafted <= {0}


def _ours(record: SequenceRecord) -> bool:
    return record.workload == CALIBRATION
