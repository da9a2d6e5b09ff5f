"""The records of a run, as the JSONL trace writes them (format version 1): one object a line, told apart by `type`.

The wire between engine and station carries the same facts packed into columns (`engine.frames`). Counts only; every
derived figure is computed where it is shown (`store.figures`). Prompts and answers are in none but a `TextRecord`,
which only a recording makes that was asked for them.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

TRACE_VERSION: Final = 1
"""Format of a trace, in the `v` of its engine records."""
TEXT_VERSION: Final = 2
"""Of one that holds text, so that a reader which doesn't know of that says so at once; and the newest there is."""

Limit = Literal["off", "hint", "lane", "operator", "fallback", "probe", "cap", "adaptive", "schedule", "static", "max"]
"""The policy term that set a draft length. The order is the tie-break: the first term that gives the minimum."""

LIMITS: Final[tuple[Limit, ...]] = (
    "off", "hint", "lane", "operator", "fallback", "probe", "cap", "adaptive", "schedule", "static", "max",
)  # fmt: skip

Cause = Literal["prefill", "none", "full", "no_proposal", "grammar", "length_limit", "token_budget", "unknown"]
"""Why a row drafted what it did; the first that fits, in this order."""

CAUSES: Final[tuple[Cause, ...]] = (
    "prefill", "none", "full", "no_proposal", "grammar", "length_limit", "token_budget", "unknown",
)  # fmt: skip

Lane = Literal["speculative", "vanilla"]
Probe = Literal["k0", "deep", "recover"]
Method = Literal["ngram", "eagle", "eagle3", "draft_model", "suffix", "custom_class", "medusa", "ngram_gpu", "none"]


class Row(msgspec.Struct, frozen=True, array_like=True):
    """One sequence in one step: `[seq, k_asked, limit, proposed, drafted, invalid, accepted, emitted, context, cause]`.

    All counts are tokens. `drafted` leaves out the `invalid` ones (struck by a grammar); `proposed` is None where the
    drafter's own count is unknown (async scheduling); `context` is what was computed when the step began.
    """

    seq: str
    k_asked: int
    limit: Limit
    proposed: int | None
    drafted: int
    invalid: int
    accepted: int
    emitted: int
    context: int
    cause: Cause


class PolicyMode(msgspec.Struct, frozen=True, omit_defaults=True):
    """A base policy as configured or resolved: `{"mode": "static", "k": 4}` and its like (design §7)."""

    mode: Literal["off", "static", "schedule", "adaptive"]
    k: int | None = None
    schedule: list[tuple[int, int, int]] | None = None
    act: bool | None = None
    reason: str | None = None


class EngineRecord(msgspec.Struct, frozen=True, tag="engine", tag_field="type"):
    """An engine as it started: what it runs and what it resolved. A later one of the same `engine` is a restart."""

    engine: str
    ts: float
    vllm: str
    target: str
    drafter: str
    method: str
    max_k: int
    batch_k: Literal["free", "fixed"]
    max_num_seqs: int
    data_parallel_size: int
    device: str
    async_scheduling: bool
    configured: PolicyMode
    resolved: PolicyMode
    v: int = TRACE_VERSION
    boot: str | None = None
    """Unique per engine process: sequence handles are only unique within one boot."""
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    runner: str | None = None
    graph_mode: str | None = None
    max_model_len: int | None = None
    max_num_batched_tokens: int | None = None
    pid: int | None = None
    hardware: str | None = None
    """Processor or GPUs and threads, in the words of `engine.hardware`; None where nobody who knows it started it."""


class SequenceRecord(msgspec.Struct, frozen=True, tag="sequence", tag_field="type"):
    """A request as it arrived. `workload` is set once and never rewritten; None means untagged."""

    engine: str
    seq: str
    ts: float
    workload: str | None = None
    temperature: float | None = 0.0
    """None where nobody knows it."""
    prompt_tokens: int = 0
    disable_speculation: bool = False
    lane: Lane = "speculative"
    hint_error: str | None = None
    """A malformed `disable_speculation`, as it came: the default held."""
    request: str | None = None
    """vLLM's request id, by which a log or a client's answer is found again."""


class StepRecord(msgspec.Struct, frozen=True, tag="step", tag_field="type"):
    """One engine step that committed or verified something. `ts` is its end (Unix seconds); durations in ms."""

    engine: str
    frame: int
    step: int
    ts: float
    duration_ms: float
    k_verify: int
    k_draft: int
    running: int
    waiting: int
    rows: list[Row]
    prefill_tokens: int = 0
    probe: Probe | None = None
    policy: int = 0
    limit_draft: Limit = "static"


class FinishRecord(msgspec.Struct, frozen=True, tag="finish", tag_field="type"):
    """A sequence has left the engine."""

    engine: str
    seq: str
    ts: float
    reason: str
    output_tokens: int


class ControlRecord(msgspec.Struct, frozen=True, tag="control", tag_field="type"):
    """An action of the operator or of the policy, with what it replaced. `policy` is the version it made."""

    ts: float
    actor: str
    action: str
    workload: str | None = None
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    policy: int | None = None
    why: str | None = None
    numbers: dict[str, Any] | None = None
    """The figures that it was decided by, named as they are where they come from."""


BEGIN_ACTION: Final = "begin"
"""Action of the control that says with what mode a station began."""
CUT_ACTION: Final = "trace_cut"
"""Action of the control with which a trace begins whose steps lack rows; `why` says what can't be told from it."""


class GapRecord(msgspec.Struct, frozen=True, tag="gap", tag_field="type"):
    """Frames that never arrived, or an outage (`frames_lost` 0): nothing is known of this stretch."""

    engine: str
    ts: float
    frames_lost: int
    since: float | None = None
    reason: str | None = None


class StateRecord(msgspec.Struct, frozen=True, tag="state", tag_field="type"):
    """What the station knew when the recording began; opaque to everything but the judge."""

    ts: float
    state: dict[str, Any]


class Passage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A piece of a prompt or an answer."""

    text: str
    role: str | None = None
    """Of a chat's message as the client wrote it; of an answer `reasoning`, `tool call` or `refusal`, None for its
    content."""
    number: int = 0
    """Which of several prompts, or of the answer's choices."""


class TextRecord(msgspec.Struct, frozen=True, tag="text", tag_field="type"):
    """What a request asked and what it was answered, as the gateway saw it. `ts`: when it had come in whole."""

    engine: str
    ts: float
    request: str
    """The id that the client was answered with; vLLM's own, in `SequenceRecord.request`, is made of it."""
    prompt: list[Passage]
    output: list[Passage]
    missing: str | None = None
    """What is not here and why, e.g. that the client left; None where all is."""


TEXT_ACTION: Final = "trace_text"
"""Action of the control with which a trace begins that holds text; it is about the file, and no store takes it in."""
RECORD_TEXT_ACTION: Final = "record_text"
"""Action of the controls that say when a station began to hand text to a recording, and that it has ended."""

Record = (
    EngineRecord | SequenceRecord | StepRecord | FinishRecord | ControlRecord | GapRecord | StateRecord | TextRecord
)
