"""What importing the store loads: never a screen, never an engine; figures alone load next to nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest


def loaded_by(module: str) -> set[str]:
    code = f"import sys, {module}; print(*sorted(name.split('.')[0] for name in sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return set(out.split())


@pytest.mark.parametrize("module", ["store.ingest", "store.replay", "store.export", "store.query", "store.windows"])
def test_the_store_loads_neither_screens_nor_engines(module: str) -> None:
    assert not loaded_by(module) & {"textual", "plotext", "vllm", "torch", "transformers", "console"}


def test_figures_load_neither_duckdb_nor_numpy() -> None:
    assert not loaded_by("store.figures") & {"duckdb", "numpy", "pyarrow", "scipy"}
