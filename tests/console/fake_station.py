"""A fake station: binds the feed's two real sockets and publishes made-up, moving numbers. No engine, no store.

For tests of the feed client, and by hand to look at the console:

    python -m tests.console.fake_station DIR [--buckets N] [--scene NAME]
    python -m tests.console.fake_station DIR --console     # the console on such a station, from another terminal
"""

from __future__ import annotations

import argparse
import asyncio
import math
import time
from pathlib import Path
from typing import Any

import msgspec
import zmq
import zmq.asyncio
from msgspec.structs import replace

from console.feed.messages import FEED_VERSION, Snapshot, UnconfirmedView
from console.feed.protocol import ErrorObject, Hello, History, LogChunk, PolicyResult, PolicySet, Reply, Request
from engine.records import PolicyMode
from engine.sockets import Sockets, ipc
from tests.console import scenes

SCENES = {
    "live": scenes.live,
    "starting": scenes.starting,
    "empty": scenes.no_bucket,
    "alerting": scenes.alerting,
    "mismatched": scenes.mismatched,
    "calm": scenes.calm,
    "troubled": scenes.troubled,
    "observed": scenes.observed,
}


class FakeStation:
    """Answers `hello`, `series`, `engine_log`, `engine_restart` and the policy's methods; `mute` answers nothing."""

    def __init__(self, directory: Path, *, name: str = "s1", interval: float = 0.25) -> None:
        self.sockets = Sockets(directory)
        self.name = name
        self.interval = interval
        self.hello = Hello(station=name, specdeck="0.1.0")
        self.requests: list[Request] = []
        self.mute = False
        self.version = FEED_VERSION
        self.policy, self.policy_version = PolicyMode(mode="static", k=4), 3
        self.changed: dict[str, Any] = {}
        """Fields of the snapshot that a change of the policy has set."""
        self._scene = scenes.live
        self._buckets: int | None = None
        self._played = time.time()
        """Since when the scene is played: its alerts began before that, and stay the same ones."""
        self._context = zmq.asyncio.Context()
        self._tasks: list[asyncio.Task[None]] = []
        self._number = 0

    def play(self, scene: str, buckets: int | None = None) -> None:
        self._scene, self._buckets, self._played = SCENES[scene], buckets, time.time()

    async def start(self) -> None:
        router, publisher = self._context.socket(zmq.ROUTER), self._context.socket(zmq.PUB)
        router.bind(ipc(self.sockets.feed))
        publisher.bind(ipc(self.sockets.snapshots))
        self._tasks = [asyncio.create_task(self._answer(router)), asyncio.create_task(self._publish(publisher))]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._context.destroy(linger=0)

    def snapshot(self) -> Snapshot:
        """The scene, moved to the present time and a little off its figures."""
        now = time.time()
        self._number += 1
        shift = now - scenes.NOW
        scene = self._scene()
        buckets = scene.buckets if self._buckets is None else scenes.many_buckets(self._buckets, now / 7)
        waits = scene.unconfirmed and replace(scene.unconfirmed, confirm_by=scene.unconfirmed.confirm_by + shift)
        moved = [
            replace(
                bucket,
                last_seen=bucket.last_seen + shift,
                figures=replace(
                    bucket.figures,
                    tokens_per_second=(bucket.figures.tokens_per_second or 0) * (1 + 0.1 * math.sin(now + index)),
                ),
            )
            for index, bucket in enumerate(buckets)
        ]
        engines = [
            replace(
                engine,
                started=engine.started + shift if engine.started else None,
                policy_sent=self.policy_version,
                policy_applied=self.policy_version,
                configured=self.policy,
                resolved=self.policy if scene.engines[0].mismatch is None else engine.resolved,
                executed_k=engine.executed_k if engine.mismatch else (self.policy.k or 0),
                executed_limit=engine.executed_limit if engine.mismatch else self.policy.mode,
            )
            for engine in scene.engines
        ]
        return replace(
            scene,
            v=self.version,
            station=self.name,
            number=self._number,
            ts=now,
            started=scene.started + shift,
            **({"policy": self.policy, "policy_version": self.policy_version} if scene.policy is not None else {}),
            **{"unconfirmed": waits, **self.changed},
            buckets=moved,
            engines=engines,
            workloads=[
                replace(
                    view,
                    since=view.since + shift if view.since else None,
                    next_try=view.next_try + shift if view.next_try else None,
                )
                for view in scene.workloads
            ],
            certificate=scene.certificate and replace(scene.certificate, ts=scene.certificate.ts + shift),
            alerts=[replace(alert, started=alert.started + self._played - scenes.NOW) for alert in scene.alerts],
            events=[replace(event, ts=event.ts + shift) for event in scene.events],
            tokens_per_second=sum(bucket.figures.tokens_per_second or 0.0 for bucket in moved),
        )

    async def _publish(self, publisher: Any) -> None:
        while True:
            await publisher.send(msgspec.msgpack.encode(self.snapshot()))
            await asyncio.sleep(self.interval)

    async def _answer(self, router: Any) -> None:
        while True:
            peer, payload = await router.recv_multipart()
            request = msgspec.msgpack.decode(payload, type=Request)
            self.requests.append(request)
            if not self.mute:
                await router.send_multipart([peer, msgspec.msgpack.encode(self.reply(request))])

    def reply(self, request: Request) -> Reply:
        if request.method == "hello":
            result: Any = self.hello
        elif request.method == "series":
            shift = time.time() - scenes.NOW
            still = scenes.series(None, request.params["points"], request.params["seconds"])
            points = [replace(point, ts=point.ts + shift) for point in still.points]
            result = replace(still, points=points, marks=[replace(mark, ts=mark.ts + shift) for mark in still.marks])
        elif request.method == "engine_log":
            result = self._log(request.params["offset"])
        elif request.method == "policy_set":
            if request.params.get("expect") != self.policy_version:
                return Reply(id=request.id, error=ErrorObject("refused", "the policy has changed in the meantime"))
            result = self._set(msgspec.convert(request.params, PolicySet))
        elif request.method == "policy_confirm":
            self.changed["unconfirmed"] = None
            result = PolicyResult(self.policy_version, self.policy)
        elif request.method == "policy_history":
            result = History(scenes.history())
        elif request.method == "engine_restart":
            result = None
        else:
            return Reply(id=request.id, error=ErrorObject("unknown_method", f"no method {request.method}"))
        return Reply(id=request.id, result=msgspec.Raw(msgspec.msgpack.encode(result)))

    def _set(self, params: PolicySet) -> PolicyResult:
        before, self.policy_version = self.policy, self.policy_version + 1
        self.policy = params.policy or before
        if params.cap is not msgspec.UNSET:
            self.changed["cap"] = params.cap
        if params.fallback is not None:
            self.changed["fallback"] = params.fallback
        if params.confirm is not None:
            self.changed["unconfirmed"] = UnconfirmedView(confirm_by=time.time() + params.confirm, reverts_to=before)
        return PolicyResult(
            self.policy_version, self.policy, self.changed.get("cap"), self.changed.get("fallback", False)
        )

    def _log(self, offset: int) -> LogChunk:
        text = (
            scenes.LOG if offset < 0 else f"INFO {time.strftime('%H:%M:%S')} [metrics.py:101] throughput: 212 tok/s\n"
        )
        return LogChunk("logs/e0.log", text, max(0, offset) + len(text))


async def _run(directory: Path, scene: str, buckets: int | None) -> None:
    station = FakeStation(directory)
    station.play(scene, buckets)
    await station.start()
    await asyncio.Event().wait()


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--scene", choices=sorted(SCENES), default="live")
    parser.add_argument("--buckets", type=int)
    parser.add_argument("--console", action="store_true")
    arguments = parser.parse_args()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    if arguments.console:
        from console.app.main import run_console

        sockets = Sockets(arguments.directory)
        print(run_console(sockets.feed, sockets.snapshots).value)
    else:
        asyncio.run(_run(arguments.directory, arguments.scene, arguments.buckets))


if __name__ == "__main__":
    _main()
