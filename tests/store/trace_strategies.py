"""Traces as hypothesis draws them: what engines write, and everything that a file may hold besides."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from hypothesis import strategies as st

from engine.records import (
    CAUSES,
    LIMITS,
    ControlRecord,
    FinishRecord,
    GapRecord,
    Passage,
    PolicyMode,
    Record,
    Row,
    SequenceRecord,
    StateRecord,
    StepRecord,
    TextRecord,
)
from tests.store.builders import T0, engine

names = st.sampled_from(["a", "b", "c", "7"]) | st.text(max_size=3)
engines = st.sampled_from(["e0", "e0", "e1"])
counts = st.integers(0, 5) | st.integers(0, 5) | st.sampled_from([-1, 70_000, 2**31, -(2**31), 2**70])
facts = st.integers(0, 9) | st.integers(0, 9) | st.sampled_from([-1, 2**16, 2**31, 2**64])
times = st.floats(T0, T0 + 3) | st.floats(T0, T0 + 3) | st.sampled_from([0.0, -1.0, 1e12, T0 + 700.0, T0 + 0.1234565])
rows = st.builds(
    Row, names, counts, st.sampled_from(LIMITS), st.none() | counts, counts, counts, counts, counts, counts,
    st.sampled_from(CAUSES),
)  # fmt: skip
sound_rows = st.builds(
    Row, st.sampled_from("abcdefg"), st.integers(1, 4), st.sampled_from(LIMITS), st.none() | st.integers(0, 4),
    st.integers(2, 4), st.just(0), st.integers(0, 2), st.integers(0, 1), st.integers(0, 3000),
    st.sampled_from(CAUSES),
)  # fmt: skip
steps = st.builds(
    StepRecord, engines, facts, facts, times, st.floats(0, 100) | st.just(-1.0), facts, facts, facts, facts,
    st.lists(rows, max_size=3), facts, st.sampled_from([None, "k0", "deep"]), facts, st.sampled_from(LIMITS),
)  # fmt: skip
sound_steps = st.builds(
    StepRecord, engines, st.integers(0, 9), st.integers(0, 9), st.floats(T0, T0 + 3), st.floats(0, 100),
    st.integers(0, 4), st.integers(0, 4), st.integers(1, 9), st.integers(0, 3), st.lists(sound_rows, max_size=4),
)  # fmt: skip
sequences = st.builds(
    SequenceRecord, engines, st.sampled_from("abcdefg"), times, st.sampled_from([None, "code", "chat"]),
    st.sampled_from([0.0, 0.7, None]),
)  # fmt: skip
passages = st.lists(st.builds(Passage, st.text(max_size=9), st.none() | names, st.integers(0, 2)), max_size=3)
texts = st.builds(TextRecord, engines, times, names, passages, passages, st.none() | names)
others = (
    st.builds(FinishRecord, engines, st.sampled_from("abcdefg"), times, st.just("stop"), facts)
    | st.builds(ControlRecord, times, names, names, st.none() | names, st.none(), st.dictionaries(names, facts))
    | st.builds(GapRecord, engines, times, facts)
    | st.builds(StateRecord, times, st.dictionaries(names, facts))
    | st.builds(lambda name, ts, k: engine(ts, engine=name, configured=PolicyMode("static", k)), engines, times, facts)
    | texts
)


@st.composite
def traces(draw: st.DrawFn) -> list[Record]:
    """An engine, and then anything, mostly steps, more or less in order."""
    found: list[Record] = draw(st.lists(sound_steps | sound_steps | steps | sequences | others, max_size=30))
    if draw(st.booleans()):
        found.sort(key=lambda record: record.ts)
    return [engine(), *found]


def normalised(records: Sequence[Record]) -> bytes:
    """As this version writes the records: every field of them, and no other, in a fixed order."""
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)
