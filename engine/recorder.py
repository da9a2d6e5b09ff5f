"""Watches a scheduler step by step: asks for draft lengths, trims to them, and turns what happened into frames.

Called from the hooks in `engine.vllm_private`, on the scheduler's thread, with vLLM's own objects (requests, scheduler
output), of which it reads public attributes only. It imports no vLLM, so it can be driven by fabricated steps.

The order of one step n: `before_schedule` trims the drafts proposed after n-1 to what still stands; `after_schedule`
fixes the draft lengths for n+1; `before_update`/`after_update` take the result of n; `drafts_proposed` counts what the
drafter has for n+1. Under asynchronous scheduling n+1 is scheduled before n is updated, so what `after_schedule` knew
is kept per scheduler output.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine.drafting import Asked, Drafting
from engine.frames import (
    CAUSE_CODE,
    LIMIT_CODE,
    UNKNOWN,
    WIRE_VERSION,
    ArrivedSequence,
    FinishedSequence,
    Frame,
    PackedStep,
    pack_columns,
)
from engine.hints import parse_hints
from engine.probing import Draws
from engine.sequences import LiveSequence

_PROBE: Final = LIMIT_CODE["probe"]
_PREFILL: Final = CAUSE_CODE["prefill"]
_NONE: Final = CAUSE_CODE["none"]
_FULL: Final = CAUSE_CODE["full"]
_NO_PROPOSAL: Final = CAUSE_CODE["no_proposal"]
_GRAMMAR: Final = CAUSE_CODE["grammar"]
_LENGTH_LIMIT: Final = CAUSE_CODE["length_limit"]
_TOKEN_BUDGET: Final = CAUSE_CODE["token_budget"]
_UNKNOWN: Final = CAUSE_CODE["unknown"]

_IN_FLIGHT: Final = 64
"""Plans kept of steps whose output has not come back; more are only left over by steps that vLLM threw away."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the engine was started with, in tokens; `drafter_length` is None where no drafter model has a limit."""

    max_k: int
    max_model_len: int
    max_scheduled_tokens: int
    max_batched_tokens: int
    draft_slots: int
    """Places in the batch that vLLM keeps free per request for the drafter's own input."""
    drafter_length: int | None
    async_scheduling: bool


@dataclass(frozen=True, slots=True)
class StepPlan:
    """What was known when a step was scheduled."""

    step: int
    scheduled_at: float
    verified: Asked
    """What was asked for the drafts that this step verifies."""
    asked: Asked
    """What this step asks of the drafter."""
    running: int
    waiting: int
    prefill_tokens: int


