"""The phases of an engine's start as the screen shows them, each with its time."""

from __future__ import annotations

import time
from collections.abc import Iterable

from console.feed.messages import Phase, PhaseState


class Phases:
    """Named steps in order. One begins when it is first named; `finish` ends it."""

    def __init__(self) -> None:
        self._order: list[str] = []
        self._began: dict[str, float] = {}
        self._took: dict[str, float] = {}
        self._failed: str | None = None
        self._detail: dict[str, str] = {}

    def reset(self, names: Iterable[str]) -> None:
        self.__init__()  # type: ignore[misc]
        self._order = list(names)

    def begin(self, name: str, detail: str = "") -> None:
        if name not in self._order:
            self._order.append(name)
        self._began.setdefault(name, time.monotonic())
        if detail:
            self._detail[name] = detail

    def finish(self, name: str) -> None:
        if name not in self._took:
            self.begin(name)
            self._took[name] = time.monotonic() - self._began[name]

    def fail(self, detail: str) -> None:
        """Mark the phase that is under way (or the next one) as failed."""
        running = [name for name in self._order if name in self._began and name not in self._took]
        waiting = [name for name in self._order if name not in self._took]
        name = (running or waiting or [""])[0]
        if name:
            self.begin(name, detail)
            self._failed = name

    def view(self) -> list[Phase]:
        return [self._phase(name) for name in self._order]

    def _phase(self, name: str) -> Phase:
        detail = self._detail.get(name, "")
        state: PhaseState = "pending"
        if name in self._took:
            return Phase(name, "done", self._took[name], detail)
        seconds = time.monotonic() - self._began[name] if name in self._began else None
        if name == self._failed:
            state = "failed"
        elif seconds is not None:
            state = "running"
        return Phase(name, state, seconds, detail)
