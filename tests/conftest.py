"""What tests of every part share: private places per session, and the bundled model."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def _own_places() -> Iterator[None]:
    """Sockets and data of the tests lie apart from a specdeck that may be running; the model cache is shared."""
    # Short, and not pytest's own deep directory: a socket path over 107 bytes is refused.
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as directory:
        os.environ["SPECDECK_RUNTIME_DIR"] = str(Path(directory) / "run")
        os.environ["SPECDECK_DATA_DIR"] = str(Path(directory) / "data")
        yield


@pytest.fixture(scope="session")
def bundled_model() -> Path:
    """The bundled target, converted on first use."""
    from engine.models import resolve

    return Path(resolve("bundled").path)
