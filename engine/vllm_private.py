"""The one module that names private parts of vLLM (0.32): its scheduler classes and the methods we hook.

`PRIVATE` lists what is relied on with the parameters it had when this was written; a test compares it with the
installed vLLM and prints what moved. Everything else in specdeck sees plain objects through these hooks.
"""

from __future__ import annotations

import inspect
from typing import Any, Final, NamedTuple

from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.request import Request

from engine.recorder import Recorder


class Private(NamedTuple):
    """A private symbol and the parameters it must have, `self` left out."""

    owner: type
    name: str
    parameters: tuple[str, ...]
    why: str


PRIVATE: Final = (
    Private(Scheduler, "_update_after_schedule", ("scheduler_output",), "set the batch K"),
    Private(Scheduler, "_free_request", ("request", "delay_free_blocks"), "see every sequence leave"),
    Private(Scheduler, "schedule", ("throttle_prefills",), "trim drafts before they are scheduled"),
    Private(Scheduler, "update_from_output", ("scheduler_output", "model_runner_output"), "read a step's result"),
    Private(Scheduler, "update_draft_token_ids", ("draft_token_ids",), "count proposals and grammar strikes"),
    Private(Scheduler, "add_request", ("request",), "see every sequence arrive"),
    Private(Scheduler, "finish_requests", ("request_ids", "finished_status"), "see aborts while idle"),
    Private(Scheduler, "get_request_counts", (), "running and waiting"),
    Private(AsyncScheduler, "_update_after_schedule", ("scheduler_output",), "builds placeholders of that K"),
)  # fmt: skip

ATTRIBUTES: Final = {
    Request: (
        "request_id", "sampling_params", "num_prompt_tokens", "num_computed_tokens", "spec_token_ids",
        "use_structured_output", "get_finished_reason",
    ),
    SchedulerOutput: (
        "num_scheduled_tokens", "total_num_scheduled_tokens", "scheduled_spec_decode_tokens", "preempted_req_ids",
        "num_invalid_spec_tokens", "num_spec_tokens_to_schedule",
    ),
}  # fmt: skip
"""Attributes that `engine.recorder` reads of vLLM's objects."""

SCHEDULER_ATTRIBUTES: Final = ("running", "requests", "dynamic_sd_lookup", "num_spec_tokens", "max_num_running_reqs")


def moved() -> list[str]:
    """What of `PRIVATE` and `ATTRIBUTES` the installed vLLM no longer has as expected, one line each."""
    lines = []
    for symbol in PRIVATE:
        method = getattr(symbol.owner, symbol.name, None)
        if method is None:
            lines.append(f"{symbol.owner.__name__}.{symbol.name} is gone (used to {symbol.why})")
            continue
        found = tuple(inspect.signature(method).parameters)[1:]
        if found != symbol.parameters:
            lines.append(f"{symbol.owner.__name__}.{symbol.name}{found}, expected {symbol.parameters} ({symbol.why})")
    for owner, names in ATTRIBUTES.items():
        source = inspect.getsource(owner)
        lines += [f"{owner.__name__}.{name} is gone" for name in names if name not in source]
    source = inspect.getsource(Scheduler.__init__)
    lines += [f"Scheduler.{name} is gone" for name in SCHEDULER_ATTRIBUTES if f"self.{name}" not in source]
    return lines


class Hooks:
    """The overrides, to be mixed in before a vLLM scheduler class. `attach` must be called before the first request."""

    recorder: Recorder

    def attach(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def silence_padding(self: Any, k: int) -> None:
        """Give a scheduler without a dynamic schedule a constant one.

        Without one vLLM pads a request admitted with one token left by K filler drafts, which are verified and
        counted although nobody drafted them.
        """
        if self.dynamic_sd_lookup is None and k > 0:
            self.dynamic_sd_lookup = [k] * (self.max_num_running_reqs + 1)

    def add_request(self: Any, request: Any) -> None:
        super().add_request(request)  # type: ignore[misc]
        self.recorder.arrived(request)

    def schedule(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.recorder.before_schedule(self.running)
        return super().schedule(*args, **kwargs)  # type: ignore[misc]

    def _update_after_schedule(self: Any, scheduler_output: Any) -> None:
        # Before super: the asynchronous class builds its placeholders from this K, and the worker would otherwise
        # read a neighbour's drafts or past the end.
        if scheduler_output.num_scheduled_tokens:
            _, waiting = self.get_request_counts()
            k = self.recorder.after_schedule(scheduler_output, self.requests, waiting)
            scheduler_output.num_spec_tokens_to_schedule = min(k, self.num_spec_tokens)
        super()._update_after_schedule(scheduler_output)  # type: ignore[misc]

    def update_from_output(self: Any, scheduler_output: Any, model_runner_output: Any) -> Any:
        sampled = model_runner_output.sampled_token_ids
        self.recorder.before_update(sampled, model_runner_output.req_id_to_index)
        outputs = super().update_from_output(scheduler_output, model_runner_output)  # type: ignore[misc]
        self.recorder.after_update(scheduler_output, _committed(outputs), bool(self.running))
        return outputs

    def update_draft_token_ids(self: Any, draft_token_ids: Any) -> None:
        self.recorder.drafts_proposed(draft_token_ids.req_ids, draft_token_ids.draft_token_ids)
        super().update_draft_token_ids(draft_token_ids)  # type: ignore[misc]
        self.recorder.drafts_validated(self.requests)

    def finish_requests(self: Any, *args: Any, **kwargs: Any) -> Any:
        finished = super().finish_requests(*args, **kwargs)  # type: ignore[misc]
        if not self.running:
            self.recorder.flush_events()
        return finished

    def _free_request(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        self.recorder.leaving(request)
        return super()._free_request(request, *args, **kwargs)  # type: ignore[misc]

    def shutdown(self: Any) -> None:
        super().shutdown()  # type: ignore[misc]
        self.recorder.close()


class HookedScheduler(Hooks, Scheduler):  # type: ignore[misc, unused-ignore]
    """vLLM's synchronous scheduler, watched."""


class HookedAsyncScheduler(Hooks, AsyncScheduler):  # type: ignore[misc, unused-ignore]
    """vLLM's asynchronous scheduler, watched."""


def hooked_class(async_scheduling: bool) -> type[Any]:
    return HookedAsyncScheduler if async_scheduling else HookedScheduler


def _committed(outputs: Any) -> list[tuple[str, int]]:
    """Request id and number of new tokens of everything a step committed, as vLLM hands it to its clients."""
    return [(output.request_id, len(output.new_token_ids)) for client in outputs.values() for output in client.outputs]
