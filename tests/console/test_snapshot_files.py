"""Every snapshot is some test's. Run in one process, syrupy sees to that itself; in several it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
FOLDERS = sorted((HERE / "__snapshots__").iterdir())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_none_is_left_over(folder: Path, request: pytest.FixtureRequest) -> None:
    module = pytest.Module.from_parent(request.session, path=HERE / f"{folder.name}.py")
    tests = {item.name for item in module.collect()}
    assert tests
    assert {path.stem for path in folder.iterdir()} - tests == set()
