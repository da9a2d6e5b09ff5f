"""Whatever bytes come over the socket and whatever numbers they hold: the ingest goes on and the store stays whole."""

from __future__ import annotations

import random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.frames import (
    WIRE_VERSION,
    Announcement,
    ArrivedSequence,
    FinishedSequence,
    Frame,
    PackedStep,
    WireError,
    decode,
    encode,
)
from engine.records import LIMITS, ControlRecord, EngineRecord, GapRecord
from store.database import Store
from store.ingest import Ingest
from store.report import report
from store.windows import LiveWindows
from tests.store.builders import T0, announcement, arrived, engine, finished, frame, row

numbers = st.integers(-(2**63), 2**64 - 1) | st.integers(-2, 10)
floats = st.floats() | st.floats(T0, T0 + 100)
texts = st.text(max_size=20) | st.sampled_from(["code", "a\x00b", "'; DROP TABLE rows;--"])
sequences = st.builds(
    ArrivedSequence, numbers, texts, floats, st.none() | texts, floats, numbers, st.booleans(),
    st.sampled_from(["speculative", "vanilla"]), st.none() | texts,
)  # fmt: skip
finishes = st.builds(FinishedSequence, numbers, floats, texts, numbers)


@st.composite
def steps(draw: st.DrawFn) -> PackedStep:
    count = draw(st.integers(0, 4))
    columns = draw(st.binary(min_size=40 * count, max_size=40 * count))
    return PackedStep(
        draw(numbers), draw(floats), draw(floats), draw(numbers), draw(numbers), draw(numbers), draw(numbers),
        draw(numbers), draw(st.sampled_from([None, "k0", "deep"])), draw(numbers), draw(st.sampled_from(LIMITS)), count,
        columns,
    )  # fmt: skip


frames = st.builds(
    Frame, st.just(WIRE_VERSION), st.sampled_from(["e0", "e1"]), st.sampled_from(["b1", "b2"]), numbers,
    st.lists(sequences, max_size=3), st.none() | steps(), st.lists(finishes, max_size=2),
)  # fmt: skip


@st.composite
def announcements(draw: st.DrawFn) -> Announcement:
    odd: EngineRecord = engine(
        max_k=draw(numbers), max_num_seqs=draw(numbers), data_parallel_size=draw(numbers), ts=draw(floats),
        target=draw(texts), boot="b1",
    )  # fmt: skip
    return Announcement(WIRE_VERSION, odd, "b1", draw(numbers), draw(st.lists(sequences, max_size=3)), 1, None, 0)


@settings(max_examples=60, deadline=None)
@given(st.lists(frames | announcements(), max_size=8))
def test_no_numbers_stop_the_ingest(messages: list[Frame | Announcement]) -> None:
    windows = LiveWindows()
    with Store.memory() as store:
        ingest = Ingest(store, windows)
        for message in messages:
            if isinstance(message, Frame):
                ingest.frame(message, T0)
            else:
                ingest.announcement(message, T0)
        ingest.gap(GapRecord("e0", T0, 2**80))
        ingest.control(ControlRecord(T0, "a", "b", policy=-(2**90)))
        ingest.close()
        assert store.connection.execute("SELECT count(*) FROM rows").fetchall() == [(ingest.counts.rows,)]
        msgspec.json.encode(report(store.connection, source="x"))
        windows.buckets(T0 + 50)
        windows.total(T0 + 50)


def test_damaged_bytes_are_refused_or_taken_and_never_raise() -> None:
    rng = random.Random(5)
    messages = [
        announcement([arrived(1), arrived(2, "chat")]),
        *(frame(number, [row("1"), row("2")], finishes=[finished(2, T0)]) for number in range(1, 20)),
    ]
    with Store.memory() as store:
        ingest = Ingest(store, LiveWindows())
        for _ in range(400):
            payload = bytearray(encode(rng.choice(messages)))
            for _ in range(rng.randint(0, 4)):
                payload[rng.randrange(len(payload))] = rng.randrange(256)
            try:
                message = decode(bytes(payload[: rng.choice([len(payload), rng.randrange(len(payload))])]))
            except WireError as error:
                ingest.broken_message(str(error))
                continue
            if isinstance(message, Frame):
                ingest.frame(message, T0)
            else:
                ingest.announcement(message, T0)
        ingest.close()
        assert ingest.counts.broken_messages > 100
        assert store.connection.execute("SELECT count(*) FROM rows").fetchall() == [(ingest.counts.rows,)]
