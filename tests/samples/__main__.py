"""Record sample traces by name, or all of them: `python -m tests.samples [NAME…] [--into FOLDER]`.

Each starts an engine of its own on the bundled model, and replaces `sample_traces/NAME.jsonl.zst` once it has ended.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path

from tests.samples.recording import SAMPLES

STORIES = ("schedule", "hostile", "version_push", "long_contexts")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.samples", description=__doc__, epilog="example: python -m tests.samples hostile"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(STORIES)} (default: all)")
    parser.add_argument("--into", type=Path, default=SAMPLES, metavar="FOLDER", help="default: sample_traces")
    given = parser.parse_args()
    for name in given.names:
        if name not in STORIES:
            parser.error(f"no sample trace {name!r}; there are: {', '.join(STORIES)}")
    if not given.into.is_dir():
        parser.error(f"--into {given.into}: there is no such folder")
    os.environ["SPECDECK_ACTOR"] = "operator"  # what is published names nobody
    for name in given.names or STORIES:
        try:
            print(importlib.import_module(f"tests.samples.{name}").record(given.into))
        except AssertionError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
