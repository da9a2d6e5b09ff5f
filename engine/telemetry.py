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
from engine.policy import PolicyError, PolicyState, decode_policy
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
        apply: takes a validated policy state; called from the daemon thread.
    """

    def __init__(
        self,
        telemetry: Path,
        engine: str,
        announce: Callable[[], Announcement],
        apply: Callable[[PolicyState], None],
    ) -> None:
        self._engine = engine
        self._announce = announce
        self._apply = apply
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
        try:
            while not self._closing.is_set():
                if policies.poll(_POLL_MS) and self._receive(policies):
                    due = time.monotonic()
                if time.monotonic() >= due:
                    # With nobody listening the queue fills up; the next announcement says it all anyway.
                    with contextlib.suppress(zmq.Again):
                        announcements.send(encode(self._announce()), zmq.NOBLOCK)
                    due = time.monotonic() + ANNOUNCE_SECONDS
        except Exception:
            # The engine outlives its console: it goes on with the policy it has.
            logger.exception("specdeck: the policy thread stopped; the engine keeps its last policy")
        finally:
            announcements.close()
            policies.close()

    def _receive(self, policies: zmq.Socket[bytes]) -> bool:
        """Apply one policy message; True when the station should hear from us at once."""
        topic, payload = policies.recv_multipart()[:2]
        if topic != self._engine.encode():  # a subscription is a prefix: "e1" also hears "e10"
            return False
        try:
            message = decode_policy(payload)
            self._apply(message.state)
        except PolicyError as error:
            changed = str(error) != self.policy_error
            self.policy_error = str(error)
            if changed:
                logger.warning("specdeck: policy refused, the last one stays: %s", error)
            return changed
        heard = (message.station, message.state.version, None)
        news = heard != (self._station, self._version, self.policy_error)
        self._station, self._version, self.policy_error = heard
        return news
