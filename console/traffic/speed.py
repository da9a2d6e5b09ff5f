"""How fast a server is, in multiples of the one that rates are meant for."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import Final

from msgspec.structs import replace

from console.traffic.client import Server
from console.traffic.plan import REFERENCE_TOKENS_PER_SECOND, Planned
from console.traffic.prompts import TEMPERATURE, WORKLOADS, prompts

ROUNDS: Final = 2
"""Of eight requests at once; the fastest counts."""

_PROBE_TOKENS: Final = 48
_SCALES: Final = (0.2, 20.0)


class NotMeasured(Exception):
    """The server did not answer the requests by which it is measured: says what it said."""


def probes(index: int, at: float) -> list[Planned]:
    """The requests of a round, all for the same moment."""
    return [
        Planned(at, workload, prompts(workload)[2 * index + stream], _PROBE_TOKENS, TEMPERATURE[workload], stream)
        for workload, stream in itertools.product(WORKLOADS, (False, True))
    ]


def scale_of(tokens_per_second: float) -> float:
    """The factor on rates that suits a server of this speed."""
    return min(_SCALES[1], max(_SCALES[0], tokens_per_second / REFERENCE_TOKENS_PER_SECOND))


async def measured_scale(server: Server, tag_prefix: str = "") -> float:
    """Send the rounds; the factor.

    Args:
        tag_prefix: put before the workloads' names in the tags.

    Raises:
        NotMeasured: no model is served, or a request failed.
    """
    model = await server.first_model()
    if not isinstance(model, str):
        raise NotMeasured(f"{model.error}: {model.detail}")
    best = 0.0
    for index in range(ROUNDS):
        began = time.monotonic()
        round = [replace(probe, workload=f"{tag_prefix}{probe.workload}") for probe in probes(index, 0.0)]
        answers = await asyncio.gather(*(server.send(probe, model) for probe in round))
        failed = next((answer for answer in answers if answer.error is not None), None)
        if failed is not None:
            raise NotMeasured(f"{failed.error}: {failed.detail}")
        best = max(best, sum(answer.output_tokens for answer in answers) / (time.monotonic() - began))
    return scale_of(best)
