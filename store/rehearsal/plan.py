"""What a rehearsal is to do: the traffic, the arms that meet it, and how often. Read from TOML by the console."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

WITHOUT: Final = "without"
"""The arm of an engine that is started without speculation."""

PROPOSED: Final = "proposed"
"""The arm of the schedule that is proposed from the survey."""

ADAPTIVE: Final = "adaptive"


def fixed_arm(k: int) -> str:
    """The name of the arm of one draft length for all, `k4`."""
    return f"k{k}"


def fixed_k(arm: str) -> int | None:
    """Its draft length; None for an arm of another kind."""
    return int(arm[1:]) if arm[:1] == "k" and arm[1:].isascii() and arm[1:].isdecimal() else None


class Deadline(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds within which an answer is good, None for any. `e2e` and `ttft` count from the intended send time; `tpot`
    is the mean time between tokens after the first."""

    e2e: float | None = None
    ttft: float | None = None
    tpot: float | None = None


class Mix(msgspec.Struct, frozen=True, kw_only=True):
    """One workload of the traffic. `share`: of the requests, all shares together are 1. `prompts`: the name of a set
    of ours, or the path of a .jsonl or .csv."""

    name: str
    share: float
    prompts: str
    max_tokens: tuple[int, ...]
    """Lengths of answer of which one is drawn."""
    temperature: float = 0.0
    deadline: Deadline = Deadline()


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of the traffic. `rate`: requests/s at its beginning, `to`: at its end (None: the same).

    `burstiness`: shape of the gamma distribution of the pauses, 1 for Poisson arrivals, less for more bursty ones.
    """

    name: str
    seconds: float
    rate: float
    to: float | None = None
    burstiness: float = 1.0


class PublicTrace(msgspec.Struct, frozen=True, kw_only=True):
    """Arrivals and lengths of somebody's recorded traffic: they stand in place of the rates of the phases and of
    `max_tokens`. `speed`: seconds of the trace a second."""

    file: str
    format: Literal["azure", "burstgpt", "mooncake"]
    speed: float = 1.0


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Every arm meets the same requests at the same intended moments in each repeat.

    The first `survey` repeats try the fixed arms (and `without`) alone: from them the schedule is proposed. In the
    others all arms take part. Repeats go through the arms forwards and backwards in turn.
    """

    name: str
    arms: tuple[str, ...]
    """`without`, `k0`, `k1` …, `proposed`, `adaptive`."""
    mix: tuple[Mix, ...]
    phases: tuple[Phase, ...]
    repeats: int = 1
    survey: int = 1
    seed: int = 7
    scale: float | None = None
    """Factor on all rates. None: they are meant for an engine of 200 tokens/s, and the engine is measured first."""
    fallback_test: bool = True
    trace: PublicTrace | None = None

    @property
    def seconds(self) -> float:
        """Of one pass, without its end in which the last answers come."""
        return sum(phase.seconds for phase in self.phases)
