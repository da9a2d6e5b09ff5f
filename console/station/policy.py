"""Publishes the policy as state: whole, versioned, to each engine under its own id, on subscription, on change and
every second. Keeps it in a small file, so that a new station goes on above the versions of the one before it."""

from __future__ import annotations

import logging
from collections import OrderedDict
from pathlib import Path
from typing import Final

import msgspec
import zmq
import zmq.asyncio

from engine.policy import POLICY_WIRE_VERSION, PolicyMessage, PolicyState, encode_policy, validate
from engine.records import PolicyMode
from engine.sockets import Sockets, ipc

log = logging.getLogger(__name__)

VERSIONS_KEPT: Final = 256
"""States that frames still in flight may be stamped with."""


class PolicyFile(msgspec.Struct, frozen=True):
    """What outlives a station. `chosen`: an operator set it; until then unowned engines keep their own policy."""

    state: PolicyState
    chosen: bool = False


class PolicyBook:
    """The current state, the recent ones by version, and the file that remembers. No sockets."""

    def __init__(self, path: Path, initial: PolicyMode, *, owned: str | None, resume: bool, floor: int = 0) -> None:
        """Begin above every version that was ever given out (`floor` and the file's). `owned`: the engine that is ours.

        `resume` goes on with the file's policy, since an engine that runs on it was left serving; else `initial` holds.
        """
        self._path = path
        self._owned = owned
        self._recent: OrderedDict[int, PolicyState] = OrderedDict()
        self._own: dict[str, PolicyMode] = {}
        self.chosen = False
        before = _read(path)
        version = max(floor, before.state.version if before else 0) + 1
        if before is not None and resume:
            self.chosen = before.chosen
            self.state = msgspec.structs.replace(before.state, version=version)
        else:
            self.state = PolicyState(version=version, policy=initial)
        self._keep()

    def change(self, state: PolicyState) -> PolicyState:
        """Make `state` the policy under the next version.

        Raises:
            PolicyError: no scheduler could execute it.
        """
        validate(state)
        self.chosen = True
        return self._set(msgspec.structs.replace(state, version=self.state.version + 1))

    def raise_above(self, version: int) -> bool:
        """An engine executes `version`, which this station never gave out: go on above it. Whether anything moved."""
        if version < self.state.version or (version == self.state.version and version in self._recent):
            return False
        self._set(msgspec.structs.replace(self.state, version=version + 1))
        return True

    def leave_own(self, engine: str, configured: PolicyMode) -> None:
        """An engine that somebody else started keeps the policy it came with until the operator chooses one here."""
        self._own[engine] = configured

    def ready_for(self, engine: str) -> bool:
        """False while an engine of somebody else has not said yet which policy it came with."""
        return self.chosen or engine == self._owned or engine in self._own

    def for_engine(self, engine: str) -> PolicyState:
        own = self._own.get(engine)
        if own is None or self.chosen:
            return self.state
        return msgspec.structs.replace(self.state, policy=own)

    def at(self, version: int, engine: str) -> PolicyState | None:
        """The state that a frame's stamp names, None when it is too old or not ours."""
        state = self._recent.get(version)
        own = self._own.get(engine)
        if state is None or own is None or self.chosen:
            return state
        return msgspec.structs.replace(state, policy=own)

    def _set(self, state: PolicyState) -> PolicyState:
        self.state = state
        self._keep()
        return state

    def _keep(self) -> None:
        self._recent[self.state.version] = self.state
        while len(self._recent) > VERSIONS_KEPT:
            self._recent.popitem(last=False)
        temporary = self._path.with_suffix(".new")
        try:
            temporary.write_bytes(msgspec.json.encode(PolicyFile(self.state, self.chosen)))
            temporary.replace(self._path)
        except OSError as error:
            log.warning("the policy could not be written to %s: %s", self._path, error)


class PolicyPublisher:
    """The XPUB socket that engines subscribe to under their engine id."""

    def __init__(self, context: zmq.asyncio.Context, sockets: Sockets, station: str, book: PolicyBook) -> None:
        self._station = station
        self._book = book
        self._engines: set[str] = set()
        self._socket = context.socket(zmq.XPUB)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.XPUB_VERBOSE, 1)  # each subscription shows, also the second of one engine
        self._socket.bind(ipc(sockets.policy))

    async def watch_subscriptions(self) -> None:
        """For ever: an engine that subscribes hears the policy at once."""
        while True:
            message = await self._socket.recv()
            if not message or message[0] not in (0, 1):
                continue
            engine = message[1:].decode("utf-8", "replace")
            if message[0] == 0:
                self._engines.discard(engine)
            elif engine:
                self._engines.add(engine)
                await self.send(engine)

    async def send_all(self) -> None:
        for engine in tuple(self._engines):
            await self.send(engine)

    async def send(self, engine: str) -> None:
        if not self._book.ready_for(engine):
            return
        state = self._book.for_engine(engine)
        message = PolicyMessage(v=POLICY_WIRE_VERSION, station=self._station, state=state)
        await self._socket.send_multipart([engine.encode(), encode_policy(message)])

    def close(self) -> None:
        self._socket.close()


def _read(path: Path) -> PolicyFile | None:
    if not path.exists():
        return None
    try:
        remembered = msgspec.json.decode(path.read_bytes(), type=PolicyFile)
        validate(remembered.state)
    except (OSError, ValueError) as error:
        log.warning("%s could not be read and is begun anew: %s", path, error)
        return None
    return remembered
