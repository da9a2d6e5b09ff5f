"""What an evaluation of a head is: how much of it is done, and what it found. JSON by msgspec."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Final

import msgspec

from engine.drafter.evaluation.acceptance import Acceptance
from engine.drafter.evaluation.throughput import Throughput
from engine.drafter.recipe import Kind

EVALUATION_VERSION: Final = 1


class AcceptancePlan(msgspec.Struct, frozen=True):
    prompts: int
    """Held-out prompts of each kind at most."""
    tokens: int
    """Longest answer; it may end sooner."""
    lengths: tuple[int, ...] = (1, 2, 4)
    """Draft lengths K."""
    temperatures: tuple[float, ...] = (0.0, 0.8)
    batch: int = 16


class ThroughputPlan(msgspec.Struct, frozen=True):
    rounds: int
    tokens: int
    """Of every answer: only prompts whose answer at temperature 0 is that long are used."""
    batches: tuple[int, ...] = (1, 4, 16)
    turns: int = 2
    """Requests of a block, in batches: so many follow one another in every place of it."""
    requests: int = 4
    """Requests of a block at least."""
    kinds: tuple[Kind, ...] = ("chat", "code")


class Plan(msgspec.Struct, frozen=True):
    name: str
    acceptance: AcceptancePlan | None
    throughput: ThroughputPlan | None
    as_served: bool = True
    """Whether the engines are as in service (`engine.drafter.evaluation.arms.opening`)."""


FULL: Final = Plan("full", AcceptancePlan(prompts=160, tokens=160), ThroughputPlan(rounds=6, tokens=96))
TINY: Final = Plan(
    "tiny",
    AcceptancePlan(prompts=2, tokens=12, lengths=(1, 4), batch=8),
    ThroughputPlan(rounds=2, tokens=8, batches=(1, 4), turns=1, requests=2),
    as_served=False,
)
PLANS: Final = {plan.name: plan for plan in (FULL, TINY)}


class Machine(msgspec.Struct, frozen=True):
    cpu: str
    cores: int
    """That this process may use."""
    gpu: str = ""


class Evaluation(msgspec.Struct, frozen=True):
    date: str
    """UTC, `2026-11-29 21:30`."""
    machine: Machine
    vllm: str
    target: str
    head: str
    """Identities, as in `engine.models.ModelPath`."""
    method: str
    plan: Plan
    acceptance: tuple[Acceptance, ...]
    throughput: tuple[Throughput, ...]
    v: int = EVALUATION_VERSION


def this_machine(gpu: str = "") -> Machine:
    return Machine(_cpu(), len(os.sched_getaffinity(0)), gpu)


def _cpu(path: Path = Path("/proc/cpuinfo")) -> str:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
