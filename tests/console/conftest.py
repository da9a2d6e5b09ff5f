"""A place of its own for a station: sockets, store and cache; and a clock and colours that are the same everywhere."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A private place that the environment points into, short enough for sockets, with no station in it."""
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name:
        for variable, folder in (("RUNTIME", "run"), ("DATA", "data"), ("CACHE", "cache")):
            monkeypatch.setenv(f"SPECDECK_{variable}_DIR", str(Path(name) / folder))
        yield Path(name)


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times are shown in UTC, and in colour, whatever the environment says."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
