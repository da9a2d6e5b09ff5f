"""The scheduler hook's own CPU time a step: against the real engine's median step at 16 sequences, alone at 256.

At 16 the bundled engine runs with n-gram drafts, and each step's hook is set against that step's own duration. 256
sequences are driven through vLLM's scheduler with fabricated outputs, since the hook does not depend on the model.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.frames import encode
from engine.models import resolve

HOOKS = ("before_schedule", "after_schedule", "before_update", "after_update", "drafts_proposed", "drafts_validated")


class Stopwatch:
    """Adds up the thread CPU time spent in the recorder's entry points, whoever calls them."""

    def __init__(self, recorder: Any) -> None:
        self.seconds = 0.0
        for name in HOOKS:
            setattr(recorder, name, self._timed(getattr(recorder, name)))

    def _timed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            started = time.thread_time()
            try:
                return method(*args, **kwargs)
            finally:
                self.seconds += time.thread_time() - started

        return timed

    def take(self) -> float:
        """Microseconds since the last call."""
        spent, self.seconds = self.seconds * 1e6, 0.0
        return spent


def fabricated(model: Path, sequences: int, steps: int = 150) -> list[float]:
    """Microseconds of hook a step, encoding included, with vLLM's scheduler and fabricated outputs."""
    from tests.engine.fabricated import Driver

    driver = Driver(model, max_model_len=2048)
    driver.scheduler.recorder._send = encode
    for number in range(sequences):
        driver.add(f"s{number}", prompt=4, max_tokens=1500, workload=("code", "chat", "repeat")[number % 3])
    for _ in range(4):
        driver.step(accepted={})
    watch = Stopwatch(driver.scheduler.recorder)
    figures = []
    for _ in range(steps):
        watch.take()
        driver.step(accepted={f"s{number}": number % 4 for number in range(sequences)})
        figures.append(watch.take())
    return figures


def real(model: Path, sequences: int) -> tuple[list[float], list[float]]:
    """Microseconds of hook and of step, step by step, on the real engine once all sequences decode."""
    from tests.engine.inprocess import REPEAT, Bench

    bench = Bench("ngram", model)
    recorder = bench.scheduler.recorder

    def keep(frame: Any) -> None:
        encode(frame)
        bench.frames.append(frame)

    recorder._send = keep
    watch = Stopwatch(recorder)
    for number in range(sequences):
        bench.add(f"w-{number}", f"{number} {REPEAT}", temperature=0.0, max_tokens=150, ignore_eos=True)
    hook, step = [], []

    def each_step(_: int) -> None:
        spent = watch.take()
        last = bench.frames[-1].step if bench.frames else None
        if last is not None and last.count == sequences and last.prefill_tokens == 0:
            hook.append(spent)
            step.append(last.duration_ms * 1000)

    bench.run(each_step)
    return hook, step


def main() -> None:
    os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_USE_AOT_COMPILE": "0", "VLLM_LOGGING_LEVEL": "ERROR"}
    model = Path(resolve("bundled").path)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    hook, step = real(model, 16)
    share = statistics.median(hook) / statistics.median(step)
    print(
        f"hook, 16 sequences: {statistics.median(hook):.0f} µs a step against a median step of "
        f"{statistics.median(step) / 1000:.1f} ms: {share:.2%} ({len(hook)} steps; {machine})"
    )
    alone = fabricated(model, 256)
    high = statistics.quantiles(alone, n=20)[-1]
    print(f"hook, 256 sequences: {statistics.median(alone):.0f} µs a step, p95 {high:.0f} ({machine})")


if __name__ == "__main__":
    main()
