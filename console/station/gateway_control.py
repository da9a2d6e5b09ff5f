"""What the station says to the gateway on its control socket, and what it hears: counts, and whether the lanes hold."""

from __future__ import annotations

from pathlib import Path
from typing import Final, TypeVar

import msgspec
import zmq
import zmq.asyncio

from console.feed.texts import Texts, TextsAsked
from engine.policy import PolicyState
from engine.records import Lane
from engine.sockets import ipc

T = TypeVar("T")

_ANSWER_MS: Final = 1000
_EARLIER: Final = "the gateway was left by an earlier specdeck that knows of no text: `specdeck stop`, then start again"


class GatewayStats(msgspec.Struct, frozen=True):
    """The gateway's own counts since it started, of requests; each is one number, whatever tags there are."""

    requests: int = 0
    active: int = 0
    errors: int = 0
    unavailable: int = 0
    refused: int = 0
    cancelled: int = 0
    tags_put: int = 0
    """The workload tag came in the header and was put into the body."""
    hints_seen: int = 0
    """`disable_speculation` was asked for, in any of its places."""
    hints_lost: int = 0
    """Header tags and hints that could not be put in."""
    hints_rejected: int = 0
    """Of `refused`: a malformed `disable_speculation`."""
    unsupported: int = 0
    """Of `refused`: `min_p` or `logit_bias`, and no engine without speculation to take them."""
    vanilla_by_lane: int = 0
    vanilla_by_hint: int = 0
    vanilla_by_parameters: int = 0
    vanilla_spilled: int = 0
    """By lane or hint, while the engine without speculation was away: sent to the other one, at K = 0."""
    upstream_ok: bool | None = None
    vanilla_engine: bool = False
    vanilla_ok: bool | None = None
    """Whether the engine without speculation listens; None where there is none."""
    table_version: int = 0


class LaneTable(msgspec.Struct, frozen=True):
    """What the gateway is to work by: the policy's version and the lane of each workload that has one of its own."""

    version: int
    lanes: dict[str, Lane]


class Accepted(msgspec.Struct, frozen=True):
    """The answer to a lane table: the version now in force, or why the one before stays."""

    version: int | None = None
    error: str | None = None


def lanes_of(state: PolicyState) -> dict[str, Lane]:
    """The lanes that a policy gives its workloads; one that is left out is in the speculative lane."""
    return {name: own.lane for name, own in state.workloads.items() if own.lane != "speculative"}


class GatewayControl:
    """Questions to the gateway that listens on `path`; each answer is None when it does not come within a second."""

    def __init__(self, context: zmq.asyncio.Context, path: Path) -> None:
        self._context = context
        self._path = path

    async def stats(self) -> GatewayStats | None:
        return await self._ask(b'{"get": "stats"}', GatewayStats)

    async def work_by(self, table: LaneTable) -> Accepted | None:
        return await self._ask(msgspec.json.encode({"set": table}), Accepted)

    async def texts(self, asked: TextsAsked) -> Texts | None:
        answer = await self._ask(msgspec.json.encode({"texts": asked}), Texts)
        if answer is not None and answer.error is not None and answer.error.startswith("expected"):
            return Texts(error=_EARLIER)
        return answer

    async def _ask(self, question: bytes, kind: type[T]) -> T | None:
        # A fresh socket for each question: a REQ whose answer never came can't be asked again.
        socket = self._context.socket(zmq.REQ)
        socket.setsockopt(zmq.LINGER, 0)
        try:
            socket.connect(ipc(self._path))
            await socket.send(question)
            if not await socket.poll(_ANSWER_MS):
                return None
            return msgspec.json.decode(await socket.recv(), type=kind)
        except msgspec.DecodeError:
            return None
        finally:
            socket.close()
