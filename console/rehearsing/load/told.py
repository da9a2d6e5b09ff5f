"""What the load process tells of itself: how a pass stands, and what it came to."""

from __future__ import annotations

from typing import Final

import msgspec

LATE_SECONDS: Final = 0.1
"""From here on the generator's own lag is worth a note."""


class LoadProgress(msgspec.Struct, frozen=True, kw_only=True, tag="progress"):
    """About once a second. `elapsed`: seconds since moment 0."""

    elapsed: float
    sent: int
    done: int
    """Answered whole."""
    in_flight: int
    errors: int
    note: str = ""
    """One line about trouble since the last one, empty when there is none."""


class LoadSummary(msgspec.Struct, frozen=True, kw_only=True, tag="summary"):
    """A pass that came to its end: every request has its outcome."""

    start: float
    """Unix seconds of moment 0."""
    end: float
    """Unix seconds when the last answer had come, or was given up."""
    requests: int
    errors: int
    lag_p99: float
    """Of sent - at, seconds, nearest rank; 0 without requests."""
    lag_max: float
    late_max: float = 0.0
    """Longest that its event loop was late, seconds, whether or not a request was due then: arrivals of answers were
    noted late by as much."""
    cpu_seconds: float = 0.0
    """Of the load process, in the pass."""


Told = LoadProgress | LoadSummary


class Tally:
    """Counts what happens in a pass."""

    def __init__(self) -> None:
        self.sent = 0
        self.done = 0
        self.errors = 0
        self.late_max = 0.0
        self._lags: list[float] = []
        self._late = 0.0
        self._trouble = ""

    def began(self, lag: float) -> None:
        self.sent += 1
        self._lags.append(lag)
        self._late = max(self._late, lag)

    def ended(self, error: str | None, detail: str) -> None:
        if error is None:
            self.done += 1
            return
        self.errors += 1
        self._trouble = f"{error}: {detail}" if detail else error

    def loop_was_late(self, seconds: float) -> None:
        self._late = max(self._late, seconds)
        self.late_max = max(self.late_max, seconds)

    def progress(self, elapsed: float) -> LoadProgress:
        """With the trouble since the last one."""
        late = f"the load generator itself was {self._late:.2f} s late" if self._late >= LATE_SECONDS else ""
        note = "; ".join(text for text in (self._trouble, late) if text)
        self._late, self._trouble = 0.0, ""
        return LoadProgress(
            elapsed=elapsed,
            sent=self.sent,
            done=self.done,
            in_flight=self.sent - self.done - self.errors,
            errors=self.errors,
            note=note,
        )

    def summary(self, start: float, seconds: float, cpu_seconds: float) -> LoadSummary:
        lags = sorted(self._lags) or [0.0]
        return LoadSummary(
            start=start,
            end=start + seconds,
            requests=self.sent,
            errors=self.errors,
            lag_p99=lags[-(-99 * len(lags) // 100) - 1],
            lag_max=lags[-1],
            late_max=self.late_max,
            cpu_seconds=cpu_seconds,
        )
