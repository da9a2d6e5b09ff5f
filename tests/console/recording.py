"""`python -m tests.console.recording`: record anew what the pictures of the console are drawn from, in half a minute.

Replays of the sample traces and a station with stand-in engines are asked what the screens ask; their answers go into
`recorded/`. The operating map is made from simulated passes, as the command makes one. Run it from the top folder.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from console.app.application import SpecdeckApp
from console.feed.client import FeedClient, FeedError
from console.feed.messages import Snapshot
from console.feed.protocol import MapAnswer, Method
from console.feed.traces import Traces
from console.looking.looker import Looker
from console.replaying.endpoints import endpoints
from console.replaying.opened import opened
from console.replaying.player import NothingYet, Player
from engine.sockets import Sockets
from store.operating_map.making import make_map
from tests.console.recorded_feed import Answer, Recorded, RecordedFeed, Result, _plain, keep
from tests.store.rehearsal_folders import plan, simulate

SAMPLES = Path("sample_traces")
REPLAYED = {"schedule": 105.0, "hostile": 128.0, "version_push": 812.0}
"""Seconds after the first step of a sample at which it is looked at: busy; one workload off; both alerts fire."""
SIZES = ((200, 50), (80, 24))

Ask = Callable[[Method, msgspec.Struct | None], Any]

LOG_OF_A_START = """\
(APIServer pid=7) INFO 11-30 10:00:01 [api_utils.py:347] vLLM server version 0.32.0
(EngineCore pid=8) INFO 11-30 10:00:04 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: model='m'"""
VLLM_LOG = f"""{LOG_OF_A_START}
(Worker pid=9) INFO 11-30 10:00:06 [default_loader.py:501] Loading weights took 1.27 seconds
(EngineCore pid=8) INFO 11-30 10:00:07 [kv_cache_utils.py:1] GPU KV cache size: 46,592 tokens
(EngineCore pid=8) INFO 11-30 10:00:19 [core.py:200] init engine (profile, create kv cache, warmup model) took 12.1 s
(APIServer pid=7) INFO:     Application startup complete."""
"""As vLLM writes, with its own figures."""
OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


class Listening(RecordedFeed):
    """Asks for real and keeps what is answered."""

    def __init__(self, snapshot: Snapshot, ask: Ask) -> None:
        super().__init__(snapshot)
        self._ask = ask
        self.answers: dict[str, Answer] = {}

    async def request(
        self, method: Method, params: msgspec.Struct | None, result_type: type[Result], timeout: float = 5.0
    ) -> Result:
        plain = _plain(params)
        self._open += 1
        try:
            result = await self._ask(method, params)
            self._keep(Answer(method, plain, msgspec.Raw(msgspec.json.encode(result))))
            return msgspec.json.decode(msgspec.json.encode(result), type=result_type)
        except Exception as error:
            code = getattr(error, "code", "failed")
            self._keep(Answer(method, plain, refused=(code, str(getattr(error, "message", error)))))
            raise FeedError(code, str(error)) from error
        finally:
            self._open -= 1

    def _keep(self, answer: Answer) -> None:
        self.answers[f"{answer.method} {answer.params}"] = answer


async def asked_by_the_screens(snapshot: Snapshot, ask: Ask) -> list[Answer]:
    """Go through every screen, large and small; the questions and answers."""
    feed = Listening(snapshot, ask)
    app = SpecdeckApp(feed, now=lambda: snapshot.ts, intent="replay" if snapshot.replay else "run")
    async with app.run_test(size=SIZES[0]) as pilot:
        for size in SIZES:
            await pilot.resize_terminal(*size)
            for mode in SpecdeckApp.MODES:
                await app.switch_mode(mode)
                for _ in range(40):
                    await pilot.pause(0.05)
                    if feed.at_rest:
                        break
    return list(feed.answers.values())


def replayed(sample: str, seconds: float) -> Recorded:
    player: Player | None = None

    def more() -> None:
        if player is not None:
            player.more()

    with opened(SAMPLES / f"{sample}.jsonl.zst", None, more) as found:
        player = Player(found)
        while not found.complete:
            time.sleep(0.05)
        player.more()
        view = first_view(player)
        player.act(lambda clock, wall: clock.seek(view.start + seconds, wall))
        snapshot = player.take()

        async def whole() -> Recorded:
            looker = Looker()
            answering = endpoints(player, Sockets(Path("/nowhere")), lambda: None, lambda: None, looker)

            async def ask(method: Method, params: msgspec.Struct | None) -> Any:
                if method not in answering:
                    raise FeedError("unknown_method", f"this station does not know {method}")
                return await answering[method].answer(params, "operator")

            try:
                return Recorded(snapshot, await asked_by_the_screens(snapshot, looked(ask)))
            finally:
                await looker.close()

        said = without(asyncio.run(whole()), (Path.cwd(),), "~/specdeck")
        return without(said, (Path.home(),), "~")


def looked(ask: Ask) -> Ask:
    """Asks for traces until all of them were looked into."""

    async def patient(method: Method, params: msgspec.Struct | None) -> Any:
        answer = await ask(method, params)
        while method == "traces" and msgspec.convert(answer, Traces, from_attributes=True).looking:
            await asyncio.sleep(0.2)
            answer = await ask(method, params)
        return answer

    return patient


def without(said: Recorded, folders: Iterable[Path], instead: str) -> Recorded:
    """The same on any machine."""
    text = msgspec.json.encode(said).decode()
    for folder in folders:
        text = text.replace(str(folder), instead)
    return msgspec.json.decode(text, type=Recorded)


def first_view(player: Player) -> Any:
    while True:
        try:
            return player.view()
        except NothingYet:
            time.sleep(0.05)


def stations() -> dict[str, Recorded]:
    """One that serves and was asked nothing yet, one whose engine is starting, one whose engine does not start, and one
    whose port is taken."""
    from tests.console.rehearsing_station import ENGINE
    from tests.console.station_harness import StationUnderTest

    made: dict[str, Recorded] = {}
    idle = [
        sys.executable,
        "-c",
        f"import os, sys; print({VLLM_LOG!r}, flush=True); os.execv({ENGINE[0]!r}, {ENGINE!r})",
    ]
    slow = [sys.executable, "-c", f"import time; print({LOG_OF_A_START!r}, flush=True); time.sleep(600)"]
    broken = [sys.executable, "-c", f"import sys; print({OUT_OF_MEMORY!r}, file=sys.stderr); sys.exit(1)"]
    for name, command, until in (
        ("idle", idle, lambda seen: bool(seen.engines[0].max_k) and seen.engines[0].state == "serving"),
        ("starting", slow, lambda seen: _phase(seen, "engine core") == "done"),
        ("failed", broken, lambda seen: seen.engines[0].state == "failed" and seen.engines[0].restarts > 1),
    ):
        with place() as folder:
            station = StationUnderTest(folder, engine_command=command).start()
            try:
                station.wait(until, name)
                made[name] = told(station)
            finally:
                station.close()
    return made


def _phase(snapshot: Snapshot, name: str) -> str:
    return next((phase.state for phase in snapshot.engines[0].phases if phase.name == name), "")


def place() -> Any:
    """A folder of one's own that the environment points into."""
    from contextlib import contextmanager

    @contextmanager
    def made() -> Any:
        with tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as name:
            before = dict(os.environ)
            for variable, part in (("RUNTIME", "run"), ("DATA", "data"), ("CACHE", "cache")):
                os.environ[f"SPECDECK_{variable}_DIR"] = str(Path(name) / part)
            os.environ["PYTHONPATH"] = str(Path.cwd())  # of the stand-ins
            try:
                yield Path(name)
            finally:
                os.environ.clear()
                os.environ.update(before)

    return made()


