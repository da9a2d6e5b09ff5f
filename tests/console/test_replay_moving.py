"""Wherever a replay's clock was before, its windows show what an ingest shows that was fed the records until then."""

from __future__ import annotations

import math
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from console.replaying.moving import Moving
from engine.records import FinishRecord, GapRecord, Record, SequenceRecord
from store.buckets import CALIBRATION
from store.database import Store
from store.ingest import Ingest
from store.rollup import roll_up
from store.still_windows import StillWindows
from store.window_spans import SPANS
from store.windows import LiveWindows
from tests.store.builders import T0, engine, row, step

ENGINES = ("e0", "e1")
PAUSES = st.sampled_from([0.05, 0.9, 3.0, 9.99, 45.0, 700.0, 4000.0])
ROWS = st.tuples(st.integers(0, 4), st.integers(0, 4), st.booleans())


@st.composite
def records(draw: st.DrawFn) -> list[Record]:
    """Two engines, of one of which the batch K is fixed, their requests, restarts and gaps over some hours."""
    made: list[Record] = [engine(), engine(engine="e1", batch_k="fixed", target="other")]
    live: dict[str, list[str]] = {name: [] for name in ENGINES}
    now, number = T0, 0
    for _ in range(draw(st.integers(1, 25))):
        now, number = round(now + draw(PAUSES), 6), number + 1
        name = draw(st.sampled_from(ENGINES))
        mine = live[name]
        what = draw(st.sampled_from(["step"] * 6 + ["finish", "gap", "restart"]))
        if what == "gap":
            made.append(GapRecord(name, now, 3, since=now - 0.04))
        elif what == "restart":
            mine.clear()
            made.append(engine(now, engine=name, boot=f"b{number}", batch_k="fixed" if name == "e1" else "free"))
        elif what == "finish" and mine:
            made.append(FinishRecord(name, mine.pop(), now, "stop", 5))
        else:
            if len(mine) < 2 or draw(st.booleans()):
                mine.append(f"s{number}")
                tag = draw(st.sampled_from(["code", "chat", None, CALIBRATION]))
                made.append(SequenceRecord(name, f"s{number}", now - 0.01, tag))
            shapes = [(seq, *draw(ROWS)) for seq in mine]
            rows = [row(seq, d, min(a, d), proposed=None if blind else d) for seq, d, a, blind in shapes]
            made.append(step(number, rows, now, engine=name, duration_ms=40.0, waiting=draw(st.integers(0, 2))))
    return made


def shown(windows: LiveWindows | StillWindows, ts: float, window: float) -> dict[str, Any]:
    """Everything that a picture takes from windows, but for when a bucket was last seen: that is known to a cell."""
    if isinstance(windows, LiveWindows):
        for group in windows._groups.values():
            group.changes += 1
    buckets = windows.buckets(ts, window)
    found = {
        "buckets": [replace(bucket, last_seen=0.0) for bucket in buckets],
        "total": windows.total(ts, window),
        "rate": windows.tokens_per_second(ts),
        "series": [windows.series(key, 7200.0, 90, ts) for key in (None, *(bucket.key for bucket in buckets))],
        "loads": [windows.engine_load(name) for name in ENGINES],
    }
    plain: dict[str, Any] = msgspec.to_builtins(found)
    return plain


def fed(made: list[Record], until: float, models: Any, window: float) -> dict[str, Any]:
    windows = LiveWindows(renew_seconds=60.0)
    with Store.memory() as store:
        ingest = Ingest(store, windows)
        for record in made:
            if record.ts <= until:
                ingest.record(record)
        ingest.close()
    windows.use_models(models)
    return shown(windows, until, window)


def same(found: Any, expected: Any) -> bool:
    """Equal, but for the last digits of what is summed up in another order."""
    if isinstance(found, float) and isinstance(expected, float):
        return math.isclose(found, expected, rel_tol=1e-9)
    if isinstance(found, dict) and isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[key], expected[key]) for key in found)
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    return bool(found == expected)


def moment(made: list[Record], share: float, exactly: bool) -> float:
    last = made[-1].ts + 400.0
    ts = T0 + share * (last - T0)
    earlier = [record.ts for record in made if record.ts <= ts]
    return earlier[-1] if exactly and earlier else ts


@settings(max_examples=5, deadline=None)
@given(
    records(),
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=2, max_size=3),
    st.sampled_from([seconds for seconds, *_ in SPANS]),
    st.booleans(),
)
def test_playing_seeking_and_recording_show_the_same(
    made: list[Record], stops: list[tuple[float, bool]], window: float, rolled: bool
) -> None:
    with Store.memory() as store:
        ingest = Ingest(store)
        for record in made:
            ingest.record(record)
        ingest.close()
        if rolled:
            roll_up(store.connection, float("inf"))
        playing = Moving(store.connection, renew_seconds=60.0)
        moments = [moment(made, *stop) for stop in stops]
        for ts in (*sorted(moments), moments[0]):  # onward in pieces, and back
            playing.to(ts, ahead=1.0)
            expected = fed(made, ts, playing._models, window)
            assert same(shown(playing.windows, ts, window), expected), (shown(playing.windows, ts, window), expected)
            seeking = Moving(store.connection, renew_seconds=60.0)
            seeking.to(ts)
            assert same(shown(seeking.windows, ts, window), expected), (shown(seeking.windows, ts, window), expected)
