"""Where specdeck keeps things on this machine: sockets, caches, data. Each place can be moved by an environment
variable (`SPECDECK_RUNTIME_DIR`, `SPECDECK_CACHE_DIR`, `SPECDECK_DATA_DIR`), which tests use to stay apart."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

import platformdirs

SOCKET_PATH_LIMIT: Final = 107
"""ZeroMQ and the kernel refuse a longer unix socket path."""

_LONGEST_NAME: Final = len("/telemetry.policy") + 12


def runtime_dir() -> Path:
    """The private directory of sockets and state files, created with mode 0700.

    The system's runtime directory may be unset, or so long that a socket in it could not be bound: then it is a
    directory under the temporary directory, with the user's id in its name.
    """
    override = os.environ.get("SPECDECK_RUNTIME_DIR")
    if override:
        path = Path(override)
    else:
        base = os.environ.get("XDG_RUNTIME_DIR")
        name = f"specdeck-{os.getuid()}"
        path = Path(base) / name if base else Path(tempfile.gettempdir()) / name
        if len(str(path)) + _LONGEST_NAME > SOCKET_PATH_LIMIT:
            path = Path("/tmp") / name
    return private_dir(path)


def cache_dir() -> Path:
    """Converted models and calibrations: may be deleted at any time, is made again."""
    return _made(os.environ.get("SPECDECK_CACHE_DIR"), platformdirs.user_cache_path("specdeck"))


def data_dir() -> Path:
    """The store, the engine's log, recorded traces."""
    return _made(os.environ.get("SPECDECK_DATA_DIR"), platformdirs.user_data_path("specdeck"))


def private_dir(path: Path) -> Path:
    """Create `path` readable by its owner alone, and refuse one that somebody else owns.

    Raises:
        PermissionError: the directory belongs to another user (a name in a shared temporary directory was taken).
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_uid != os.getuid():
        raise PermissionError(
            f"{path} belongs to user {path.stat().st_uid}: set SPECDECK_RUNTIME_DIR to a directory of yours"
        )
    if path.stat().st_mode & 0o077:
        path.chmod(0o700)
    return path


def _made(override: str | None, default: Path) -> Path:
    path = Path(override) if override else default
    path.mkdir(parents=True, exist_ok=True)
    return path
