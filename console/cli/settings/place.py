"""Where the settings file is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import platformdirs

VARIABLE: Final = "SPECDECK_CONFIG"


def settings_path() -> Path:
    """`specdeck.toml` in the user's configuration folder, or what `SPECDECK_CONFIG` names. It need not exist."""
    given = os.environ.get(VARIABLE)
    return Path(given).absolute() if given else platformdirs.user_config_path("specdeck") / "specdeck.toml"
