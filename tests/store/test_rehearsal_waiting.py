"""How long a request of a rehearsal waited, from the engine's records."""

from __future__ import annotations

import pytest

from store.rehearsal.records import Outcome
from store.rehearsal.waiting import begun, waiting
from tests.store.builders import T0, engine, row, sequence, step, store_of

RECORDS = [
    engine(),
    sequence("a", request="chatcmpl-a-0b5f01ca", ts=T0 + 0.1),
    sequence("b", request="chatcmpl-b-0b5f01cb", ts=T0 + 0.1),
    sequence("silent", request="chatcmpl-silent-0b5f01cc", ts=T0 + 0.1),
    step(1, [row("other")], ts=T0 + 0.2),
    step(2, [row("a"), row("other")], ts=T0 + 5.5, duration_ms=5200.0),
    step(3, [row("b"), row("a")], ts=T0 + 5.6, duration_ms=60.0),
]


def outcome(name: str, at: float, request: str | None) -> Outcome:
    return Outcome(id=name, at=at, phase=0, workload="code", request=request)


def test_a_request_begins_with_the_step_of_its_first_row() -> None:
    with store_of(RECORDS) as store:
        found = begun(store.connection, ["chatcmpl-a", "chatcmpl-b", "chatcmpl-silent", "chatcmpl-never"])
        assert begun(store.connection, ["chatcmpl-never"]) == begun(store.connection, []) == {}
    assert found == pytest.approx({"chatcmpl-a": T0 + 0.3, "chatcmpl-b": T0 + 5.54}, abs=1e-5)


def test_waiting_counts_from_the_intended_moment_and_is_never_negative() -> None:
    outcomes = [
        outcome("1", 0.0, "chatcmpl-a"),
        outcome("2", 0.2, "chatcmpl-b"),
        outcome("3", 9.0, "chatcmpl-a"),
        outcome("4", 0.2, "chatcmpl-silent"),
        outcome("5", 0.2, None),
    ]
    with store_of(RECORDS) as store:
        assert waiting(store.connection, outcomes, T0) == pytest.approx({"1": 0.3, "2": 5.34, "3": 0.0}, abs=1e-5)
