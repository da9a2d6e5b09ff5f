"""The head that comes with specdeck: trained for the bundled model by `specdeck drafter train`, shipped as its files.

A worse version of it, for traces and tests, is derived from it when asked for (`engine.drafter.worse`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from engine.cached_folder import ModelError
from engine.records import Method

BUNDLED: Final = "bundled"
WORSE: Final = "bundled-worse"
NAMES: Final = (BUNDLED, WORSE)
"""The words for them where a drafter is asked for."""

HEAD_NAME: Final = "SmolLM2-135M-eagle3"
WORSE_NAME: Final = f"{HEAD_NAME}-worse"
METHOD: Final[Method] = "eagle3"

WEIGHTS: Final = "model.safetensors"
FILES: Final = (WEIGHTS, "config.json", "README.md")
"""Weights, what vLLM reads, and the card."""

LARGEST: Final = 25_000_000
"""Bytes that the weights may have: they are in the repository and in every wheel."""

REINSTALL: Final = (
    f"{sys.executable} -m pip install --force-reinstall --no-deps specdeck "
    "(in a checkout: git checkout -- engine/drafter/bundled)"
)


def head_dir() -> Path:
    """Where the shipped head lies."""
    return Path(__file__).with_name("bundled")


def head() -> Path:
    """The shipped head's folder, with all that vLLM needs in it.

    Raises:
        ModelError: a file is missing, with the command that brings it back.
    """
    folder = head_dir()
    missing = [name for name in FILES[:2] if not (folder / name).is_file()]
    if missing:
        raise ModelError(f"{folder}: the bundled head lacks {' and '.join(missing)}: {REINSTALL}")
    return folder
