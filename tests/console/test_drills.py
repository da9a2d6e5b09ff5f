"""The certificate as a station keeps it: found again in its store, stale for another model or after a week."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from console.feed.certificate import Certificate, CertifiedEngine, WayResult
from console.station.drills import Drills, told
from console.station.recorder import open_recorder
from engine.records import ControlRecord, EngineRecord, PolicyMode
from store.buckets import model_version
from store.certificates import last_certificate
from store.database import Store

DAY = 86_400.0
NOW = 1_790_000_000.0
MODE = PolicyMode(mode="static", k=4)
RECORD = EngineRecord(
    engine="e0", ts=NOW, vllm="0.32.0", target="target@1", drafter="head@1", method="eagle3", max_k=4, batch_k="free",
    max_num_seqs=32, data_parallel_size=1, device="cpu", async_scheduling=False, configured=MODE, resolved=MODE,
)  # fmt: skip


def certificate(passed: bool = True, ts: float = NOW, text: str = "0 tokens drafted") -> Certificate:
    way = WayResult(way="hint-header", passed=passed, rows=31, limits={"hint": 31}, text=text)
    engine = CertifiedEngine("e0", model_version(RECORD), "boot", "0.32.0")
    return Certificate(ts=ts, station="s", engines=[engine], ways=[way], passed=passed, specdeck="0.1.0")


def drills(folder: Path, *kept: Certificate) -> Drills:
    """Of a station that starts on a store in which drills are recorded."""
    recorder = open_recorder(folder / "store.duckdb", lambda kind, text: None)
    recorder.start()
    for one in kept:
        numbers = msgspec.to_builtins(one)
        recorder.put(ControlRecord(one.ts, "drill", "drill", after={"passed": one.passed}, numbers=numbers))
    assert recorder.flush_and_wait()
    try:
        return Drills(recorder)
    finally:
        recorder.stop()


def test_where_none_was_made_none_is_shown(tmp_path: Path) -> None:
    assert drills(tmp_path).view(RECORD, NOW) is None


def test_the_newest_of_the_store_is_shown(tmp_path: Path) -> None:
    shown = drills(tmp_path, certificate(ts=NOW - 60), certificate(passed=False)).view(RECORD, NOW)
    assert shown is not None
    assert (shown.ts, shown.passed, shown.model_version, shown.stale) == (NOW, False, model_version(RECORD), None)


def test_a_record_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.duckdb") as store:
        store.connection.execute("INSERT INTO controls (ts, actor, action, numbers) VALUES (1, 'x', 'drill', '{}')")
        assert last_certificate(store.connection) == {}
    assert drills(tmp_path).view(RECORD, NOW) is None


@pytest.mark.parametrize(
    ("changes", "later", "why"),
    [
        ({"drafter": "head@2"}, 0.0, "another version serves now: target + head"),
        ({"vllm": "0.33.0"}, 0.0, "vLLM 0.33.0"),
        ({}, 8 * DAY, "the drill is 8 days old"),
        ({}, 6 * DAY, None),
    ],
)
def test_it_is_stale_once_something_else_serves_or_after_a_week(
    tmp_path: Path, changes: dict[str, str], later: float, why: str | None
) -> None:
    found = drills(tmp_path, certificate())
    shown = found.view(msgspec.structs.replace(RECORD, **changes), NOW + later)
    assert shown is not None
    assert shown.stale is None if why is None else why in (shown.stale or "")
    unheard = found.view(None, NOW)
    assert unheard is not None
    assert unheard.stale is None, "what serves is not known yet"


def test_the_sentence_names_what_failed() -> None:
    way = certificate().ways[0]
    back = msgspec.structs.replace(way, way="back")
    both = msgspec.structs.replace(certificate(), ways=[way, msgspec.structs.replace(way, way="lane"), back])
    assert told(both) == "drill passed: all 2 ways out that were tried work"
    assert told(certificate(False, text="3 tokens were drafted")) == "drill FAILED: hint-header (3 tokens were drafted)"
