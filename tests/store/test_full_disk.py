"""A full disk: what can't be written waits and is there afterwards; what had to be given up stands as a gap."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.database import Store, StoreError
from store.ingest import Ingest
from tests.store.builders import announcement, arrived, frame, row
from tests.store.small_disk import SmallDisk, small_disk

ROWS = 50


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", megabytes=16) as disk:
        yield disk


def feed(ingest: Ingest, numbers: range, start: float) -> None:
    """Frames of 50 rows, ten a second from `start` on."""
    if numbers[0] == 1:
        ingest.announcement(announcement([arrived(1, ts=start)]), start)
    for number in numbers:
        ingest.frame(frame(number, [row("1")] * ROWS, ts=start + number * 0.1), start + number * 0.1)


def counted(store: Store) -> tuple[int, int, int]:
    """Steps, rows and frames missing."""
    ((steps, rows, lost),) = store.connection.execute(
        """SELECT (SELECT count(*) FROM steps), (SELECT count(*) FROM rows),
             (SELECT coalesce(sum(frames_lost), 0) FROM gaps)"""
    ).fetchall()
    return steps, rows, lost


def test_what_a_full_disk_refused_is_there_once_it_has_room(disk: SmallDisk) -> None:
    path, start = disk.path / "s.duckdb", time.time()
    with Store.open(path) as store:
        ingest = Ingest(store)
        feed(ingest, range(1, 101), start)
        ingest.flush()
        disk.fill()
        for first in (101, 201, 301):
            feed(ingest, range(first, first + 100), start)
            with pytest.raises(StoreError, match="No space left on device"):
                ingest.flush()
        assert counted(store) == (100, 100 * ROWS, 0), "what was written stays readable"
        disk.free()
        feed(ingest, range(401, 451), start)
        ingest.close()
        assert counted(store) == (450, 450 * ROWS, 0)
    with Store.open(path) as store:
        assert counted(store) == (450, 450 * ROWS, 0)


def test_a_station_that_is_killed_on_a_full_disk_leaves_a_store_that_opens(disk: SmallDisk) -> None:
    path, start = disk.path / "s.duckdb", time.time()
    code = f"""
import os, sys
from pathlib import Path
from store.database import Store, StoreError
from store.ingest import Ingest
from tests.store.small_disk import SmallDisk
from tests.store.test_full_disk import feed
ingest = Ingest(Store.open(sys.argv[1]))
feed(ingest, range(1, 101), {start!r})
ingest.flush()
SmallDisk(Path(sys.argv[1]).parent).fill()
feed(ingest, range(101, 201), {start!r})
try:
    ingest.flush()
except StoreError:
    os.kill(os.getpid(), 9)
"""
    died = subprocess.run([sys.executable, "-c", code, str(path)], cwd=Path(__file__).parents[2])
    assert died.returncode == -9
    disk.free()
    with Store.open(path) as store:
        assert counted(store) == (100, 100 * ROWS, 0)


def test_what_is_given_up_after_too_long_is_a_gap_with_its_frames(
    disk: SmallDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.writer.MAX_BUFFERED_ROWS", 150 * ROWS)
    start = time.time()
    with Store.open(disk.path / "s.duckdb") as store:
        ingest = Ingest(store)
        feed(ingest, range(1, 101), start)
        ingest.flush()
        disk.fill()
        for first in (101, 201):  # the first hundred may wait, two hundred are too many
            feed(ingest, range(first, first + 100), start)
            with pytest.raises(StoreError):
                ingest.flush()
        disk.free()
        feed(ingest, range(301, 401), start)
        ingest.close()
        assert counted(store) == (200, 200 * ROWS, 200), "every frame is stored or in a gap"
        ((engine, since, until_),) = store.connection.execute("SELECT engine, since, ts FROM gaps").fetchall()
    assert engine == "e0"
    assert (since, until_) == (pytest.approx(start + 10.0, abs=1e-5), pytest.approx(start + 30.0, abs=1e-5))
    assert ingest.counts.frames_lost == 200


LIMITED = """
import resource, sys, time
from store.database import Store, StoreError
from store.ingest import Ingest
from tests.store.test_full_disk import counted, feed
start = time.time()
with Store.open(sys.argv[1]) as store:
    ingest = Ingest(store)
    feed(ingest, range(1, 101), start)
    ingest.flush()
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    feed(ingest, range(101, 201), start)
    try:
        ingest.flush()
        refused = False
    except StoreError:
        refused = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    ingest.close()
    print(refused, counted(store))
"""


def test_a_file_that_may_not_grow_is_the_same(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "s.duckdb")],
        cwd=Path(__file__).parents[2], capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout == f"True {(200, 200 * ROWS, 0)}\n", done.stderr
