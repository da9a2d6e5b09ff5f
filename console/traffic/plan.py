"""What is sent when: phases of Poisson arrivals, drawn whole from a seed before the first request leaves.

Arrivals do not depend on answers (open loop): a slow engine meets the same requests at the same moments.
"""

from __future__ import annotations

import random
from typing import Final

import msgspec

from console.traffic.prompts import MAX_TOKENS, TEMPERATURE, WORKLOADS, Prompt, Workload, prompts

_OPENING_SECONDS: Final = 10.0
"""Every workload is sent at least once in this time, so that all of them are on the screen soon."""


class Phase(msgspec.Struct, frozen=True):
    """A stretch of constant load. `rate`: requests/s on an engine of `REFERENCE_TOKENS_PER_SECOND`, all workloads."""

    name: str
    seconds: float
    rate: float


class Profile(msgspec.Struct, frozen=True):
    """Phases, and each workload's share of the arrivals."""

    name: str
    phases: tuple[Phase, ...]
    shares: dict[Workload, float]

    @property
    def seconds(self) -> float:
        return sum(phase.seconds for phase in self.phases)

    def lasting(self, seconds: float) -> Profile:
        """The same phases, stretched to `seconds` in all."""
        factor = seconds / self.seconds
        phases = tuple(Phase(phase.name, phase.seconds * factor, phase.rate) for phase in self.phases)
        return Profile(self.name, phases, self.shares)

    def phase_at(self, at: float) -> str:
        end = 0.0
        for phase in self.phases:
            end += phase.seconds
            if at < end:
                return phase.name
        return "ending"


class Planned(msgspec.Struct, frozen=True):
    """One request. `at`: seconds after the start at which it is to be sent."""

    at: float
    workload: Workload
    prompt: Prompt
    max_tokens: int
    temperature: float
    stream: bool


REFERENCE_TOKENS_PER_SECOND: Final = 200.0
"""The bundled engine on two cores with eight requests at once; the profiles' rates are meant for it."""

# A request has about 85 output tokens.
_SHARES: Final[dict[Workload, float]] = {"code": 0.27, "repeat": 0.27, "chat": 0.26, "creative": 0.2}

PROFILES: Final = {
    profile.name: profile
    for profile in (
        Profile("demo", (Phase("quiet", 50, 0.6), Phase("busy", 80, 3.6), Phase("quiet", 50, 0.6)), _SHARES),
        Profile("steady", (Phase("steady", 600, 1.0),), _SHARES),
        Profile("gentle", (Phase("gentle", 180, 0.6),), _SHARES),
        Profile("smoke", (Phase("quiet", 6, 0.6), Phase("busy", 10, 3.6), Phase("quiet", 4, 0.6)), _SHARES),
    )
}
"""`demo` is the tour, `gentle` gives an empty console something to show, `steady` is for recordings, `smoke` is for a
quick look at whether anything answers."""


def make_plan(profile: Profile, seed: int, scale: float) -> list[Planned]:
    """Draw every request of a run, in order of time. Rates are multiplied by `scale`; same arguments, same plan."""
    source = random.Random(f"{profile.name} {seed}")
    decks = {workload: _Deck(prompts(workload), source) for workload in WORKLOADS}
    weights = [profile.shares[workload] for workload in WORKLOADS]

    def planned(at: float, workload: Workload) -> Planned:
        return Planned(
            at=at,
            workload=workload,
            prompt=decks[workload].draw(),
            max_tokens=source.choice(MAX_TOKENS[workload]),
            temperature=TEMPERATURE[workload],
            stream=source.random() < 0.5,
        )

    opening = min(_OPENING_SECONDS, profile.seconds)
    plan = [planned(source.uniform(0, opening), workload) for workload in WORKLOADS]
    for at in _arrivals(profile, scale, source):
        plan.append(planned(at, source.choices(WORKLOADS, weights)[0]))
    return sorted(plan, key=lambda request: request.at)


def _arrivals(profile: Profile, scale: float, source: random.Random) -> list[float]:
    """Moments of a Poisson process whose rate changes from phase to phase."""
    moments, begin = [], 0.0
    for phase in profile.phases:
        end, rate = begin + phase.seconds, phase.rate * scale
        at = begin
        while rate > 0 and (at := at + source.expovariate(rate)) < end:
            moments.append(at)
        begin = end
    return moments


class _Deck:
    """Draws prompts without repeating one before all were drawn."""

    def __init__(self, prompts: tuple[Prompt, ...], source: random.Random) -> None:
        self._prompts = prompts
        self._source = source
        self._left: list[Prompt] = []

    def draw(self) -> Prompt:
        if not self._left:
            self._left = list(self._prompts)
            self._source.shuffle(self._left)
        return self._left.pop()