class Recorder:
    """See the module. `send` takes finished frames and must not block."""

    def __init__(
        self,
        engine: str,
        boot: str,
        drafting: Drafting,
        limits: Limits,
        send: Callable[[Frame], None],
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self.engine = engine
        self.boot = boot
        self.drafting = drafting
        self.frame = 0
        self.sequences: dict[str, LiveSequence] = {}
        self._limits = limits
        self._send = send
        self.close = close
        self._handle = 0
        self._step = 0
        self._grammars: set[str] = set()
        self._arrivals: list[ArrivedSequence] = []
        self._finishes: list[FinishedSequence] = []
        self._plans: dict[int, StepPlan] = {}
        self._due = drafting.asked
        self._scheduled_at = 0.0
        self._updated_at = 0.0
        self._busy = False
        self._sampled_lengths: dict[str, int] = {}
        self._updating = False
        self._departing: list[tuple[str, str]] = []

    def divert(self, send: Callable[[Frame], None]) -> None:
        """Hand the frames to `send` from here on: a measurement in this process reads them itself."""
        self._send = send

    # -- requests ------------------------------------------------------------------------------------------------

    def arrived(self, request: Any) -> None:
        """A request has been added; a second call for a live one (streaming input) changes nothing."""
        if request.request_id in self.sequences:
            return
        sampling = request.sampling_params
        hints = parse_hints(sampling.extra_args if sampling is not None else None)
        self._handle += 1
        arrived = ArrivedSequence(
            seq=self._handle,
            request=request.request_id,
            ts=time.time(),
            workload=hints.workload,
            temperature=sampling.temperature if sampling is not None else 0.0,
            prompt_tokens=request.num_prompt_tokens,
            disable_speculation=hints.disable_speculation,
            lane="speculative",
            hint_error=hints.error,
        )
        self.sequences[request.request_id] = LiveSequence(arrived)
        if request.use_structured_output:
            self._grammars.add(request.request_id)
        self._arrivals.append(arrived)

    def leaving(self, request: Any) -> None:
        """A request is about to be freed, for whatever reason. Inside an update its last row is still to come."""
        if request.request_id in self.sequences:
            self._departing.append((request.request_id, str(request.get_finished_reason())))
            if not self._updating:
                self._see_off()

    def _see_off(self) -> None:
        for request_id, reason in self._departing:
            self._grammars.discard(request_id)
            sequence = self.sequences.pop(request_id, None)
            if sequence is not None:
                output_tokens = sequence.tokens - sequence.prompt_tokens
                self._finishes.append(FinishedSequence(sequence.handle, time.time(), reason, output_tokens))
        self._departing.clear()

    def flush_events(self) -> None:
        """Send what no step will carry: the engine may be idle after an abort."""
        if self._arrivals or self._finishes:
            self._emit(None)

    def live(self) -> list[ArrivedSequence]:
        """All sequences being served; safe from another thread, since copying a dict's values is one step."""
        return [sequence.arrived for sequence in list(self.sequences.values())]

    # -- a step --------------------------------------------------------------------------------------------------

    def before_schedule(self, running: Iterable[Any]) -> None:
        """Trim the waiting drafts of `running` requests to what was asked and still stands.

        Lists are replaced, never changed: under asynchronous scheduling all requests share one.
        """
        self._scheduled_at = time.monotonic()
        self._due = due = self.drafting.due()
        if due.filler:
            for request in running:
                if request.spec_token_ids:
                    request.spec_token_ids = []
            return
        sequences, length_for = self.sequences, self.drafting.length_for
        for request in running:
            drafts = request.spec_token_ids
            if drafts:
                k = length_for(due, sequences[request.request_id].cls).k
                if len(drafts) > k:
                    request.spec_token_ids = drafts[:k]
        if due.draws is not None:
            self._trim_to_draws(running, due, due.draws)

    def after_schedule(self, output: Any, requests: dict[str, Any], waiting: int) -> int:
        """Ask for the drafts of the next step; returns the batch K. `requests` still count what came before it."""
        scheduled: dict[str, int] = output.num_scheduled_tokens
        sequences = self.sequences
        classes = set()
        longest = 0
        for request_id in scheduled:
            sequence = sequences[request_id]
            classes.add(sequence.cls)
            if sequence.tokens > longest:
                longest = sequence.tokens
        for request_id in output.preempted_req_ids or ():
            if request_id in sequences:
                sequences[request_id].proposed = 0
        asked = self.drafting.ask(classes, len(scheduled), self._is_filler(scheduled, requests, longest))
        self._step += 1
        plan = StepPlan(
            step=self._step,
            scheduled_at=self._scheduled_at,
            verified=self._due,
            asked=asked,
            running=len(scheduled),
            waiting=waiting,
            prefill_tokens=_prefill_tokens(output),
        )
        self._plans[id(output)] = plan
        while len(self._plans) > _IN_FLIGHT:
            del self._plans[next(iter(self._plans))]
        return asked.batch_k

    def before_update(self, sampled: Sequence[Sequence[int]], index: dict[str, int]) -> None:
        """Count the sampled tokens before vLLM cuts the lists at a stop."""
        lengths = list(map(len, sampled))
        self._sampled_lengths = {request_id: lengths[place] for request_id, place in index.items()} if lengths else {}
        self._updating = True

    def after_update(self, output: Any, committed: Iterable[tuple[str, int]], still_running: bool) -> None:
        """Take the result of a step: `committed` gives request id and the number of tokens that vLLM kept of it."""
        now = time.monotonic()
        plan = self._plans.pop(id(output), None)
        rows = self._rows(output, committed, plan) if plan is not None else []
        self._updating = False
        self._see_off()
        if plan is not None and rows:
            self._emit(self._packed(plan, rows, self._duration(plan, now)))
        self._updated_at = now
        self._busy = still_running
        if not still_running:
            self.flush_events()

    def drafts_proposed(self, request_ids: Sequence[str], drafts: Sequence[Sequence[int]]) -> None:
        """Count what the drafter returned, before a grammar strikes any of it (synchronous scheduling only)."""
        filler = self.drafting.asked.filler
        for request_id, tokens in zip(request_ids, drafts, strict=True):
            sequence = self.sequences.get(request_id)
            if sequence is not None:
                sequence.proposed = 0 if filler else len(tokens)
                sequence.struck = 0

    def drafts_validated(self, requests: dict[str, Any]) -> None:
        """Count what the grammar struck; `requests` hold what it left."""
        for request_id in self._grammars:
            sequence = self.sequences[request_id]
            if sequence.proposed and request_id in requests:
                sequence.struck = max(sequence.proposed - len(requests[request_id].spec_token_ids), 0)

    # -- inside --------------------------------------------------------------------------------------------------

    def _trim_to_draws(self, running: Iterable[Any], due: Asked, draws: Draws) -> None:
        """Trim further where the lengths of one class differ from sequence to sequence."""
        for request in running:
            drafts = request.spec_token_ids
            if drafts:
                sequence = self.sequences[request.request_id]
                k = draws.length(sequence.cls, sequence.handle, self.drafting.length_for(due, sequence.cls).k)
                if k is not None:
                    request.spec_token_ids = drafts[:k]

    def _is_filler(self, scheduled: dict[str, int], requests: dict[str, Any], longest: int) -> bool:
        """Whether the drafter cannot run after this step: then vLLM returns maximum-K zeros for every request.

        Mirrors `_input_fits_in_drafter` of the model runner: longest sequence after the step plus the maximum K.
        """
        limit = self._limits.drafter_length
        reach = self._limits.max_k
        if limit is None or longest + 2 * reach + 1 < limit:
            return False
        return any(
            requests[request_id].num_computed_tokens + tokens + reach > limit
            for request_id, tokens in scheduled.items()
        )

    def _duration(self, plan: StepPlan, now: float) -> float:
        """Seconds of a step (`definitions.md`): overlapping steps are not counted twice, idleness not at all."""
        if self._limits.async_scheduling:
            return now - max(self._updated_at, plan.scheduled_at)
        return now - (self._updated_at if self._busy else plan.scheduled_at)

    def _rows(self, output: Any, committed: Iterable[tuple[str, int]], plan: StepPlan) -> list[tuple[int, ...]]:
        # The one loop that runs for every sequence of every step: locals, and no call for a row that drafted in full.
        scheduled: dict[str, int] = output.num_scheduled_tokens
        drafts: dict[str, list[int]] = output.scheduled_spec_decode_tokens
        struck: dict[str, int] = output.num_invalid_spec_tokens or {}
        asynchronous, draws = self._limits.async_scheduling, plan.verified.draws
        lengths = {cls: (length.k, LIMIT_CODE[length.limit]) for cls, length in plan.verified.lengths.items()}
        sequences, sampled = self.sequences, self._sampled_lengths
        rows: list[tuple[int, ...]] = []
        for request_id, emitted in committed:
            sequence = sequences.get(request_id)
            if sequence is None or not emitted:
                continue
            tokens = drafts.get(request_id)
            submitted = len(tokens) if tokens else 0
            fresh = scheduled[request_id] - submitted
            context = sequence.tokens - fresh
            sequence.tokens += emitted
            if sequence.cls not in lengths:
                length = self.drafting.length_for(plan.verified, sequence.cls)
                lengths[sequence.cls] = (length.k, LIMIT_CODE[length.limit])
            k, limit = lengths[sequence.cls]
            if draws is not None and (drawn := draws.length(sequence.cls, sequence.handle, k)) is not None:
                k, limit = drawn, _PROBE
            invalid = 0
            if asynchronous:
                proposed = UNKNOWN
                if struck:
                    invalid = struck.get(request_id, 0)
                drafted = submitted - invalid
            else:
                proposed = sequence.proposed
                sequence.proposed = 0
                if sequence.struck:
                    invalid = max(min(proposed, k) - (proposed - sequence.struck), 0)
                drafted = submitted
            accepted = sampled[request_id] - 1 if submitted else 0
            if fresh != 1 or context < sequence.prompt_tokens:
                cause, k = _PREFILL, 0  # nobody was asked for drafts of a sequence still in its prompt
            elif k == 0:
                cause = _NONE
            elif drafted == k:
                cause = _FULL
            else:
                cause = self._why_fewer(plan, context, k, proposed, invalid, submitted, output)
            rows.append((sequence.handle, k, limit, proposed, drafted, invalid, accepted, emitted, context, cause))
        return rows

    def _why_fewer(
        self, plan: StepPlan, context: int, k: int, proposed: int, invalid: int, submitted: int, output: Any
    ) -> int:
        """Why a decode row drafted less than was asked; the first cause that fits."""
        limits = self._limits
        if plan.verified.filler:
            return _LENGTH_LIMIT
        room = limits.max_model_len - context - 2
        if proposed != UNKNOWN and proposed < k and proposed - invalid <= submitted:
            return _LENGTH_LIMIT if room < k else _NO_PROPOSAL
        if invalid:
            return _GRAMMAR
        if submitted >= room:
            return _LENGTH_LIMIT
        total = output.total_num_scheduled_tokens
        if total >= limits.max_scheduled_tokens or (
            total + limits.draft_slots * plan.running >= limits.max_batched_tokens
        ):
            return _TOKEN_BUDGET
        return _UNKNOWN

    def _packed(self, plan: StepPlan, rows: list[tuple[int, ...]], duration: float) -> PackedStep:
        return PackedStep(
            step=plan.step,
            ts=time.time(),
            duration_ms=round(duration * 1000, 3),
            k_verify=plan.verified.batch_k,
            k_draft=plan.asked.batch_k,
            running=plan.running,
            waiting=plan.waiting,
            prefill_tokens=plan.prefill_tokens,
            probe=plan.verified.probe,
            policy=plan.asked.version,
            limit_draft=plan.asked.limit,
            count=len(rows),
            columns=pack_columns(zip(*rows, strict=True)),
        )

    def _emit(self, step: PackedStep | None) -> None:
        self.frame += 1
        arrivals, self._arrivals = self._arrivals, []
        finishes, self._finishes = self._finishes, []
        self._send(Frame(WIRE_VERSION, self.engine, self.boot, self.frame, arrivals, step, finishes))


def _prefill_tokens(output: Any) -> int:
    """Prompt tokens computed in a step: what was scheduled beyond one token and the drafts of each sequence."""
    scheduled: dict[str, int] = output.num_scheduled_tokens
    drafts: dict[str, list[int]] = output.scheduled_spec_decode_tokens
    submitted = sum(map(len, drafts.values()))
    if output.total_num_scheduled_tokens - submitted == len(scheduled):
        return 0
    return sum(
        tokens - len(drafts.get(request_id, ()))
        for request_id, tokens in scheduled.items()
        if tokens - len(drafts.get(request_id, ())) > 1
    )
