"""What the records of a step say of a probe, and how its lengths reach the drafts: steps made by hand, no vLLM."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest

from engine.drafting import Drafting
from engine.frames import COLUMNS, LIMITS, Frame, PackedStep
from engine.policy import PolicyState, ProbeOrder, Resolver, WorkloadPolicy
from engine.probing import QUIET_STEPS
from engine.recorder import Limits, Recorder
from engine.records import PolicyMode

MAX_K = 4
MODE = PolicyMode(mode="adaptive", schedule=[(1, 999, MAX_K)], act=True)


class Loop:
    """A synchronous engine of sequences that never end; every draft is accepted."""

    def __init__(
        self,
        workloads: dict[str, int],
        own: dict[str, WorkloadPolicy] | None = None,
        batch_k: Literal["free", "fixed"] = "free",
    ) -> None:
        self.frames: list[Frame] = []
        state = PolicyState(version=1, policy=MODE, workloads=own or {})
        self.drafting = Drafting(Resolver(state, MAX_K), batch_k, seed=3)
        self.recorder = Recorder(
            "e0", "b", self.drafting, Limits(MAX_K, 10**6, 10**6, 10**6, 0, None, False), self.frames.append
        )
        self.requests: dict[str, Any] = {}
        for workload, number in workloads.items():
            for place in range(number):
                name = f"{workload}{place}"
                sampling = SimpleNamespace(extra_args={"workload": workload}, temperature=0.0)
                self.requests[name] = SimpleNamespace(
                    request_id=name, sampling_params=sampling, num_prompt_tokens=1, spec_token_ids=[],
                    use_structured_output=False, num_computed_tokens=0,
                )  # fmt: skip
                self.recorder.arrived(self.requests[name])

    def step(self) -> None:
        recorder, requests = self.recorder, self.requests
        recorder.before_schedule(list(requests.values()))
        drafts = {name: request.spec_token_ids for name, request in requests.items() if request.spec_token_ids}
        scheduled = {name: 1 + len(drafts.get(name, ())) for name in requests}
        output = SimpleNamespace(
            num_scheduled_tokens=scheduled, scheduled_spec_decode_tokens=drafts, preempted_req_ids=(),
            num_invalid_spec_tokens=None, total_num_scheduled_tokens=sum(scheduled.values()),
        )  # fmt: skip
        batch_k = recorder.after_schedule(output, requests, 0)
        index = {name: place for place, name in enumerate(requests)}
        recorder.before_update([[7] * tokens for tokens in scheduled.values()], index)
        recorder.after_update(output, list(scheduled.items()), True)
        proposed = [[3] * batch_k for _ in requests]
        for request, tokens in zip(requests.values(), proposed, strict=True):
            request.spec_token_ids = tokens
        recorder.drafts_proposed(list(requests), proposed)

    def run(self, steps: int) -> list[PackedStep]:
        seen = len(self.frames)
        for _ in range(steps):
            self.step()
        return [frame.step for frame in self.frames[seen:] if frame.step is not None]

    def rows(self, step: PackedStep, workload: str) -> list[dict[str, Any]]:
        names = {sequence.seq: sequence.workload for frame in self.frames for sequence in frame.sequences}
        matrix = np.frombuffer(step.columns, "<i4").reshape(len(COLUMNS), step.count).T
        rows = [dict(zip(COLUMNS, values, strict=True)) for values in matrix.tolist()]
        return [row | {"limit": LIMITS[row["limit"]]} for row in rows if names[row["seq"]] == workload]

    def order(self, kind: str, k: int, steps: int) -> None:
        """Have a block begin with the second step from here."""
        self.run(QUIET_STEPS + 2)
        workload = None if kind == "k0" else "code"
        order = ProbeOrder(id=1, kind=kind, workload=workload, k=k, steps=steps, wait=1)  # type: ignore[arg-type]
        self.drafting.probing.give("s", order)

    def probe(self, kind: str, k: int = 4, steps: int = 5) -> list[PackedStep]:
        """The steps of a block, one before it and two after it."""
        self.order(kind, k, steps)
        return self.run(steps + 3)


def test_the_frames_that_verify_what_a_block_asked_for_carry_its_mark() -> None:
    steps = Loop({"code": 2, "chat": 1}).probe("k0", steps=5)
    assert [(s.k_verify, s.k_draft, s.probe) for s in steps] == [
        (4, 4, None),
        (4, 0, None),
        *[(0, 0, "k0")] * 4,
        (0, 4, "k0"),
        (4, 4, None),
    ]
    assert [s.limit_draft for s in steps] == ["schedule", *["probe"] * 5, "schedule", "schedule"]


def test_rows_and_mark_of_a_step_agree() -> None:
    loop = Loop({"code": 3, "chat": 2}, {"code": WorkloadPolicy(k=1)})
    for step in loop.probe("deep"):
        touched = {row["limit"] == "probe" for row in loop.rows(step, "code")}
        assert touched == {step.probe == "deep"}
        assert {row["limit"] for row in loop.rows(step, "chat")} == {"schedule"}


def test_deep_drafts_random_lengths_and_its_rows_say_what_was_drafted() -> None:
    loop = Loop({"code": 40, "chat": 1}, {"code": WorkloadPolicy(k=1)})
    steps = [step for step in loop.probe("deep", k=3, steps=9) if step.probe]
    assert len(steps) == 9
    asked = [[row["k_asked"] for row in loop.rows(step, "code")] for step in steps]
    for step, lengths in zip(steps, asked, strict=True):
        assert set(lengths) == {1, 2, 3}
        assert step.k_verify == 4  # chat's
        assert all(row["drafted"] == row["k_asked"] for row in loop.rows(step, "code"))
        assert {row["k_asked"] for row in loop.rows(step, "chat")} == {4}
    assert all(before != after for before, after in itertools.pairwise(asked))


def test_deep_alone_raises_the_batch_k_for_its_block_only() -> None:
    loop = Loop({"code": 8}, {"code": WorkloadPolicy(k=1)})
    steps = loop.probe("deep", k=3, steps=4)
    assert [step.k_draft for step in steps] == [1, 3, 3, 3, 3, 1, 1]


def test_recover_drafts_for_a_fallen_workload_and_then_stops() -> None:
    loop = Loop({"code": 2, "chat": 1}, {"code": WorkloadPolicy(fallback=True)})
    steps = loop.probe("recover", k=2, steps=4)
    drafted = [{row["drafted"] for row in loop.rows(step, "code")} for step in steps]
    assert drafted == [{0}, {0}, {2}, {2}, {2}, {2}, {0}]
    limits = [{row["limit"] for row in loop.rows(step, "code")} for step in steps]
    assert limits == [{"fallback"}] * 2 + [{"probe"}] * 4 + [{"fallback"}]
    assert {row["drafted"] for step in steps for row in loop.rows(step, "chat")} == {4}


@pytest.mark.parametrize("kind", ["k0", "deep", "recover"])
def test_under_a_fixed_batch_k_a_probe_is_made_by_trimming(kind: str) -> None:
    own = {"k0": {}, "deep": {"code": WorkloadPolicy(k=1)}, "recover": {"code": WorkloadPolicy(fallback=True)}}[kind]
    loop = Loop({"code": 12}, own, batch_k="fixed")
    steps = loop.probe(kind, k=3, steps=4)
    assert {(step.k_verify, step.k_draft) for step in steps} == {(MAX_K, MAX_K)}
    drafted = [{row["drafted"] for row in loop.rows(step, "code")} for step in steps if step.probe]
    assert len(drafted) == 4
    for lengths in drafted:
        assert lengths == {0} if kind == "k0" else lengths == {3} if kind == "recover" else lengths <= {1, 2, 3}


def test_a_policy_in_the_middle_of_a_deep_block_trims_what_was_drawn() -> None:
    loop = Loop({"code": 30}, {"code": WorkloadPolicy(k=1)})
    loop.order("deep", k=4, steps=20)
    loop.run(6)
    loop.drafting.resolver = Resolver(PolicyState(version=2, policy=PolicyMode(mode="static", k=2)), MAX_K)
    (step,) = loop.run(1)
    rows = loop.rows(step, "code")
    assert {row["drafted"] for row in rows} == {1, 2}
    assert {row["limit"] for row in rows} == {"probe", "static"}
    assert all(row["drafted"] == row["k_asked"] for row in rows)
