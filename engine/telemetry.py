"""The engine's two sockets to the station. The engine never waits for them.

Frames leave from the scheduler's own thread without blocking; when the queue is full they are dropped, and the hole in
their numbering tells the station. A daemon thread receives the policy state and sends announcements, so both work
while the engine is idle and its scheduler is not called.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import zmq

from engine.frames import Announcement, Frame, encode
from engine.policy import PolicyError, PolicyState, ProbeOrder, decode_policy, validate_probe
from engine.sockets import ipc, policy_socket

logger = logging.getLogger(__name__)

HIGH_WATER_MARK: Final = 2000
"""Frames held while no station listens: 20 s at 100 steps a second."""

ANNOUNCE_SECONDS: Final = 10.0
_POLL_MS: Final = 500


class Telemetry:
    """Sends frames and announcements, receives the policy.

    Args:
        telemetry: path of the station's PULL socket (`SPECDECK_SOCKET`); it need not exist yet.
        engine: id of this engine, which is also the topic of its policy messages.
        announce: makes the current announcement; called from the daemon thread.
        apply: takes a validated policy state, also one that it has; called from the daemon thread for each message.
        probe: takes a station's id and the validated order that it gives; called from the daemon thread.
        look: called from the daemon thread twice a second; True when the station should hear from us at once.
    """

    def __init__(
        self,
        telemetry: Path,
        engine: str,
        announce: Callable[[], Announcement],
        apply: Callable[[PolicyState], None],
        probe: Callable[[str, ProbeOrder], None] = lambda station, order: None,
        look: Callable[[], bool] = lambda: False,
    ) -> None:
        self._engine = engine
        self._announce = announce
        self._apply = apply
        self._probe = probe
        self._look = look
        self._telemetry = telemetry
        self._context = zmq.Context()
        self._push = self._pusher()
        self._closing = threading.Event()
        self._station: str | None = None
        self._version: int | None = None
        self.policy_error: str | None = None
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name="specdeck-policy", daemon=True)
        self._thread.start()

    def send(self, frame: Frame) -> None:
        """Queue a frame, or drop it when nobody has taken the last `HIGH_WATER_MARK` ones."""
        try:
            self._push.send(encode(frame), zmq.NOBLOCK)
        except zmq.Again:
            self.dropped += 1

    def close(self) -> None:
        self._closing.set()
        self._thread.join(timeout=2 * _POLL_MS / 1000)
        self._push.close()
        self._context.term()

    def _pusher(self) -> zmq.Socket[bytes]:
        # PUSH connects: a bound PUSH without a peer drops everything at once.
        push = self._context.socket(zmq.PUSH)
        push.set_hwm(HIGH_WATER_MARK)
        push.linger = 0
        push.connect(ipc(self._telemetry))
        return push

    def _run(self) -> None:
        announcements = self._pusher()
        policies = self._context.socket(zmq.SUB)
        policies.linger = 0
        policies.subscribe(self._engine.encode())
        policies.connect(ipc(policy_socket(self._telemetry)))
        due = time.monotonic()
        failed = False
        while not self._closing.is_set():
            try:
                due = self._turn(announcements, policies, due)
            except Exception:
                # The engine serves on with the policy it has, and what lapses must lapse: the thread goes on too.
                if not failed:
                    logger.exception("specdeck: the policy thread failed and goes on; later failures are not logged")
                failed = True
                self._closing.wait(_POLL_MS / 1000)
        announcements.close()
        policies.close()

    def _turn(self, announcements: zmq.Socket[bytes], policies: zmq.Socket[bytes], due: float) -> float:
        """Wait for a policy for half a second, announce when that is `due` or there is news; when it is due next."""
        heard = bool(policies.poll(_POLL_MS)) and self._receive(policies)
        if self._look() or heard:
            due = time.monotonic()
        if time.monotonic() < due:
            return due
        # With nobody listening the queue fills up; the next announcement says it all anyway.
        with contextlib.suppress(zmq.Again):
            announcements.send(encode(self._announce()), zmq.NOBLOCK)
        return time.monotonic() + ANNOUNCE_SECONDS

    def _receive(self, policies: zmq.Socket[bytes]) -> bool:
        """Apply one policy message; True when the station should hear from us at once."""
        topic, *parts = policies.recv_multipart()
        if topic != self._engine.encode() or not parts:  # a subscription is a prefix: "e1" also hears "e10"
            return False
        try:
            message = decode_policy(parts[0])
            self._apply(message.state)
        except PolicyError as error:
            return self._complain("policy refused, the last one stays", error)
        heard = (message.station, message.state.version)
        news = heard != (self._station, self._version)
        self._station, self._version = heard
        try:
            if message.probe is not None:
                validate_probe(message.probe)
                self._probe(message.station, message.probe)
        except PolicyError as error:
            return self._complain("probe refused, the policy beside it holds", error) or news
        news = news or self.policy_error is not None
        self.policy_error = None
        return news

    def _complain(self, what: str, error: PolicyError) -> bool:
        """Log and keep a refusal; False when it is the one already known."""
        if str(error) == self.policy_error:
            return False
        self.policy_error = str(error)
        logger.warning("specdeck: %s: %s", what, error)
        return True
