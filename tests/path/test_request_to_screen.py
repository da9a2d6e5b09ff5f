"""A request becomes a row becomes a figure: gateway, engine, station, store, commands."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine.models import resolve_drafter
from engine.records import SequenceRecord, StepRecord
from store.trace import read_records
from tests.path.served import Served, until

pytestmark = pytest.mark.engine

MESSAGES = [{"role": "user", "content": "Say the words one two three four five, three times."}]


def _bucket(served: Served, workload: str) -> dict[str, Any] | None:
    found = [bucket for bucket in served.report()["buckets"] if bucket["workload"] == workload]
    return found[0] if found else None


@pytest.mark.parametrize("stream", [False, True])
def test_a_tagged_chat_completion_makes_its_bucket_appear(served: Served, stream: bool) -> None:
    workload = f"mine-{'streamed' if stream else 'whole'}"
    body = {
        "model": served.model(),
        "messages": MESSAGES,
        "max_tokens": 32,
        "temperature": 0.0,
        "stream": stream,
        "vllm_xargs": {"workload": workload},
    }
    with httpx.stream("POST", f"{served.url}/v1/chat/completions", json=body, timeout=120.0) as answer:
        assert answer.status_code == 200
        chunks = list(answer.iter_bytes())
    if stream:
        assert len(chunks) > 3, "a stream arrives in pieces"
        assert b"".join(chunks).rstrip().endswith(b"data: [DONE]")
    bucket = until(f"bucket {workload}", lambda: _bucket(served, workload), 15.0)
    assert bucket["emitted"] > 0
    assert (bucket["context"], bucket["temperature"], bucket["sequences"]) == ("0-512", "0", 1)
    shown = {view.key.workload for view in served.snapshot().buckets}
    assert workload in shown


def test_what_the_bundled_head_drafted_is_in_the_report_under_its_identity(served: Served) -> None:
    body = {"prompt": "Once upon a time", "max_tokens": 40, "temperature": 0.0, "ignore_eos": True}
    served.complete(body | {"vllm_xargs": {"workload": "head"}})
    bucket = until("bucket head", lambda: _bucket(served, "head"), 15.0)
    assert bucket["drafted"] > bucket["emitted"] / 2, "it drafts at every step"
    head = resolve_drafter("bundled")
    assert bucket["model_version"].split(" | ")[1:3] == [head.identity, "eagle3"]
    shown = served.snapshot().engines[0]
    assert (shown.drafter, shown.method) == (head.identity, "eagle3")
    assert head.identity in served.specdeck("status").stdout


def test_report_replay_and_a_recount_of_the_trace_agree(served: Served) -> None:
    served.complete({"prompt": "one two three one two three one two", "max_tokens": 40, "temperature": 0.0})
    out = served.directory / "agree.jsonl"
    assert served.specdeck("export", str(out)).returncode == 0
    reported = json.loads(served.specdeck("report", str(out), "--json").stdout)
    replayed = json.loads(served.specdeck("replay", str(out), "--headless", "--speed", "max", "--json").stdout)
    assert rounded(reported["buckets"]) == rounded(replayed["report"]["buckets"])
    recounted = recount(out)
    for bucket in reported["buckets"]:
        counted = recounted[bucket["workload"]]
        for name in ("emitted", "decode_rows", "drafted", "accepted", "steps"):
            assert bucket[name] <= counted[name]
    for name in ("emitted", "decode_rows", "drafted", "accepted", "steps"):
        assert reported["total"][name] == sum(counter[name] for counter in recounted.values())


def rounded(value: Any) -> Any:
    """The same with floats to 9 places: sums of step times may be added up in another order."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


def recount(trace: Path) -> dict[str, Counter[str]]:
    """Counts per workload straight from the lines of a trace."""
    workloads: dict[str, str] = {}
    counts: dict[str, Counter[str]] = {}
    for record in read_records(trace):
        if isinstance(record, SequenceRecord):
            workloads[record.seq] = record.workload or "untagged"
        elif isinstance(record, StepRecord):
            for row in record.rows:
                counter = counts.setdefault(workloads.get(row.seq, "unattributed"), Counter())
                counter["emitted"] += row.emitted
                if row.cause != "prefill":
                    counter["decode_rows"] += 1
                    counter["drafted"] += row.drafted
                    counter["accepted"] += row.accepted
                    counter["steps"] += row.drafted > 0
    return counts


def test_live_picture_and_report_show_the_same_counts(served: Served) -> None:
    served.complete({"prompt": "a b c d a b c d a b", "max_tokens": 24, "vllm_xargs": {"workload": "same"}})

    def agree() -> bool:
        live = [view.figures for view in served.snapshot().buckets if view.key.workload == "same"]
        stored = _bucket(served, "same")
        return bool(live and stored) and (live[0].emitted, live[0].drafted, live[0].accepted) == (
            stored["emitted"],
            stored["drafted"],
            stored["accepted"],
        )

    until("live and stored counts agree", agree, 20.0)


def test_status_says_what_runs(served: Served) -> None:
    status = served.specdeck("status", "--json")
    assert status.returncode == 0
    assert str(served.port) in status.stdout
    assert "SmolLM2" in status.stdout


def test_sql_reads_the_store_while_it_is_recorded_and_nothing_else(served: Served) -> None:
    counted = served.specdeck("sql", "SELECT count(*) AS rows FROM rows", "--json")
    assert counted.returncode == 0, counted.stderr
    secret = served.directory / "secret.csv"
    secret.write_text("a,b\n1,2\n")
    refused = served.specdeck("sql", f"SELECT * FROM read_csv('{secret}')")
    assert refused.returncode == 2
    assert "1" not in refused.stdout
