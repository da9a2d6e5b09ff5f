"""What a what-if answers: recorded and predicted figures, of everything and of each bucket.

Absent is None, never 0 and never NaN. Imports neither DuckDB nor numpy, so the console can read it for nothing.
"""

from __future__ import annotations

import msgspec

from engine.records import PolicyMode


class WhatIfError(ValueError):
    """A question that has no answer: names what is wrong with it."""


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """What was recorded."""

    tokens_per_step: float | None
    """Committed per step: Σ emitted / decode rows."""
    tokens_per_second: float | None
    """Tokens of all rows, prefills included, over recorded wall seconds: as in the report."""


class Predicted(msgspec.Struct, frozen=True, kw_only=True):
    """What the policy would have done."""

    tokens_per_step: float | None
    """Unknown positions filled in. None where nothing says how they should be."""
    tokens_per_step_low: float | None
    """All unknown positions wrong. None, as all others, where no step of the policy starts in the bucket."""
    tokens_per_step_high: float | None
    """All unknown positions right."""
    naive_tokens_per_step: float | None
    """min(accepted, K) + 1 over the recorded steps: exact only where a recorded step starts."""
    exact_share: float | None
    """Share of the predicted steps whose outcome hangs on no unknown position."""
    recorded_start_share: float | None
    """Share of the predicted steps that start where a recorded one did: of these the very draft is known, at the others
    a draft made afresh is taken to be as right as the recorded one was there."""
    tokens_per_second: float | None
    """At the recorded batch, pauses as they were. None where the step times of the policy are unknown."""
    tokens_per_second_low: float | None
    tokens_per_second_high: float | None
    """95 %, by the error of the step times, and over the bounds of the tokens per step."""


class WhatIfBucket(msgspec.Struct, frozen=True, kw_only=True):
    """One bucket: its rows, at its share of the time."""

    engine: str
    workload: str
    context: str
    temperature: str
    model_version: str
    decode_rows: int
    mean_k: float | None
    """Mean K that the policy gives a step."""
    recorded: Recorded
    predicted: Predicted


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """What one policy would have done. `notes`: what was assumed and left out, a sentence each."""

    policy: PolicyMode
    recorded: Recorded
    predicted: Predicted
    buckets: list[WhatIfBucket]
    decode_rows: int
    mean_k: float | None
    no_seconds: str | None = None
    """Why there are no tokens per second."""
    notes: list[str] = []
