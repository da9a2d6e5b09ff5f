"""Runs what borrows the policy so that an interrupt lets it give the policy back first."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_to_its_end(
    work: Coroutine[Any, Any, T],
    tell: Callable[[str], None],
    first: str = "the policy is given back first",
) -> T:
    """Run `work` on a loop of its own; the first of `SIGNALS` cancels it, later ones wait with it for its end.

    Args:
        first: what is still done after an interrupt.

    Raises:
        KeyboardInterrupt: it was cancelled so.
    """

    async def whole() -> T:
        task = asyncio.ensure_future(work)
        interrupted = False

        def interrupt() -> None:
            nonlocal interrupted
            if not interrupted:
                task.cancel()
            interrupted = True
            tell(f"interrupted: {first}")

        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, interrupt)
        try:
            return await task
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None

    return asyncio.run(whole())
