"""A station process under faults of its surroundings: a full disk, a hostile telemetry socket, another's store."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import zmq

from console.station.options import write_options
from console.station.recorder import Received, Recorder, open_recorder
from engine.frames import Announcement, Frame, WireError, decode, encode
from engine.sockets import Sockets, ipc
from store.database import Store
from tests.acceptance.soak import soak
from tests.console.station_harness import StationUnderTest, until
from tests.store.builders import announcement, arrived, finished, frame, row
from tests.store.small_disk import SmallDisk, small_disk

ROWS = 50


@pytest.fixture
def disk(place: Path) -> Iterator[SmallDisk]:
    with small_disk(place / "disk", megabytes=16) as disk:
        yield disk


def send(station: StationUnderTest, payloads: list[bytes]) -> None:
    with zmq.Context() as context, context.socket(zmq.PUSH) as push:
        push.setsockopt(zmq.LINGER, 10_000)
        push.connect(ipc(Sockets(station.run_dir).telemetry))
        for payload in payloads:
            push.send(payload)


def stored(path: Path, query: str) -> tuple[Any, ...]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(query).fetchall()[0]


def frames(first: int, last: int, start: float) -> list[bytes]:
    """Frames of 50 rows, a hundred a second."""
    return [encode(frame(n, [row("1")] * ROWS, ts=start + n * 0.01)) for n in range(first, last + 1)]


def test_a_full_disk_stops_recording_loudly_and_nothing_else(place: Path, disk: SmallDisk) -> None:
    start = time.time()
    station = StationUnderTest(place, engine=False, store=str(disk.path / "s.duckdb")).start()
    try:
        send(station, [encode(announcement([arrived(1, ts=start)])), *frames(1, 100, start)])
        station.wait(lambda seen: seen.store.rows == 100 * ROWS, "the first rows")
        disk.fill()
        send(station, frames(101, 200, start))
        full = station.wait(lambda seen: not seen.store.recording, "recording that stops")
        assert "No space left on device" in (full.store.error or "")
        (condition,) = [alert for alert in full.alerts if alert.kind == "recording_stopped"]
        assert (condition.severity, condition.state) == ("critical", "firing")
        assert "see that the disk has space" in condition.text
        send(station, frames(201, 300, start))
        live = station.wait(lambda seen: seen.store.rows == 300 * ROWS, "live figures that go on")
        assert live.total is not None
        assert live.loss.frames_lost == 0
        disk.free()
        again = station.wait(lambda seen: seen.store.recording, "recording again")
        assert again.store.error is None
        assert station.terminate() == 0
    finally:
        station.close()
    query = "SELECT (SELECT count(*) FROM steps), (SELECT count(*) FROM rows), (SELECT count(*) FROM gaps)"
    assert stored(disk.path / "s.duckdb", query) == (300, 300 * ROWS, 0)


def test_damaged_telemetry_is_counted_and_harms_no_frame_beside_it(place: Path) -> None:
    rng, start = random.Random(7), time.time()
    good = [encode(announcement([arrived(1, ts=start)])), *frames(1, 100, start)]
    whole = [encode(frame(n, [row("9")], finishes=[finished(9, start)], boot="b9")) for n in range(1, 10)]
    damaged = [_damaged(rng, rng.choice(whole)) for _ in range(300)]
    broken = [payload for payload in damaged if not _is_telemetry(payload)]
    assert len(broken) > 200
    station = StationUnderTest(place, engine=False).start()
    try:
        mixed = good + broken
        order = sorted(range(len(mixed)), key=lambda i: i if i < len(good) else rng.random() * len(good))
        send(station, [mixed[i] for i in order])
        seen = station.wait(lambda now: now.loss.broken_messages >= len(broken), "all broken messages")
        station.wait(lambda now: now.store.rows == 100 * ROWS, "all rows")
        assert any(alert.kind == "telemetry_loss" for alert in seen.alerts)
        assert station.terminate() == 0
    finally:
        station.close()
    assert "Traceback" not in station.output()
    assert stored(station.store, "SELECT count(*), max(frame) FROM steps") == (100, 100)


def _damaged(rng: random.Random, payload: bytes) -> bytes:
    made = bytearray(payload)
    for _ in range(rng.randint(1, 4)):
        made[rng.randrange(len(made))] = rng.randrange(256)
    return bytes(made[: rng.choice([len(made), rng.randrange(len(made))])])


def _is_telemetry(payload: bytes) -> bool:
    try:
        return isinstance(decode(payload), Frame | Announcement)
    except WireError:
        return False


@pytest.mark.parametrize("what", ["newer", "foreign", "rubbish"])
def test_a_store_that_is_not_ours_to_write_is_refused_and_left_byte_by_byte(place: Path, what: str) -> None:
    path = place / "s.duckdb"
    if what == "newer":
        with Store.open(path) as store:
            store.connection.execute("UPDATE meta SET schema_version = 99")
    elif what == "foreign":
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE theirs (a INTEGER)")
    else:
        path.write_bytes(b"rubbish" * 1000)
    before = path.read_bytes()
    station = StationUnderTest(place, engine=False, store=str(path))
    options = place / "options.json"
    write_options(station.options, options)
    refused = subprocess.run([sys.executable, "-m", "console.station", str(options)], capture_output=True, text=True)
    assert refused.returncode == (2 if what == "newer" else 3)
    assert str(path) in refused.stderr
    assert "Traceback" not in refused.stderr
    assert path.read_bytes() == before
    assert [file.name for file in place.glob("s.duckdb*")] == ["s.duckdb"]


def test_a_recorder_says_so_goes_on_live_never_blocks_and_recovers_by_itself(
    disk: SmallDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.station.recorder.RETRY_SECONDS", 0.1)
    monkeypatch.setattr("console.station.recorder.FLUSH_SECONDS", 0.1)
    told: list[str] = []
    recorder = open_recorder(disk.path / "s.duckdb", lambda kind, text: told.append(text))
    recorder.start()
    start = time.time()
    recorder.put(Received(announcement([arrived(1, ts=start)]), start))
    slowest = max(put(recorder, number, start) for number in range(1, 51))
    assert recorder.flush_and_wait()
    disk.fill()
    slowest = max(slowest, *(put(recorder, number, start) for number in range(51, 101)))
    error = until(lambda: recorder.error, "the error")
    assert error.startswith("NOT RECORDING")
    assert "No space left" in error
    slowest = max(slowest, *(put(recorder, number, start) for number in range(101, 151)))
    until(lambda: recorder.counts().rows == 150 * ROWS, "live figures that go on")
    assert slowest < 1.0, "whoever sends is never held up by the disk"
    disk.free()
    until(lambda: recorder.error is None, "recording again")
    recorder.stop()
    assert told == [error, "recording again"]
    with Store.open(disk.path / "s.duckdb") as store:
        found = store.connection.execute("SELECT (SELECT count(*) FROM rows), (SELECT count(*) FROM gaps)").fetchall()
    assert found == [(150 * ROWS, 0)]


def put(recorder: Recorder, number: int, start: float) -> float:
    """Seconds that it took."""
    began = time.monotonic()
    ts = start + number * 0.01
    recorder.put(Received(frame(number, [row("1")] * ROWS, ts=ts), ts))
    return time.monotonic() - began


def test_minutes_of_real_frames_in_a_loop_come_through_whole(place: Path) -> None:
    found = soak(place, hours=0.05)
    assert found.frames_sent > 1000
    assert found.verdicts() == {"no loss": True, "file as predicted": True, "memory flat": None}
