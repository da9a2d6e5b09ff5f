"""Run the acceptance measurements by name, or all of them: `python -m tests.acceptance [NAME…]`."""

from __future__ import annotations

import importlib
import sys

MEASUREMENTS = (
    "long_tests",
    "recording_cost",
    "learned_drafter",
    "sampled_distribution",
    "alert_simulation",
    "soak",
    "console_for_hours",
    "adaptive_simulation",
    "adaptive_engine",
    "hostile_engine",
    "station_gone",
    "whatif_engine",
    "replayed_run",
    "rehearsal",
)


def main() -> int:
    failed = []
    for name in sys.argv[1:] or MEASUREMENTS:
        if name not in MEASUREMENTS:
            print(f"no measurement {name!r}; there are: {', '.join(MEASUREMENTS)}", file=sys.stderr)
            return 2
        if not importlib.import_module(f"tests.acceptance.{name}").main():
            failed.append(name)
    print(f"acceptance: {'failed: ' + ', '.join(failed) if failed else 'all held'}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
