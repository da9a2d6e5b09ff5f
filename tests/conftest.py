"""What tests of every part share: private places per session, and the bundled model."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from xdist.remote import Producer

    from tests.side_by_side import SideBySide

# How long an example takes says nothing here: other tests, and engines, run beside this one.
settings.register_profile("suite", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):  # this is one of several processes
        from tests.side_by_side import arrange, end_quietly

        arrange(items)
        end_quietly()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> SideBySide | None:
    if config.getoption("dist") != "loadgroup":
        return None
    from tests.side_by_side import SideBySide

    return SideBySide(config, log)


@pytest.fixture(scope="session", autouse=True)
def _own_places() -> Iterator[None]:
    """Sockets and data of the tests lie apart from a specdeck that may be running; the model cache is shared."""
    # Short, and not pytest's own deep directory: a socket path over 107 bytes is refused.
    with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as directory:
        os.environ["SPECDECK_RUNTIME_DIR"] = str(Path(directory) / "run")
        os.environ["SPECDECK_DATA_DIR"] = str(Path(directory) / "data")
        os.environ["SPECDECK_ACTOR"] = "operator"  # whatever terminal the tests run in
        yield


@pytest.fixture(scope="session")
def bundled_model() -> Path:
    """The bundled target, converted on first use."""
    from engine.models import resolve

    return Path(resolve("bundled").path)
