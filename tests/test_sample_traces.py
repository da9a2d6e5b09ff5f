"""Every sample trace opens, and its report, its replay and a recount of its lines agree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from console.cli.root import root
from tests.path.test_request_to_screen import recount

TRACES = sorted((Path(__file__).parent.parent / "sample_traces").glob("*.jsonl.zst"))


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.name)
def test_report_replay_and_recount_agree(trace: Path) -> None:
    reported = json.loads(CliRunner().invoke(root, ["report", str(trace), "--by", "workload", "--json"]).stdout)
    whole = json.loads(CliRunner().invoke(root, ["report", str(trace), "--json"]).stdout)
    replay = ["replay", str(trace), "--headless", "--speed", "max", "--json"]
    replayed = json.loads(CliRunner().invoke(root, replay).stdout)["report"]
    assert replayed["buckets"] == whole["buckets"]
    counted = recount(trace)
    assert {bucket["workload"] for bucket in reported["buckets"]} == set(counted)
    for bucket in reported["buckets"]:
        own = counted[bucket["workload"]]
        assert {name: bucket[name] for name in own} == dict(own)


def test_there_is_one() -> None:
    assert TRACES


def test_they_are_small() -> None:
    assert all(trace.stat().st_size < 2_000_000 for trace in TRACES)
