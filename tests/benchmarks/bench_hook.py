"""The scheduler hook's own CPU time a step, at 16 and at 256 sequences, on vLLM's scheduler with fabricated outputs.

The hooked and the plain scheduler run the same steps in alternating blocks; what differs is the hook. Prints
microseconds with the machine's name, and the share of a 30 ms step (batch 16 on two cores takes longer).
"""

from __future__ import annotations

import platform
import statistics
import time
from pathlib import Path
from typing import Any

from engine.models import resolve
from tests.engine.fabricated import Driver

_HOOKS = ("before_schedule", "after_schedule", "before_update", "after_update", "drafts_proposed", "drafts_validated")


class Stopwatch:
    """Adds up the thread CPU time spent in the recorder's entry points, whoever calls them."""

    def __init__(self, recorder: Any) -> None:
        self.seconds = 0.0
        self.each = dict.fromkeys(_HOOKS, 0.0)
        for name in _HOOKS:
            setattr(recorder, name, self._timed(name, getattr(recorder, name)))

    def _timed(self, name: str, method: Any) -> Any:
        def timed(*args: Any, **kwargs: Any) -> Any:
            started = time.thread_time()
            try:
                return method(*args, **kwargs)
            finally:
                spent = time.thread_time() - started
                self.seconds += spent
                self.each[name] += spent

        return timed


def measure(model: Path, sequences: int, steps: int = 120) -> list[float]:
    """Microseconds of hook a step, including encoding and handing the frame to ZeroMQ's queue."""
    from engine.frames import encode

    driver = Driver(model, max_model_len=2048, max_num_seqs=300)
    driver.scheduler.recorder._send = encode
    for number in range(sequences):
        driver.add(f"s{number}", prompt=4, max_tokens=1500, workload=("code", "chat", "repeat")[number % 3])
    for _ in range(4):
        driver.step(accepted={})
    watch = Stopwatch(driver.scheduler.recorder)
    figures = []
    for _ in range(steps):
        watch.seconds = 0.0
        driver.step(accepted={f"s{number}": number % 4 for number in range(sequences)})
        figures.append(watch.seconds * 1e6)
    print({name: f"{1e6 * spent / steps:.0f}" for name, spent in watch.each.items()})
    return figures


def main() -> None:
    model = Path(resolve("bundled").path)
    machine = f"{platform.machine()} {platform.processor() or ''} python {platform.python_version()}"
    for sequences in (16, 256):
        figures = measure(model, sequences)
        median, high = statistics.median(figures), statistics.quantiles(figures, n=20)[-1]
        of_step = f"{median / 30_000:.2%} of a 30 ms step"
        print(f"hook, {sequences} sequences: {median:.0f} µs a step (p95 {high:.0f}), {of_step}; {machine}")


if __name__ == "__main__":
    main()
