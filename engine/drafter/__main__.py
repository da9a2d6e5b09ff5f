"""`python -m engine.drafter STAGE FOLDER`: one stage in this process. Narration goes to stdout, all other output to
stderr; `specdeck drafter STAGE` starts it with the right environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from engine.drafter.stages import STAGES, here
from engine.drafter.work import Work, WorkError
from engine.models import ModelError


def main(arguments: list[str]) -> int:
    if len(arguments) != 2 or arguments[0] not in STAGES:
        print(f"usage: python -m engine.drafter {'|'.join(STAGES)} FOLDER", file=sys.stderr)
        return 2
    # vLLM logs to stdout: that becomes stderr, and the narration keeps the original.
    narration = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    try:
        here(arguments[0], Work(Path(arguments[1])), lambda line: print(line, file=narration))
    except (WorkError, ModelError) as error:
        print(f"specdeck: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