def told(station: Any) -> Recorded:
    """What a running station says, without the folder that it ran in."""

    async def whole() -> Recorded:
        sockets = Sockets(station.run_dir)
        client = FeedClient(sockets.feed, sockets.snapshots)
        snapshot = await client.request("snapshot", None, Snapshot)

        async def ask(method: Method, params: msgspec.Struct | None) -> Any:
            return await client.request(method, params, object)

        try:
            return Recorded(snapshot, await asked_by_the_screens(snapshot, looked(ask)))
        finally:
            await client.close()

    said = without(asyncio.run(whole()), (Path.cwd(),), "~/specdeck")
    return without(said, (station.data_dir, station.run_dir, station.store.parent), "~/.local/share/specdeck")


def mapped() -> Recorded:
    """A map of simulated passes, as the answer to `map_get`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        simulate(folder, plan(arms=("without", "k0", "k2", "k4"), repeats=3))
        made = make_map(folder)
    answer = Answer("map_get", {}, msgspec.Raw(msgspec.json.encode(MapAnswer(map=made))))
    from tests.console.recorded_feed import recorded

    return Recorded(recorded("idle").snapshot, [answer])


def main() -> None:
    wanted = sys.argv[1:]
    for name, seconds in REPLAYED.items():
        if not wanted or name in wanted:
            say(name, keep(name, replayed(name, seconds)))
    if not wanted or "stations" in wanted:
        for name, said in stations().items():
            say(name, keep(name, said))
    if not wanted or "map" in wanted:
        say("map", keep("map", mapped()))


def say(name: str, size: int) -> None:
    print(f"{name}: {size:,} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
