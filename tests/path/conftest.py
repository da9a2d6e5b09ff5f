"""One engine for all tests of the whole path: it takes half a minute to start, so each leaves it serving."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.path.served import Served


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    """`specdeck serve` as it comes (bundled model, bundled head), vLLM's own detail on, prompts prefilled in chunks."""
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as directory:
        running = Served(
            Path(directory),
            "--engine-arg=--per-request-spec-decode-metrics=detailed",
            "--engine-arg=--max-num-batched-tokens=256",
        )
        try:
            running.wait_serving()
            yield running
        finally:
            running.stop()
