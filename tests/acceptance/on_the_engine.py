"""What measurements on a served engine share: wait until it is calibrated, measure, say what held, write it down."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tests.acceptance.result import write
from tests.path.served import Served, until

CALIBRATED_SECONDS = 120.0


def measured(name: str, served: Served, measure: Callable[[], dict[str, Any]]) -> bool:
    """Whether all of the figures' `verdicts` hold. Ends `served`, whatever comes of it."""
    try:
        served.wait_serving()
        until("calibrated", lambda: _calibrated(served), CALIBRATED_SECONDS)
        figures = measure()
    except AssertionError as error:
        print(f"{error}\n{served.logs()}", file=sys.stderr)
        return False
    finally:
        served.stop()
    for claim, held in figures["verdicts"].items():
        print(f"{'holds' if held else 'DOES NOT HOLD'}: {claim}")
    print(write(name, figures))
    return all(figures["verdicts"].values())


def _calibrated(served: Served) -> bool:
    view = served.snapshot().calibration
    return view is None or view.state in ("done", "skipped")
