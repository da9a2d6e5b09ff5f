"""`python -m console.looking`: looks into files for whoever started it, one line of JSON a file.

A process of its own, and the last to get the CPU: a damaged or hostile file can at worst end this one, and reading a
large one takes nothing from the engine or from recording. Standard input has a line with what to look into, and stays
open for as long as the answer is wanted.
"""

from __future__ import annotations

import os
import sys

import msgspec

from console.feed.traces import TraceLook
from console.parent import when_parent_is_gone


def main() -> None:
    os.nice(19)
    from console.looking.look import look

    asked = msgspec.json.decode(sys.stdin.buffer.readline(), type=list[tuple[TraceLook, bool]])
    when_parent_is_gone(lambda: os._exit(0))
    for file, whole in asked:
        sys.stdout.buffer.write(msgspec.json.encode(look(file, whole)) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
