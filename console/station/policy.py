"""Publishes the policy as state: whole, versioned, to each engine under its own id, on subscription, on change and
every second. Keeps it in a small file, so that a new station goes on above the versions of the one before it."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
import zmq
import zmq.asyncio

from engine.policy import (
    POLICY_WIRE_VERSION,
    PolicyMessage,
    PolicyState,
    ProbeOrder,
    WorkloadPolicy,
    encode_policy,
    policy_diff,
    validate,
)
from engine.records import EngineRecord, PolicyMode
from engine.sockets import Sockets, ipc

log = logging.getLogger(__name__)

VERSIONS_KEPT: Final = 256
"""States that frames still in flight may be stamped with."""


class PolicyFile(msgspec.Struct, frozen=True):
    """What outlives a station. `chosen`: an operator set the mode; until then engines of others go by their own."""

    state: PolicyState
    chosen: bool = False
    base_chosen: bool = False
    """`chosen` of what an unconfirmed state falls back to."""


class PolicyBook:
    """The current state, the recent ones by version, and the file that remembers. No sockets."""

    def __init__(
        self,
        path: Path,
        initial: PolicyMode,
        *,
        owned: str | None,
        resume: bool,
        floor: int = 0,
        fixed: Mapping[str, PolicyMode] | None = None,
        workloads: Mapping[str, WorkloadPolicy] | None = None,
    ) -> None:
        """Begin above every version that was ever given out (`floor` and the file's).

        Args:
            owned: the engine that is ours.
            resume: go on with the file's policy, as an engine that runs on it was left serving; else `initial` holds.
            fixed: engines with a mode that nobody chooses, as those without a drafter.
            workloads: what holds for some of them beside `initial`.
        """
        self._path = path
        self._owned = owned
        self._fixed = dict(fixed or {})
        self._recent: OrderedDict[int, PolicyState] = OrderedDict()
        self._own: dict[str, PolicyMode] = {}
        self.chosen = False
        self.base_chosen = False
        before = _read(path)
        version = max(floor, before.state.version if before else 0) + 1
        if before is not None and resume:
            self.chosen, self.base_chosen = before.chosen, before.base_chosen
            self.state = msgspec.structs.replace(before.state, version=version)
        else:
            self.state = PolicyState(version=version, policy=initial, workloads=dict(workloads or {}))
        self._keep()

    def change(self, state: PolicyState, *, chosen: bool = True, unchoose: bool = False) -> PolicyState:
        """Make `state` the policy under the next version.

        `chosen`: an operator wants it, so that its mode is for every engine. One who changes a lane or the cap beside
        it has chosen no mode; one who changes nothing has confirmed it. `unchoose`: that choice is taken back, engines
        of others go by their own mode again.

        Raises:
            PolicyError: no scheduler could execute it.
        """
        validate(state)
        if self.state.revert is None:
            self.base_chosen = self.chosen
        self.chosen = not unchoose and (self.chosen or (chosen and _names_mode(self.state, state)))
        return self._set(msgspec.structs.replace(state, version=self.state.version + 1))

    def raise_above(self, version: int) -> bool:
        """An engine executes `version`, which this station never gave out: go on above it. Whether anything moved."""
        if version < self.state.version or (version == self.state.version and version in self._recent):
            return False
        self._set(msgspec.structs.replace(self.state, version=version + 1))
        return True

    def leave_own(self, engine: str, mode: PolicyMode) -> None:
        """An engine that somebody else started goes by `mode` until the operator chooses one here."""
        self._own[engine] = mode

    def ready_for(self, engine: str) -> bool:
        """False while an engine of somebody else has not said yet which policy it came with."""
        return self.chosen or engine == self._owned or engine in self._own or engine in self._fixed

    def for_engine(self, engine: str) -> PolicyState:
        return self._adapted(self.state, engine)

    def at(self, version: int, engine: str) -> PolicyState | None:
        """The state that a frame's stamp names, None when it is too old or not ours."""
        state = self._recent.get(version)
        return None if state is None else self._adapted(state, engine)

    def _adapted(self, state: PolicyState, engine: str) -> PolicyState:
        """`state` in the mode of an engine that has one of its own, and what it falls back to in the mode before."""
        mode, base = (self._mode_of(engine, chosen) for chosen in (self.chosen, self.base_chosen))
        if mode is not None:
            state = msgspec.structs.replace(state, policy=mode)
        if base is not None and state.revert is not None:
            state = msgspec.structs.replace(state, revert=msgspec.structs.replace(state.revert, policy=base))
        return state

    def _mode_of(self, engine: str, chosen: bool) -> PolicyMode | None:
        """None of an engine that goes by the mode here."""
        return self._fixed.get(engine) or (None if chosen else self._own.get(engine))

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
            temporary.write_bytes(msgspec.json.encode(PolicyFile(self.state, self.chosen, self.base_chosen)))
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

    async def send(self, engine: str, probe: ProbeOrder | None = None) -> None:
        """`probe`: to be made once, whenever the engine can."""
        if not self._book.ready_for(engine):
            return
        state = self._book.for_engine(engine)
        message = PolicyMessage(v=POLICY_WIRE_VERSION, station=self._station, state=state, probe=probe)
        await self._socket.send_multipart([engine.encode(), encode_policy(message)])

    def close(self) -> None:
        self._socket.close()


def advised(record: EngineRecord) -> PolicyMode:
    """The mode of an engine that somebody else started: it executes what it was launched with, and is told what
    adaptive would do. Without speculation there is nothing to advise."""
    mode = record.configured
    if mode.mode == "off":
        return mode
    schedule = mode.schedule
    if mode.mode == "static":
        schedule = [(1, record.max_num_seqs, mode.k or 0)]
    return PolicyMode(mode="adaptive", schedule=schedule, act=False)


def unchosen(mode: PolicyMode) -> PolicyMode:
    """`mode` where every engine is somebody else's: adaptive acts in them once an operator has said so."""
    return msgspec.structs.replace(mode, act=False) if mode.mode == "adaptive" else mode


def _names_mode(before: PolicyState, after: PolicyState) -> bool:
    return before.policy != after.policy or not policy_diff(before, after)


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
