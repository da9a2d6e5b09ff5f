"""`python -m console.station OPTIONS-FILE`: what the command line starts in the background."""

from __future__ import annotations

import sys
from pathlib import Path

from console.station.options import OptionsError, read_options
from console.station.run import run


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: python -m console.station OPTIONS-FILE (written by `specdeck`)", file=sys.stderr)
        return 2
    try:
        options = read_options(Path(sys.argv[1]))
    except OptionsError as error:
        print(f"station: {error}", file=sys.stderr)
        return 2
    return run(options)


sys.exit(main())
