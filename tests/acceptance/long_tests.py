"""The tests that `make test` leaves out since each needs an engine start of its own and its kind is tested without."""

from __future__ import annotations

import pytest


def main() -> bool:
    return pytest.main(["-q", "-m", "long"]) == 0


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
