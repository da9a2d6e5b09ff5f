"""`specdeck --help` against `python -c 'import click'`: fresh processes, alternating, as a ratio of medians.

To hold (design §11): 2.5.

    python tests/benchmarks/bench_help.py [PAIRS]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path


def seconds(argv: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    script = str(Path(sys.executable).with_name("specdeck"))
    bare: list[float] = []
    ours: list[float] = []
    for _ in range(pairs):
        bare.append(seconds([sys.executable, "-c", "import click"]))
        ours.append(seconds([script, "--help"]))
    click_ms, help_ms = 1000 * statistics.median(bare), 1000 * statistics.median(ours)
    print(
        f"specdeck --help {help_ms:.0f} ms · import click {click_ms:.0f} ms · ratio {help_ms / click_ms:.2f} (hold 2.5)"
    )


if __name__ == "__main__":
    main()
