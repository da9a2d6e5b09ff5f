"""The alert of a stale map: it fires when something else runs, ends when it doesn't, and the same in a replay."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.records import ControlRecord, Record
from store.alerts import AlertReport, history
from store.database import Store
from store.export import export
from store.ingest import Ingest
from store.judging import Judging, judge_all
from store.operating_map.fingerprint import Fingerprint
from store.operating_map.keeping import MAP, control
from store.source import open_source
from store.states import make_state
from tests.store.builders import T0, engine, finish, row, sequence, step, store_of
from tests.store.operating_maps import HARDWARE, operating_map

MINUTE = 60.0


def tape(*happenings: Record, minutes: float = 20) -> list[Record]:
    """A step every ten seconds, and what happens beside them."""
    records: list[Record] = [engine(hardware=HARDWARE), sequence("a")]
    records += [step(n, [row("a", d=4, a=3)], T0 + 10 * n) for n in range(1, int(minutes * 6))]
    return sorted([*records, *happenings], key=lambda record: record.ts)


def made(minute: float, **of: Any) -> ControlRecord:
    """A map of such an engine, put at that minute."""
    return control(operating_map(engine(**of)), T0 + minute * MINUTE, "rehearsal")


def restarted(minute: float, **changed: Any) -> list[Record]:
    ts = T0 + minute * MINUTE + 0.5
    return [finish("a", ts - 0.1), engine(ts, boot=f"b{minute}", **({"hardware": HARDWARE} | changed)),
            sequence("a", ts=ts)]  # fmt: skip


def stale(records: Iterable[Record]) -> list[AlertReport]:
    with store_of(records) as store:
        judge_all(store.connection)
        return [alert for alert in history(store.connection).alerts if alert.kind == "map_stale"]


def lived(records: Iterable[Record], every: float, *, restarts: bool) -> list[AlertReport]:
    """As a station takes them, judged every so often. `restarts`: by another judge each time."""
    with Store.memory() as store:
        ingest, judging, flushed = Ingest(store), Judging(store.connection), 0.0
        for record in records:
            ingest.record(record)
            if record.ts >= flushed + every:
                flushed = record.ts
                ingest.flush()
                judging = Judging(store.connection) if restarts else judging
                judging.catch_up()
        ingest.close()
        with contextlib.suppress(Exception):
            judging.save()
        judge_all(store.connection)
        return [alert for alert in history(store.connection).alerts if alert.kind == "map_stale"]


def test_it_fires_when_another_drafter_runs_and_ends_when_the_first_is_back() -> None:
    records = tape(made(2), *restarted(5, drafter="other"), *restarted(9), minutes=12)
    (alert,) = found = stale(records)
    assert (alert.severity, alert.state, alert.engine) == ("info", "resolved", "e0")
    assert (alert.started, alert.ended) == (T0 + 5 * MINUTE + 0.5, T0 + 9 * MINUTE + 0.5)
    assert "drafter" in str(alert.evidence["differs"])
    assert "the operating map 20260921T120000Z-quick was of something else than what runs (model: " in alert.text
    assert any("other" in cause.text for cause in alert.causes), "the version push is named as its cause"
    assert lived(records, 70.0, restarts=False) == found
    assert lived(records, 200.0, restarts=True) == found


def test_a_new_map_of_what_runs_ends_it() -> None:
    records = tape(made(2), *restarted(5, max_k=6), made(9, max_k=6), minutes=10)
    (alert,) = stale(records)
    assert (alert.state, alert.ended, alert.evidence["differs"]) == (
        "resolved", T0 + 9 * MINUTE, "largest K: 8 then, 6 now",
    )  # fmt: skip


def test_a_map_of_something_else_fires_at_once_and_another_reason_is_the_same_alert() -> None:
    records = tape(made(2, max_num_seqs=64), *restarted(5, vllm="0.33.0"), minutes=6)
    (alert,) = stale(records)
    assert (alert.state, alert.started) == ("firing", T0 + 2 * MINUTE)
    assert "vLLM: 0.32.0 then, 0.33.0 now" in str(alert.evidence["differs"])
    assert "largest batch" in str(alert.evidence["differs"])


CHANGES: dict[str, dict[str, Any]] = {
    "target": {"target": "other"}, "drafter": {"drafter": "other"}, "vllm": {"vllm": "0.33.0"},
    "hardware": {"hardware": "Other CPU"}, "topology": {"tensor_parallel_size": 2}, "max_k": {"max_k": 4},
    "max_num_seqs": {"max_num_seqs": 8}, "max_model_len": {"max_model_len": 512},
    "max_num_batched_tokens": {"max_num_batched_tokens": 256}, "runner": {"runner": "v2"},
    "graph_mode": {"graph_mode": "NONE"}, "async_scheduling": {"async_scheduling": True},
}  # fmt: skip


def test_every_part_of_the_fingerprint_makes_it_stale() -> None:
    changes = CHANGES.values()
    records = tape(made(1), minutes=2)
    for minute, changed in enumerate(changes, 2):
        records += [*restarted(minute, **changed), *restarted(minute + 0.5)]
    found = stale(records)
    assert [alert.started for alert in found] == [T0 + (2 + n) * MINUTE + 0.5 for n in range(len(changes))]
    assert {alert.state for alert in found} == {"resolved"}
    named = {one.split(":")[0] for alert in found for one in str(alert.evidence["differs"]).split("; ")}
    assert len(named) == len(Fingerprint.__struct_fields__)


def test_what_is_no_other_engine_of_the_map_raises_nothing() -> None:
    other_policy = msgspec.structs.replace(engine().configured, k=1)
    records = tape(
        made(2),
        *restarted(3),
        *restarted(4, configured=other_policy),
        *restarted(5, hardware=None),
        engine(T0 + 6 * MINUTE, engine="v0", max_k=0, drafter="none", method="none"),
        engine(T0 + 6 * MINUTE, engine="e0-1", max_k=3),
        ControlRecord(T0 + 7 * MINUTE, "somebody", MAP, numbers={"id": 1}),
        minutes=8,
    )
    assert stale(records) == []


def test_without_a_map_nothing_is_stale_and_one_that_comes_later_counts_from_then() -> None:
    assert stale(tape(*restarted(5, drafter="other"), minutes=8)) == []
    (alert,) = stale(tape(*restarted(5, drafter="other"), made(7), minutes=9))
    assert alert.started == T0 + 7 * MINUTE


@pytest.mark.parametrize("knowing", [True, False], ids=["state", "unknowing"])
def test_a_recording_that_begins_later_tells_the_same(tmp_path: Path, knowing: bool) -> None:
    records = tape(made(2), *restarted(5, drafter="other"), *restarted(10), minutes=12)
    with Store.memory() as store:
        ingest, judging = Ingest(store), Judging(store.connection)
        began = None
        for record in records:
            ingest.record(record)
            if began is None and record.ts >= T0 + 8 * MINUTE:
                ingest.flush()
                judging.catch_up()
                began = make_state(judging, store.connection, record.ts)
        ingest.close()
        assert began is not None
        later = {"state": began} if knowing else {"since": began.ts}
        export(store.connection, tmp_path / "later.jsonl", **later)  # type: ignore[arg-type]
    with open_source(tmp_path / "later.jsonl") as copy:
        judge_all(copy.connection)
        (alert,) = [one for one in history(copy.connection).alerts if one.kind == "map_stale"]
    assert (alert.state, alert.started, alert.ended) == (
        "resolved", T0 + 5 * MINUTE + 0.5, T0 + 10 * MINUTE + 0.5,
    )  # fmt: skip
