"""The control socket: the station asks for counts and sends the table the gateway is to work by.

REP, JSON both ways. `{"get": "stats"}` and `{"get": "table"}` ask; `{"set": {"version": N, "lanes": {…}}}` replaces the
lane table, or changes nothing and says why. `{"texts": {…}}` (`console.feed.texts`) asks for prompts and answers, which
are kept for a few seconds after each such asking, and never else.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import zmq
import zmq.asyncio

from console.feed.texts import Texts
from console.gateway.lanes import Lanes, TableRefused
from console.gateway.texts import TextKeeper, TextsRefused


class ControlRefused(ValueError):
    """A control message that cannot be meant; its text goes back to the sender."""


class Control:
    """Answers control messages. `stats` gives the counts as plain JSON types."""

    def __init__(self, stats: Callable[[], dict[str, Any]], lanes: Lanes, texts: TextKeeper) -> None:
        self._stats = stats
        self._lanes = lanes
        self._texts = texts

    def reply(self, message: bytes) -> bytes:
        """The answer to one message; a wrong one gets `{"error": …}` and changes nothing."""
        try:
            return msgspec.json.encode(self._reply(message))
        except (ControlRefused, TableRefused, TextsRefused) as error:
            return msgspec.json.encode({"error": str(error)})

    def _reply(self, message: bytes) -> dict[str, Any] | Texts:
        try:
            request = msgspec.json.decode(message, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ControlRefused(f"not a JSON object: {error}") from error
        if request.get("get") == "stats":
            return self._stats()
        if request.get("get") == "table":
            return {"table": self._lanes.table}
        if "set" in request:
            self._lanes.replace(request["set"])
            return {"version": self._lanes.table.version}
        if "texts" in request:
            return self._texts.reply(request["texts"])
        raise ControlRefused(
            'expected {"get": "stats"}, {"get": "table"}, {"set": {"version": N, "lanes": {…}}} or {"texts": {…}}'
        )


async def serve(control: Control, path: Path) -> None:
    """Answer control messages until cancelled. The socket file is removed at the end.

    Raises:
        zmq.ZMQError: the path cannot be bound.
    """
    context = zmq.asyncio.Context()
    socket = context.socket(zmq.REP)
    socket.setsockopt(zmq.LINGER, 0)
    try:
        socket.bind(f"ipc://{path}")
        os.chmod(path, 0o600)
        while True:
            await socket.send(control.reply(await socket.recv()))
    finally:
        socket.close()
        context.term()
