"""What a station answers about single requests, from its store and up to this moment."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.feed.protocol import RequestRow, RequestRows, RequestRowsParams
from console.feed.server import FeedError
from console.station.recorder import Received, Recorder, open_recorder
from console.station.step_queries import request_rows
from engine.frames import ArrivedSequence
from tests.store.builders import T0, announcement, frame, row


def asked(recorder: Recorder, *requests: str, control: object = "there") -> list[RequestRows]:
    station: Any = SimpleNamespace(recorder=recorder, control=control)
    return asyncio.run(request_rows(station, RequestRowsParams(requests=list(requests)), "ann")).requests


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return open_recorder(tmp_path / "store.duckdb", lambda kind, text: None)


def test_rows_that_came_a_moment_ago_are_there(recorder: Recorder) -> None:
    recorder.start()
    arrived = ArrivedSequence(1, "chatcmpl-77-0b5f01ca", T0, "code", 0.0, 9, False, "speculative")
    recorder.put(Received(announcement([arrived]), T0))
    recorder.put(Received(frame(1, [row("1", d=3, a=1, k=4, limit="cap")]), T0 + 0.1))
    (found,) = asked(recorder, "chatcmpl-77", "chatcmpl-78")
    recorder.stop()
    assert (found.request, found.engine, found.workload, found.lane) == ("chatcmpl-77", "e0", "code", "speculative")
    assert found.rows == [RequestRow(1, 4, "cap", 3, 1, 2, "no_proposal")]


def test_too_many_at_once_and_a_station_that_sees_no_requests_are_refused(recorder: Recorder) -> None:
    with pytest.raises(FeedError, match="1001 ids; ask for at most 1000"):
        asked(recorder, *map(str, range(1001)))
    with pytest.raises(FeedError, match="only observes"):
        asked(recorder, "chatcmpl-77", control=None)
    recorder.store.close()
