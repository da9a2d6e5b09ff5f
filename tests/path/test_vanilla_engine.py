"""`specdeck serve --vanilla-engine` on the real engine: two vLLMs of one target, each request where it belongs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from console.feed.messages import Snapshot
from console.feed.protocol import PolicyResult, PolicySet
from engine.records import EngineRecord, SequenceRecord, StepRecord
from tests.path.served import START_SECONDS, Served, until

pytestmark = [pytest.mark.engine, pytest.mark.long]

PROMPT = "one two three one two three one two three "


@pytest.fixture(scope="module")
def two() -> Iterator[Served]:
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as directory:
        options = ("--vanilla-engine", "--drafter", "ngram", "--max-model-len", "512", "--max-num-seqs", "8")
        served = Served(Path(directory), *options, "--engine-arg=--enforce-eager")
        try:
            served.wait_serving()
            until("the second engine", lambda: _both(served), START_SECONDS)
            yield served
        except AssertionError as error:
            raise AssertionError(f"{error}\n{served.logs()}") from None
        finally:
            served.stop()


def _both(served: Served) -> Snapshot | None:
    seen = served.snapshot_or_none()
    if seen is None or seen.gateway is None or not seen.gateway.vanilla_ok:
        return None
    return seen if [view.state for view in seen.engines] == ["serving", "serving"] else None


def _answer(served: Served, workload: str, headers: dict[str, str] | None = None, **fields: Any) -> httpx.Response:
    body = {"model": served.model(), "prompt": PROMPT, "max_tokens": 12, "temperature": 0.0, "ignore_eos": True}
    tags = {"x-workload": workload, **(headers or {})}
    answer = httpx.post(f"{served.url}/v1/completions", json={**body, **fields}, headers=tags, timeout=60.0)
    assert answer.status_code == 200, answer.text
    assert answer.json()["usage"]["completion_tokens"] == 12
    return answer


def _lane(answer: httpx.Response) -> str | None:
    lane: str | None = answer.headers.get("x-specdeck-lane")
    return lane


def test_lane_hint_and_parameters_are_answered_by_the_engine_without_speculation(two: Served) -> None:
    two.ask("policy_set", PolicySet(lanes={"hostile": "vanilla"}), PolicyResult)
    until("the lane at the gateway", lambda: _lane(_answer(two, "hostile")) == "vanilla", 15.0)
    plain = _answer(two, "plain")
    hinted = _answer(two, "hinted", {"x-disable-speculation": "1"})
    assert (_lane(plain), _lane(hinted)) == (None, "vanilla")
    assert plain.json()["choices"][0]["text"] == hinted.json()["choices"][0]["text"], "the same target"
    assert _lane(_answer(two, "min-p", min_p=0.2, temperature=0.8, seed=1)) == "vanilla"
    until("the station hears of the gateway's counts", lambda: _vanilla_requests(two) >= 3, 15.0)
    seen = _both(two)
    assert seen is not None
    assert seen.gateway is not None
    assert seen.gateway.vanilla_spilled == 0
    assert "an engine of its own (v0, serving)" in two.specdeck("status").stdout
    _check_records(two)


def _vanilla_requests(two: Served) -> int:
    gateway = two.snapshot().gateway
    return 0 if gateway is None else gateway.vanilla_requests


def _check_records(two: Served) -> None:
    """Which engine served which workload, with what K, by what was recorded of both."""
    records = two.records()
    methods = {record.engine: record.method for record in records if isinstance(record, EngineRecord)}
    assert methods == {"e0": "ngram", "v0": "none"}
    tags = {
        (record.engine, record.seq): record.workload or "" for record in records if isinstance(record, SequenceRecord)
    }
    served: dict[str, set[str]] = {}
    drafted = dict.fromkeys(methods, 0)
    for step in (record for record in records if isinstance(record, StepRecord)):
        for row in step.rows:
            served.setdefault(step.engine, set()).add(tags[step.engine, row.seq])
            drafted[step.engine] += row.drafted
            assert step.engine == "e0" or (row.k_asked, row.limit) == (0, "off")
    assert served["e0"] >= {"plain"}
    assert not served["e0"] & {"hinted", "min-p"}
    assert served["v0"] == {"hostile", "hinted", "min-p"}
    assert drafted["v0"] == 0
    assert drafted["e0"] > 0


def test_each_engine_has_its_share_of_the_cores(two: Served) -> None:
    share = str(max(1, len(os.sched_getaffinity(0)) // 2))
    pids = [view.pid for view in two.snapshot().engines]
    for pid in pids:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        assert f"OMP_NUM_THREADS={share}".encode() in environment
