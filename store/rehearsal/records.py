"""What a rehearsal leaves behind: requests as drawn, what each came to, passes, and the rehearsal itself.

A rehearsal is a folder: `rehearsal.json` (`Rehearsal`), and for each pass `passes/NN-ARM-rR/` with `requests.jsonl`
(`DrawnRequest`), `outcomes.jsonl` (`Outcome`), `trace.jsonl.zst` (the engine's records of that time, a trace like any
other) and, written last, `pass.json` (`Pass`): a pass without it did not come to its end and is made again.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from engine.records import PolicyMode
from store.operating_map.fingerprint import Fingerprint
from store.rehearsal.plan import Plan

Stage = Literal["survey", "comparison"]


class Message(msgspec.Struct, frozen=True):
    role: str
    content: str


class DrawnRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`at`: intended moment, seconds after the start of the pass; `phase`: its place in the plan, from 0."""

    id: str
    """Unique within a repeat, the same in each arm."""
    at: float
    phase: int
    workload: str
    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float
    seed: int
    exact: bool = False
    """The answer is to have exactly `max_tokens` tokens, whatever the model says."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a request came to. Moments are seconds after the start of the pass, as `at`; None where it never came so
    far. Latency counts from `at`; the generator's own lag is `sent` - `at`."""

    id: str
    at: float
    phase: int
    workload: str
    sent: float | None = None
    first_token: float | None = None
    ended: float | None = None
    request: str | None = None
    """The id that it was answered with, by which the engine's records know it."""
    prompt_tokens: int | None = None
    output_tokens: int = 0
    error: str | None = None
    """Its kind, e.g. `http 503`, `unreachable`, `timeout`; None when it was answered whole."""
    detail: str = ""


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """One arm that met the traffic of one repeat, whole. `number`: from 1, in the order in which they were made."""

    number: int
    arm: str
    repeat: int
    """From 1."""
    stage: Stage
    policy: PolicyMode | None
    """In force meanwhile; None for an engine without speculation."""
    engine: str
    """Id of the engine that it met."""
    start: float
    """Unix seconds of moment 0."""
    end: float
    """Unix seconds when the last answer had come."""
    policy_version: int | None = None
    others: int = 0
    """Sequences of other clients that the engine began meanwhile."""
    notes: list[str] = []


class FallbackVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the fallback test of the rehearsal came to. `acceptance_before`, `acceptance_after`: of the same prompts at
    the same K before the boundary was crossed and after the return, None where nothing was drafted."""

    passed: bool
    failures: list[str] = []
    executed: list[int] = []
    """K at each level that was held, in order."""
    transitions: int = 0
    steps: int = 0
    acceptance_before: float | None = None
    acceptance_after: float | None = None
    prompts: int = 0
    """By which acceptance was compared."""
    draft_steps: tuple[int, int] = (0, 0)
    """Of them before and after."""


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """A rehearsal as far as it has come. `host`: an engine of its own, or the running station's."""

    id: str
    plan: Plan
    host: Literal["own", "station"]
    started: float
    scale: float
    """Factor on the rates that is used."""
    fingerprint: Fingerprint
    proposal: list[tuple[int, int, int]] | None = None
    """Draft schedule from the survey, once that is over."""
    fallback: FallbackVerdict | None = None
    ended: float | None = None
    prefix: str = ""
    """Put before each workload's name in its requests' tags."""
    notes: list[str] = []
